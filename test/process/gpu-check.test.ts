import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { repository } from '../support/daemon.ts';
import { findPython } from '../support/python.ts';

const folder = join(repository, 'bench/gpu-check');
const script = join(folder, 'gpu_check.py');
const made: string[] = [];

function temporary(): string {
  const path = mkdtempSync(join(tmpdir(), 'gnnd-gpu-check-'));
  made.push(path);
  return path;
}

afterEach(() => {
  for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true });
});

interface Report {
  readonly heads: readonly Readonly<Record<string, string>>[];
  readonly visits: readonly {
    readonly stage: string;
    readonly outcome: string;
    readonly skipped: string;
    readonly runs: readonly { readonly name: string; readonly outcome: string }[];
  }[];
}

const reportIn = (out: string): Report =>
  JSON.parse(readFileSync(join(out, 'report.json'), 'utf8')) as Report;

const checked = (out: string, ...args: readonly string[]) =>
  execFileSync('python3', [script, '--out', out, ...args], { encoding: 'utf8' });

test('all stages but those about speed pass where a simulated device poses as a GPU', () => {
  const out = temporary();
  const first = ['build', 'operators', 'job'];
  const then = ['sanitizer', 'crews', 'killed'];
  const said = checked(out, '--rehearse', '--stages', first.join(','));
  for (const name of first) expect(said).toContain(`${name}: OK`);
  // A further command adds to what the first one wrote.
  expect(checked(out, '--rehearse', '--stages', then.join(','))).toContain('killed: OK');
  const { visits, heads } = reportIn(out);
  expect(visits.map(({ stage, outcome }) => [stage, outcome])).toEqual([
    ...[...first.map((name) => [name, 'OK']), ['sanitizer', 'SKIPPED']],
    ...[
      ['crews', 'OK'],
      ['killed', 'OK'],
    ],
  ]);
  expect(visits.flatMap(({ runs }) => runs.map(({ name, outcome }) => [name, outcome]))).toEqual(
    [
      ...['the plug-in', 'load gnnd_core', 'load gnnd_train', 'libtorch', 'operators'],
      ...["a Trainer's batches and evaluations", 'a whole job', 'crews', 'killed Trainers'],
    ].map((name) => [name, 'OK']),
  );
  expect(heads).toHaveLength(2);
  const text = readFileSync(join(out, 'report.md'), 'utf8');
  expect(text).toContain('| device | a simulated device that poses as cuda:0 (a rehearsal) |');
  expect(text).toContain('| epoch | not run |');
  // The report uses the names, the kind and the environment of GPUs.
  expect(text).toMatch(/\| one cuda, alternating: model \| [0-9a-f]{16} \|/);
  expect(text).toMatch(/\| a Trainer of 2 killed: died on \| cuda:0\/\d \|/);
}, 900_000);

test('a stage that is run again stands there twice, and what ended well is not run again', () => {
  const out = temporary();
  checked(out, '--device', 'sim', '--stages', 'rates,rates');
  expect(reportIn(out).visits.map(({ stage }) => stage)).toEqual(['rates', 'rates']);
  expect(readFileSync(join(out, 'report.md'), 'utf8')).toContain('OK (the last of 2)');
  // No time for any other: each is named for the next command.
  const said = checked(out, '--device', 'sim', '--minutes', '0.1');
  expect(said).toContain('--stages build,operators,job,sanitizer,epoch,crews,killed\n');
  expect(reportIn(out).visits).toHaveLength(2);
});

test('the stages are listed with the time that they take', () => {
  const said = execFileSync('python3', [script, '--list'], { encoding: 'utf8' });
  expect(said).toMatch(/^operators +\d+ s {2}Every operator/m);
  const refused = spawnSync('python3', [script, '--stages', 'build,speed'], { encoding: 'utf8' });
  expect(refused.stderr).toContain('no such stage: speed; there are build, operators,');
});

test('where torch_geometric is not installed, a line says so, and no more is asked', () => {
  // Without site-packages no Python has it.
  const args = ['-S', join(folder, 'pyg_epoch.py'), '--data', '/nowhere', '--device', 'sim'];
  const said = execFileSync('python3', args, { encoding: 'utf8' });
  expect(JSON.parse(said)).toEqual({
    name: 'epoch, torch_geometric',
    value: 'skipped: torch_geometric is not installed',
    unit: '',
  });
});

test('a device that cannot be opened fails the stage with what to do, without a trace', () => {
  const out = temporary();
  const args = [script, '--stages', 'build,job', '--rehearse', '--out', out];
  const env = { ...process.env, GNND_SIM_SYSTEM: '46' };
  expect(spawnSync('python3', args, { env }).status).toBe(1);
  expect(reportIn(out).visits.map(({ outcome }) => outcome)).toEqual(['FAILED', 'FAILED']);
  const text = readFileSync(join(out, 'report.md'), 'utf8');
  expect(text.match(/nvidia-smi -c DEFAULT/g)?.length).toBeGreaterThan(1);
  expect(text).not.toContain('Traceback');
});

test('who ends a command leaves no process behind, and finds in the report what ran', async () => {
  const out = temporary();
  const flags = ['--device', 'sim', '--stages', 'crews', '--out', out];
  const command = spawn('python3', [script, ...flags], { stdio: ['ignore', 'ignore', 'pipe'] });
  const said = text(command.stderr);
  const daemon = join(out, 'jobs/gnnd.sock');
  await expect.poll(() => existsSync(daemon), { timeout: 120_000 }).toBe(true);
  command.kill('SIGTERM');
  expect(await said).toBe('ended by SIGTERM; what ran so far is in the report\n');
  expect(reportIn(out).visits.map(({ outcome }) => outcome)).toEqual(['ENDED']);
  // Whoever had the folder of the jobs open is gone.
  const users = () =>
    spawnSync('sh', ['-c', `grep -la '${out}' /proc/[0-9]*/cmdline`], { encoding: 'utf8' }).stdout;
  await expect.poll(users, { timeout: 120_000 }).toMatch(/^(\/proc\/\d+\/cmdline\n){0,1}$/);
});

