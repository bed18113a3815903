import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
  readonly stages: readonly {
    readonly name: string;
    readonly outcome: string;
    readonly runs: readonly { readonly name: string; readonly outcome: string }[];
  }[];
}

const reportIn = (out: string): Report =>
  JSON.parse(readFileSync(join(out, 'report.json'), 'utf8')) as Report;

test('plug-in, operators and whole jobs pass on simulated devices, and are written down', () => {
  const out = temporary();
  symlinkSync(join(repository, 'build/native'), join(out, 'build'));
  const args = [script, '--stages', 'plugin,operators,jobs', '--device', 'sim', '--out', out];
  const said = execFileSync('python3', args, { encoding: 'utf8' });
  const { stages } = reportIn(out);
  for (const name of ['plugin', 'operators', 'jobs']) expect(said).toContain(`${name}: OK`);
  expect(stages.flatMap(({ runs }) => runs.map(({ name, outcome }) => [name, outcome]))).toEqual([
    ...[
      ['devices', 'OK'],
      ['tests', 'OK'],
      ['whole batches and evaluations', 'OK'],
      ['crews', 'OK'],
    ],
  ]);
  const text = readFileSync(join(out, 'report.md'), 'utf8');
  expect(text).toContain('| jobs | OK |');
  expect(text).toMatch(/\| one sim, alternating: model \| [0-9a-f]{16} \|/);
}, 180_000);

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

test('a device that cannot be opened fails the stage and leaves a report', () => {
  const out = temporary();
  symlinkSync(join(repository, 'build/native'), join(out, 'build'));
  const args = [script, '--stages', 'plugin', '--device', 'sim', '--out', out];
  const env = { ...process.env, GNND_SIM_SYSTEM: '46' };
  expect(spawnSync('python3', args, { env }).status).toBe(1);
  expect(reportIn(out).stages[0]?.outcome).toBe('FAILED');
  expect(readFileSync(join(out, 'report.md'), 'utf8')).toContain('nvidia-smi -c DEFAULT');
});

test('a run that hangs is killed at its deadline, children too, and the next goes on', () => {
  const out = temporary();
  const program = `
import sys, pathlib
sys.path.insert(0, ${JSON.stringify(folder)})
import gpu_check as g
check = g.Check(pathlib.Path(${JSON.stringify(out)}), "sim")
stage = g.Stage("hangs", "about")
check.stages.append(stage)
check.run(stage, "stuck", ["sh", "-c", "echo begun; sleep 300 & wait"], 0.5)
check.run(stage, "gone", ["/nonexistent"], 5)
check.run(stage, "well", ["echo", '{"name": "n", "value": 1, "unit": "u"}'], 5)
check.report()
`;
  execFileSync('python3', ['-c', program]);
  const [stage] = reportIn(out).stages;
  expect(stage?.outcome).toBe('TIMEOUT');
  expect(stage?.runs.map(({ outcome }) => outcome)).toEqual(['TIMEOUT', 'MISSING', 'OK']);
  const text = readFileSync(join(out, 'report.md'), 'utf8');
  expect(text).toContain('begun');
  expect(text).toContain('| n | 1 | u |');
});

test('the bundle has what a machine without Node and a network needs', async () => {
  // Compressed, which takes a minute or two, it is to have 60 MB at most.
  const path = join(temporary(), 'bundle.tar');
  const python = await findPython('scipy_openblas32');
  if (python === null) throw new Error("no Python here has gnnd's libraries of matrix products");
  execFileSync(python, [script, '--bundle', path]);
  const names = new Set(execFileSync('tar', ['-tf', path], { encoding: 'utf8' }).split('\n'));
  for (const name of [
    ...['CMakeLists.txt', 'native/cuda/plugin/table.cc', 'bench/gpu-check/probe.cu'],
    ...['dist/main.js', 'dist/cli/main.js', 'bin/node', 'test/fixtures/cora.npz'],
    ...['node_modules/@grpc/grpc-js/build/src/index.js', 'node_modules/node-addon-api/napi.h'],
    'node_modules/better-sqlite3/build/Release/better_sqlite3.node',
    ...['site/lib/libdnnl.so', 'site/lib/python/packages/scipy_openblas32/__init__.py'],
  ]) {
    expect(names).toContain(`gnnd/${name}`);
  }
  expect([...names].filter((name) => /\.git\/|node_modules\/typescript/.test(name))).toEqual([]);
}, 60_000);
