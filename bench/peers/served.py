"""What contestants share: each prepares, says that it is ready, and then works in turns.

A contestant is a process that reads one command a line and answers with one JSON object a line
(bench/native/served_bench.h is the same for native ones). The driver lets the contestants of a row
work in turns, so that all see the same machine.
"""
import json
import os
import select
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.join(ROOT, 'bench', 'peers')

# glibc's malloc keeps what it has and asks for 2 MiB pages; PyTorch asks for them, too. OpenMP's
# threads sleep while they wait: spinning ones make a step 10 times slower on a machine that has not
# all of its cores to itself.
TUNED = {
    'GLIBC_TUNABLES': 'glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=17179869184:'
                      'glibc.malloc.trim_threshold=17179869184:glibc.malloc.arena_max=1',
    'THP_MEM_ALLOC_ENABLE': '1',
    'OMP_WAIT_POLICY': 'passive',
}


ANSWER_SECONDS = 400


def peer_python(name):
    return os.path.join(ROOT, '.cache', 'peers', name, 'bin', 'python')


def serve(ready, answer):
    """answer(words of a command) -> dict"""
    print(json.dumps(ready), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(line.split())), flush=True)


def processor_seconds():
    """Processor time of this process and all below it, of those that have ended, too."""
    total, waiting = 0, [os.getpid()]
    while waiting:
        folder = f'/proc/{waiting.pop()}'
        try:
            with open(f'{folder}/stat') as file:
                total += sum(map(int, file.read().rsplit(')', 1)[1].split()[11:15]))
            for thread in os.listdir(f'{folder}/task'):
                with open(f'{folder}/task/{thread}/children') as file:
                    waiting += map(int, file.read().split())
        except (FileNotFoundError, ProcessLookupError):
            pass  # It ended meanwhile.
    return total / os.sysconf('SC_CLK_TCK')


class Contestant:
    """A process that works in turns. `name` is what tables show."""

    def __init__(self, name, command, threads=1, env=None):
        self.name, self.answers = name, []
        limits = {key: str(threads) for key in ('OMP_NUM_THREADS', 'MKL_NUM_THREADS')}
        # DGL keeps a configuration file in the home folder: not in the user's.
        quiet = {'DGLBACKEND': 'pytorch', 'DGLDEFAULTDIR': os.path.join(ROOT, '.cache', 'dgl')}
        # OpenBLAS chooses its kernels itself, whatever this shell was told.
        inherited = {key: value for key, value in os.environ.items()
                     if not key.startswith('OPENBLAS_')}
        self.ready, self.process, self.program = None, None, command[0]
        if not os.path.exists(command[0]):
            return
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**inherited, **limits, **quiet, **(env or {})})

    def wait_until_ready(self):
        if self.process is None:
            raise RuntimeError(f'{self.name}: no {self.program} (bench/peers/setup.sh)')
        self.ready = self._read()

    def ask(self, command):
        self.process.stdin.write(command + '\n')
        self.process.stdin.flush()
        return self._read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    def _read(self):
        readable, _, _ = select.select([self.process.stdout], [], [], ANSWER_SECONDS)
        line = self.process.stdout.readline() if readable else f'{ANSWER_SECONDS} s passed'
        if not line.startswith('{'):
            self.process.kill()
            raise RuntimeError(f'{self.name} gave no answer: {line!r}')
        return json.loads(line)


def start(contestants):
    """Waits for all; returns those that could be prepared and says why the others could not."""
    able = []
    for contestant in contestants:
        try:
            contestant.wait_until_ready()
            able.append(contestant)
        except RuntimeError as error:
            print(f'left out: {error}', file=sys.stderr, flush=True)
    return able


def facts():
    """Machine, commit and load, for every line of results."""
    with open('/proc/cpuinfo') as file:
        model = next((line.split(':')[1].strip() for line in file if 'model name' in line), '?')
    commit = subprocess.run(['git', 'rev-parse', '--short', 'HEAD'], cwd=ROOT, text=True,
                            capture_output=True).stdout.strip()
    return {'machine': f'{model}, {os.cpu_count()} cores', 'commit': commit,
            'load': round(os.getloadavg()[0], 1)}


def write_lines(name, lines):
    """Appends to build/bench/NAME.jsonl."""
    folder = os.path.join(ROOT, 'build', 'bench')
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name + '.jsonl'), 'a') as file:
        for line in lines:
            file.write(json.dumps(line) + '\n')


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def median(values):
    return statistics.median(values)
