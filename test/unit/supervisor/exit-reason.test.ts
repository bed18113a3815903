import { expect, test } from 'vitest';
import { executorExit } from '../../../src/base/exit-codes.ts';
import type { ExitStatus } from '../../../src/supervisor/executor-process.ts';
import { type ExitFacts, outcomeOf } from '../../../src/supervisor/exit-reason.ts';

const silent: ExitStatus = { code: null, signal: null, said: null, logTail: '', unreadable: null };

function outcome(status: Partial<ExitStatus>, facts: Partial<ExitFacts> = {}) {
  return outcomeOf({
    role: 'TRAINER',
    device: 'cpu:1',
    pid: 42,
    status: { ...silent, ...status },
    stalled: null,
    oomKilled: false,
    stopping: false,
    workIsOver: false,
    ...facts,
  });
}

test('a signal is a crash that names the signal', () => {
  for (const signal of ['SIGKILL', 'SIGSEGV', 'SIGABRT', 'SIGBUS', 'SIGTERM'] as const) {
    expect(outcome({ signal })).toEqual({
      kind: 'CRASHED',
      reason: 'EXECUTOR_CRASHED',
      message: `TRAINER on cpu:1 (pid 42) died of ${signal}`,
    });
  }
});

test('what the executor said last decides the reason', () => {
  const said = { kind: 'failed', code: 'NUMERIC_DIVERGENCE', message: 'the loss is nan' } as const;
  expect(outcome({ code: 18, said })).toMatchObject({
    kind: 'CRASHED',
    reason: 'NUMERIC_DIVERGENCE',
    message: expect.stringContaining('the loss is nan'),
  });
});

test('a last message that was lost is told by the exit code', () => {
  expect(outcome({ code: executorExit.OK }, { workIsOver: true })).toEqual({ kind: 'DONE' });
  expect(outcome({ code: executorExit.DATASET })).toMatchObject({ reason: 'DATASET_CORRUPT' });
  expect(outcome({ code: executorExit.PLUGIN })).toMatchObject({ reason: 'PLUGIN_FAILED' });
  expect(outcome({ code: 77 })).toMatchObject({ reason: 'EXECUTOR_CRASHED' });
});

test('an exit with 0 before the work is over is a crash', () => {
  expect(outcome({ code: executorExit.OK })).toEqual({
    kind: 'CRASHED',
    reason: 'EXECUTOR_CRASHED',
    message: 'TRAINER on cpu:1 (pid 42) exited with 0 before its work was over',
  });
});

test('a file that could not be read where it was mapped is named, and no crash', () => {
  const found = outcome({ code: executorExit.DATASET, unreadable: '/data/x/features.npy' });
  expect(found).toMatchObject({
    kind: 'CRASHED',
    reason: 'DATASET_CORRUPT',
    message: expect.stringContaining('/data/x/features.npy cannot be read'),
  });
});

test("the watchdog's kill is a stall, not a crash", () => {
  expect(
    outcome({ signal: 'SIGKILL' }, { stalled: 'gave no sign of life for 2.5 s' }),
  ).toMatchObject({
    kind: 'STALLED',
    message: expect.stringContaining('2.5 s'),
  });
});

test('any exit is orderly once the attempt was told to stop, and after an abort', () => {
  expect(outcome({ signal: 'SIGKILL' }, { stopping: true })).toEqual({ kind: 'DONE' });
  const said = { kind: 'failed', code: 'ABORTED', message: 'stopped' } as const;
  expect(outcome({ code: 0, said })).toEqual({ kind: 'DONE' });
});

test('a kill for memory is named as such, and only where it was one', () => {
  expect(outcome({ signal: 'SIGKILL' }, { oomKilled: true })).toMatchObject({
    kind: 'CRASHED',
    reason: 'HOST_OUT_OF_MEMORY',
  });
  expect(outcome({ signal: 'SIGKILL' })).toMatchObject({ reason: 'EXECUTOR_CRASHED' });
  expect(outcome({ signal: 'SIGSEGV' }, { oomKilled: true })).toMatchObject({
    reason: 'EXECUTOR_CRASHED',
  });
});