test('what cannot be read or written is a sentence, and nothing of a report is lost', () => {
  const out = temporary();
  writeFileSync(join(out, 'report.json'), '{"heads": [');
  expect(checked(out, '--device', 'sim', '--stages', 'sanitizer')).toContain(
    'report.json could not be read and is report.unreadable.json now; a new one begins',
  );
  expect(readFileSync(join(out, 'report.unreadable.json'), 'utf8')).toBe('{"heads": [');
  const file = join(out, 'report.json');
  const refused = spawnSync('python3', [script, '--out', file], { encoding: 'utf8' });
  expect(refused.stderr).toBe(
    `no report can be written to ${file} (File exists): name another folder by --out\n`,
  );
});

test('a run that hangs is killed at its deadline, children too, and the next goes on', () => {
  const out = temporary();
  const program = `
import sys, pathlib, time
sys.path.insert(0, ${JSON.stringify(folder)})
from check import Check, Visit
from report import Report
from gpu_check import visit
from stages import Stage
out = pathlib.Path(${JSON.stringify(out)})
check = Check(out, "sim")
report = Report(out, {"hangs": "about", "breaks": "about"})
report.begin({"device": "none"})
def hangs(check):
    check.run("stuck", ["sh", "-c", "echo begun; sleep 300 & wait"], 0.5)
    check.run("gone", ["/nonexistent"], 5)
    check.run("well", ["echo", '{"name": "n", "value": 1, "unit": "u"}'], 5)
    check.run("too long for the stage", ["sleep", "300"], 600)
def breaks(check):
    raise KeyError("no such thing")
for work in (hangs, breaks):
    visit(check, Stage(work.__name__, "about", 1, 2, work), report, 60)
`;
  execFileSync('python3', ['-c', program]);
  const [hangs, breaks] = reportIn(out).visits;
  expect(hangs?.outcome).toBe('TIMEOUT');
  const outcomes = ['TIMEOUT', 'MISSING', 'OK', 'TIMEOUT'];
  expect(hangs?.runs.map(({ outcome }) => outcome)).toEqual(outcomes);
  expect(breaks?.skipped).toBe("gpu-check itself failed: KeyError: 'no such thing'");
  const text = readFileSync(join(out, 'report.md'), 'utf8');
  expect(text).toContain('begun');
  expect(text).toContain('| n | 1 | u |');
});

test('the bundle has what a machine without Node and a network needs', async () => {
  // Compressed, which takes a minute or two, it is to have 60 MB at most.
  const path = join(temporary(), 'bundle.tar');
  // In the place of what nvcc makes in some minutes.
  const prebuilt = temporary();
  const built = join(repository, 'build/native');
  for (const name of [
    ...['gnnd_sim.so', 'gnnd_probe', 'gnnd_fake_nvml.so', 'gnnd_device_test'],
    ...['posing', 'device_bench'],
  ]) {
    symlinkSync(join(built, name), join(prebuilt, name));
  }
  symlinkSync(join(built, 'posing/gnnd_cuda.so'), join(prebuilt, 'gnnd_cuda.so'));
  symlinkSync(join(built, 'gnnd_probe'), join(prebuilt, 'probe'));
  const python = await findPython('scipy_openblas32');
  if (python === null) throw new Error("no Python here has gnnd's libraries of matrix products");
  execFileSync(python, [script, '--bundle', path, '--prebuilt', prebuilt]);
  const names = new Set(execFileSync('tar', ['-tf', path], { encoding: 'utf8' }).split('\n'));
  for (const name of [
    ...['CMakeLists.txt', 'native/cuda/plugin/table.cc', 'bench/gpu-check/probe.cu'],
    ...['dist/main.js', 'dist/cli/main.js', 'bin/node', 'test/fixtures/cora.npz'],
    ...['node_modules/@grpc/grpc-js/build/src/index.js', 'node_modules/node-addon-api/napi.h'],
    'node_modules/better-sqlite3/build/Release/better_sqlite3.node',
    ...['prebuilt/gpu-check/gnnd_cuda.so', 'prebuilt/gpu-check/posing/gnnd_cuda.so', 'COMMIT'],
    ...['site/lib/libdnnl.so', 'site/lib/python/packages/scipy_openblas32/__init__.py'],
  ]) {
    expect(names).toContain(`gnnd/${name}`);
  }
  // Unpacked, it asks the plug-in where there is no Node, nvcc or CMake, and says what lacks.
  const elsewhere = temporary();
  execFileSync('tar', ['-xf', path, '-C', elsewhere]);
  const unpacked = join(elsewhere, 'gnnd/bench/gpu-check/gpu_check.py');
  const out = join(elsewhere, 'out');
  const args = [unpacked, '--rehearse', '--stages', 'build,job', '--out', out];
  const said = spawnSync(python, args, { encoding: 'utf8', env: { PATH: elsewhere } });
  expect(said.stdout).toContain('build: PARTLY (cmake is missing: pip install cmake');
  expect(said.stdout).toContain(
    'job: SKIPPED (missing: gnnd_core.node, gnnd_train.node, gnnd_torch_probe;',
  );
  expect(reportIn(out).visits[0]?.runs).toEqual([
    expect.objectContaining({ name: 'the plug-in', outcome: 'OK' }),
  ]);
  expect(
    [...names].filter((name) => /\.git\/|node_modules\/(typescript|@duckdb)/.test(name)),
  ).toEqual([]);
}, 300_000);
