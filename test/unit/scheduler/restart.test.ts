import { describe, expect, test } from 'vitest';
import type { failureRules } from '../../../src/scheduler/failure.ts';
import { backoffDelayMs, freshTally, judge, judgeLost } from '../../../src/scheduler/restart.ts';
import { plainRequest } from './script-language.ts';

const { restart } = plainRequest;
const failure = (reason: keyof typeof failureRules) => ({ reason, message: 'bad luck' });

describe('the back-off', () => {
  test.each([
    // failures, jitter, delay in ms
    [1, 0.5, 5_000],
    [2, 0.5, 10_000],
    [3, 0.5, 20_000],
    [1, 0, 4_000],
    [1, 0.75, 5_500],
    [7, 0.5, 300_000],
    [4000, 0.5, 300_000],
    [4000, 0, 240_000],
  ])('after %i failures with jitter %d is %i ms', (runFailures, jitter, delayMs) => {
    expect(backoffDelayMs(restart, { ...freshTally, runFailures }, jitter)).toBe(delayMs);
  });

  test('counts failures of both kinds', () => {
    const tally = { ...freshTally, runFailures: 1, startupFailures: 1 };
    expect(backoffDelayMs(restart, tally, 0.5)).toBe(10_000);
  });
});

describe('the verdict on a failed attempt', () => {
  const running = { policy: restart, wasRunning: true };

  test('charges running and starting attempts to budgets of their own', () => {
    const tally = { ...freshTally, startupFailures: 2 };
    const verdict = judge({ ...running, tally, failure: failure('EXECUTOR_CRASHED') });
    expect(verdict.ending.kind).toBe('RETRY');
    expect(verdict.tally).toMatchObject({ runFailures: 1, startupFailures: 2 });
  });

  test('names the last reason when a budget is used up', () => {
    const tally = { ...freshTally, runFailures: 2 };
    const { ending } = judge({ ...running, tally, failure: failure('SHM_CORRUPTED') });
    expect(ending).toMatchObject({ kind: 'FAIL', reason: 'RESTART_BUDGET_EXHAUSTED' });
    expect(ending).toMatchObject({ message: expect.stringContaining('SHM_CORRUPTED: bad luck') });
  });

  test('is free of charge when the daemon is to blame', () => {
    const tally = { ...freshTally, runFailures: 2 };
    const verdict = judge({ ...running, tally, failure: failure('DAEMON_SHUTDOWN') });
    expect(verdict).toEqual({
      tally,
      ending: { kind: 'RETRY', failure: failure('DAEMON_SHUTDOWN'), free: true },
    });
  });

  test('forgives some reasons once, also when they were met in different stages', () => {
    const first = judge({
      ...running,
      wasRunning: false,
      tally: freshTally,
      failure: failure('INTERNAL'),
    });
    expect(first.ending.kind).toBe('RETRY');
    const second = judge({ ...running, tally: first.tally, failure: failure('INTERNAL') });
    expect(second.ending).toMatchObject({ kind: 'FAIL', reason: 'INTERNAL' });
    const other = judge({
      ...running,
      tally: first.tally,
      failure: failure('SHM_ALLOCATION_FAILED'),
    });
    expect(other.ending.kind).toBe('RETRY');
  });

  test('is final for what no second attempt would mend', () => {
    const final = [
      'SPEC_INVALID',
      'DATASET_CORRUPT',
      'NUMERIC_DIVERGENCE',
      'PLUGIN_FAILED',
    ] as const;
    for (const reason of final) {
      const { ending } = judge({ ...running, tally: freshTally, failure: failure(reason) });
      expect(ending).toEqual({ kind: 'FAIL', reason, message: 'bad luck' });
    }
  });
});

describe("an attempt that ended with the daemon's death", () => {
  const lost = (daemonDeaths: number, more = {}) =>
    judgeLost({
      tally: { ...freshTally, daemonDeaths },
      madeProgress: false,
      suspectsBefore: 0,
      ...more,
    });

  test('is forgiven twice in a row, and ends the job the third time', () => {
    expect(lost(0)).toMatchObject({ kind: 'AGAIN', tally: { daemonDeaths: 1 }, delayMs: 0 });
    expect(lost(1)).toMatchObject({ kind: 'AGAIN', tally: { daemonDeaths: 2 }, delayMs: 0 });
    expect(lost(2)).toMatchObject({
      kind: 'FAIL',
      message: expect.stringContaining('3 attempts in a row'),
    });
  });

  test('begins a new row where it had finished an epoch, and so does an end in order', () => {
    expect(lost(2, { madeProgress: true })).toMatchObject({ tally: { daemonDeaths: 1 } });
    const { tally } = judge({
      policy: restart,
      wasRunning: true,
      tally: { ...freshTally, daemonDeaths: 2 },
      failure: failure('DAEMON_SHUTDOWN'),
    });
    expect(tally.daemonDeaths).toBe(0);
  });

  test('lets jobs that may be to blame start one by one, and others at once', () => {
    expect(lost(1, { suspectsBefore: 2 })).toMatchObject({ isSuspect: true, delayMs: 60_000 });
    expect(lost(0, { suspectsBefore: 2 })).toMatchObject({ isSuspect: false, delayMs: 0 });
  });
});
