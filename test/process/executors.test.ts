import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { executorExit } from '../../src/base/exit-codes.ts';
import { attemptFailureOf } from '../../src/supervisor/job-attempt.ts';
import { runTask, TaskDied, type TaskOptions } from '../../src/supervisor/task.ts';
import { settled } from '../support/api-fakes.ts';
import { executorPids, repository } from '../support/daemon.ts';
import { linkOf } from '../support/leftovers.ts';
import { until } from '../support/until.ts';

/**
 * Children of the daemon: whose they are, and how their end is told: by what they said, however
 * late that is read, else by how they died.
 */

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gnnd-words-'));
  writeFileSync(join(folder, 'file'), 'x');
});
afterEach(() => rmSync(folder, { recursive: true }));

const digest = () =>
  ({ role: 'DIGEST', options: { folder, names: ['file'], elements: false } }) as const;

function optionsOf(name: string, onProgress: () => void = () => {}): TaskOptions {
  return {
    ...{ cores: [], topologyFd: null, threads: 1, instructionSet: 'SCALAR' },
    logPath: join(folder, `${name}.log`),
    signal: new AbortController().signal,
    onProgress,
  };
}

/** A child of this test, once it is there. */
async function childOf(name: string): Promise<number> {
  const isIts = (pid: number) => linkOf(`/proc/${pid}/fd/1`).endsWith(`/${name}.log`);
  // In a later turn of the loop: then it has been told what to do.
  await settled();
  return until(() => executorPids(process.pid).find(isIts), { everyMs: 2 });
}

function blockUntilDead(pid: number): void {
  const isDead = () => /^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  while (!isDead()) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
}

test('of two children that end at once both are heard', async () => {
  let second = 0;
  let hasMet = false;
  const first = runTask(
    digest(),
    optionsOf('first', () => {
      // This turn has begun: it reads what the first one said, and then reaps both.
      process.kill(second, 'SIGCONT');
      blockUntilDead(second);
      hasMet = true;
    }),
  );
  const other = runTask(digest(), optionsOf('second'));
  const [one, two] = await Promise.all([childOf('first'), childOf('second')]);
  second = two;
  process.kill(second, 'SIGSTOP');
  // The child's last message and its end come in the same turn.
  blockUntilDead(one);
  for (const answer of await Promise.all([first, other])) expect(answer.role).toBe('DIGEST');
  expect(hasMet).toBe(true);
});

test('a task whose process dies is a crash, not a bug of ours', async () => {
  const dies = runTask(digest(), optionsOf('dies')).catch((error: unknown) => error);
  process.kill(await childOf('dies'), 'SIGKILL');
  const error = await dies;
  expect(error).toBeInstanceOf(TaskDied);
  expect(String(error)).toContain('died of SIGKILL');
  expect(attemptFailureOf(error)).toBe('EXECUTOR_CRASHED');
});

/** The executor's program, told that its daemon is this process; how it exits. */
function exitOf(daemonPid: number, first: unknown): Promise<unknown> {
  const program = join(repository, 'dist', 'executor', 'main.js');
  const child = spawn(process.execPath, [program, String(daemonPid)], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    serialization: 'advanced',
  });
  child.on('error', () => {});
  child.send(first as object, () => {});
  return once(child, 'exit').then(([code]) => code);
}

test('a child whose daemon has died before it came up ends at once', async () => {
  // Whoever else is its parent by then.
  expect(await exitOf(process.ppid, { kind: 'start' })).toBe(executorExit.PARENT_GONE);
});

test('a child that is told something else than its daemon would say ends at once', async () => {
  expect(await exitOf(process.pid, { kind: 'start', version: 0 })).toBe(executorExit.PROTOCOL);
});

test('where memory runs out the kernel takes children before the daemon', async () => {
  const score = (pid: number | 'self') =>
    Number(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8'));
  const runs = runTask(
    digest(),
    optionsOf('first-to-die', () => {
      scores.push(score(child));
    }),
  );
  const scores: number[] = [];
  const child = await childOf('first-to-die');
  await runs;
  expect(scores).toEqual([Math.max(500, score('self'))]);
});
