import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { repository } from '../support/daemon.ts';

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

test('the stage of the plug-in passes on simulated devices, and is written down', () => {
  const out = temporary();
  symlinkSync(join(repository, 'build/native'), join(out, 'build'));
  const args = [script, '--stages', 'plugin', '--device', 'sim', '--out', out];
  expect(execFileSync('python3', args, { encoding: 'utf8' })).toContain('plugin: OK');
  const [stage] = reportIn(out).stages;
  expect(stage?.runs.map(({ name, outcome }) => [name, outcome])).toEqual([
    ...[
      ['devices', 'OK'],
      ['tests', 'OK'],
    ],
  ]);
  expect(readFileSync(join(out, 'report.md'), 'utf8')).toContain('| plugin | OK |');
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

test('the bundle has what a machine without a network needs, in 60 MB', () => {
  const path = join(temporary(), 'bundle.tar.xz');
  expect(spawnSync('python3', [script, '--bundle', path]).status).toBe(0);
  const names = execFileSync('tar', ['-tJf', path], { encoding: 'utf8' }).split('\n');
  for (const name of [
    'CMakeLists.txt',
    'native/cuda/plugin/table.cc',
    'bench/gpu-check/probe.cu',
  ]) {
    expect(names).toContain(`gnnd/${name}`);
  }
  expect(names.filter((name) => /node_modules|\.git\//.test(name))).toEqual([]);
});
