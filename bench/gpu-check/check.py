"""What the stages of gpu_check.py share: where they work, on which device, and processes with
deadlines."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "bench/gpu-check"
# What a bundle has that needs no PyTorch to be compiled with.
PREBUILT = ROOT / "prebuilt/gpu-check"


@dataclass
class Run:
    """One process: its deadline, and how it ended."""

    name: str
    command: list
    deadline_s: float
    seconds: float = 0.0
    outcome: str = ""  # OK, FAILED, TIMEOUT, MISSING, ENDED (with the command)
    output: str = ""
    answers: list = field(default_factory=list)


@dataclass
class Visit:
    """A stage, once: what it ran, or why it did not."""

    stage: str
    ends: float  # by time.monotonic
    began: str = ""  # UTC
    device: str = ""
    runs: list = field(default_factory=list)
    skipped: str = ""

    @property
    def outcome(self):
        """OK, PARTLY (some of it could not be run), SKIPPED, or how the first bad process ended."""
        bad = [run.outcome for run in self.runs if run.outcome != "OK"]
        if bad:
            return bad[0]
        if self.skipped:
            return "PARTLY" if self.runs else "SKIPPED"
        return "OK"


class Check:
    """`device` is cuda or sim; rehearsed: the simulated device under CUDA's name."""

    def __init__(self, out, device, rehearsed=False):
        self.out = out
        self.device = device
        self.rehearsed = rehearsed
        self.build = out / "build"
        site = ROOT / "site/lib/python/packages"
        # Of a bundle; elsewhere this Python has them.
        self.libraries = {"PYTHONPATH": str(site)} if site.exists() else {}
        self.visit = None
        self.report = lambda: None  # called after each process
        out.mkdir(parents=True, exist_ok=True)

    @property
    def is_gpu(self):
        """Whether speeds mean something."""
        return self.device == "cuda" and not self.rehearsed

    @property
    def plugin(self):
        """The plug-in of the device; None where there is none."""
        return self.made("posing/gnnd_cuda.so" if self.rehearsed else f"gnnd_{self.device}.so")

    def made(self, name):
        """What the stage build made, else what came with the bundle, else set-up's; or None."""
        folders = (self.build, PREBUILT, ROOT / "build/native")
        return next((folder / name for folder in folders if (folder / name).exists()), None)

    def node(self):
        """Of the bundle, else this machine's; or None."""
        own = ROOT / "bin/node"
        return own if own.exists() else shutil.which("node")

    def addons(self):
        """A folder with all that a daemon loads, as links; a sentence where something lacks."""
        names = ["gnnd_core.node", "gnnd_train.node", "gnnd_probe", "gnnd_torch_probe"]
        lacks = [name for name in names if self.made(name) is None]
        if self.plugin is None:
            lacks.append(f"gnnd_{self.device}.so")
        if self.node() is None or not (ROOT / "dist/main.js").exists():
            lacks.append("Node and dist/main.js (a bundle has them, npm run setup makes them)")
        if lacks:
            return f"missing: {', '.join(lacks)}; the stage build makes what can be compiled here"
        folder = self.out / "addons"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name in names:
            (folder / name).symlink_to(self.made(name).resolve())
        (folder / self.plugin.name).symlink_to(self.plugin.resolve())
        # Libraries of wheels, which the addons find beside themselves.
        (folder / "lib").symlink_to(self.made("gnnd_train.node").resolve().parent / "lib")
        return folder

    def python(self, name, script, *words, deadline_s):
        """A script beside this one."""
        return self.run(name, [sys.executable, HERE / script, *words], deadline_s, self.libraries)

    def run(self, name, command, deadline_s, env=None):
        """Runs a command in a session of its own; all of it is killed at the deadline, or when the
        stage's time is over."""
        deadline_s = max(0.1, min(deadline_s, self.visit.ends - time.monotonic()))
        run = Run(name, [str(part) for part in command], round(deadline_s, 1))
        self.visit.runs.append(run)
        begin = time.monotonic()
        try:
            process = subprocess.Popen(
                run.command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
                env={**os.environ, **(env or {})},
            )
        except OSError as error:
            run.outcome = "MISSING"
            run.output = f"{run.command[0]} cannot be started: {error.strerror}"
            self.report()
            return run
        try:
            run.output, _ = process.communicate(timeout=deadline_s)
            run.outcome = "OK" if process.returncode == 0 else "FAILED"
        except subprocess.TimeoutExpired:
            run.outcome = "TIMEOUT"
            os.killpg(process.pid, signal.SIGKILL)
            run.output = drained(process)
        except BaseException:
            # Whoever ended the command left nobody behind on the GPU.
            os.killpg(process.pid, signal.SIGKILL)
            run.outcome = "ENDED"
            run.seconds = round(time.monotonic() - begin, 2)
            self.report()
            raise
        run.seconds = round(time.monotonic() - begin, 2)
        run.answers = answers_in(run.output)
        self.report()
        return run


def drained(process):
    """What a killed process had written; a child of its that escaped may hold the pipe."""
    try:
        return process.communicate(timeout=5)[0] or ""
    except subprocess.TimeoutExpired:
        return ""


def answers_in(output):
    """Lines of JSON with a name."""
    answers = []
    for line in output.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and {"name", "value", "unit"} <= value.keys():
            answers.append(value)
    return answers


def asked(command, env=None, timeout_s=60):
    """What a short command prints; "" where it cannot be run, fails, or gives no answer."""
    try:
        done = subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, errors="replace",
            timeout=timeout_s, env={**os.environ, **(env or {})})
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
