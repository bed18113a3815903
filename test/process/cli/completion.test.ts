import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { JobService } from '../../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { runCli } from '../../../src/cli/program.ts';
import { sampleJob } from '../../unit/cli/sample-job.ts';
import { createTestIo } from '../../unit/cli/test-io.ts';
import { FakeDaemon } from './fake-daemon.ts';

let daemon: FakeDaemon;

beforeEach(() => {
  daemon = new FakeDaemon();
});
afterEach(() => daemon.close());

async function output(...args: string[]): Promise<string> {
  const { io, stdout } = createTestIo({ env: { GNND_ADDRESS: daemon.address } });
  expect(await runCli(args, io)).toBe(0);
  return stdout();
}

async function completions(...words: string[]): Promise<readonly string[]> {
  const text = await output('__complete', '--', ...words);
  return text.split('\n').filter((line) => line !== '');
}

test('nouns, verbs, options and their values are offered', async () => {
  expect(await completions('')).toContain('dataset');
  expect(await completions('d')).toEqual(['dataset', 'device', 'doctor']);
  expect(await completions('job', 'w')).toEqual(['watch', 'wait']);
  expect(await completions('job', 'create', '--dr')).toEqual(['--dry-run']);
  expect(await completions('job', 'list', '-o', 'j')).toEqual(['json', 'jsonl']);
  expect(await completions('completion', 'z')).toEqual(['zsh']);
  expect(await completions('job', 'create', '-f', '')).toEqual([':files']);
  expect(await completions('dataset', 'import', '/tm')).toEqual([':files']);
  expect(await completions('__')).toEqual([]);
});

test('ids of jobs come from the daemon; without one there are none', async () => {
  expect(await completions('job', 'watch', '')).toEqual([]);
  daemon.unary(JobService.method.listJobs, () => ({
    jobs: [sampleJob(), sampleJob({ name: 'jobs/other' })],
  }));
  await daemon.listen();
  expect(await completions('job', 'watch', 'n')).toEqual(['npm-sage']);
  expect(await completions('job', 'watch', '-o', 'table', '')).toEqual(['npm-sage', 'other']);
});

test('the script for bash is bash, and completes what gnnctl answers', async () => {
  const script = await output('completion', 'bash');
  const checked = spawnSync('bash', ['-n'], { input: script, encoding: 'utf8' });
  expect([checked.status, checked.stderr]).toEqual([0, '']);
  const use = [
    'gnnctl() { printf \'%s\\n\' "$@"; }',
    script,
    'COMP_WORDS=(gnnctl job wa); COMP_CWORD=2; _gnnctl; declare -p COMPREPLY',
  ].join('\n');
  const answered = spawnSync('bash', ['-c', use], { encoding: 'utf8' });
  expect(answered.stdout).toBe(
    'declare -a COMPREPLY=([0]="__complete" [1]="--" [2]="job" [3]="wa")\n',
  );
});

const hasZsh = spawnSync('zsh', ['--version']).status === 0;

test.skipIf(!hasZsh)('the script for zsh is zsh', async () => {
  const script = await output('completion', 'zsh');
  const checked = spawnSync('zsh', ['-n'], { input: script, encoding: 'utf8' });
  expect([checked.status, checked.stderr]).toEqual([0, '']);
});
