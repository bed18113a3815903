import { describe, expect, test } from 'vitest';
import { GnndError } from '../../../src/base/errors.ts';
import { assertTransition, canTransition, pendingSinceMs } from '../../../src/jobs/job-state.ts';
import {
  type Attempt,
  type JobState,
  jobStates,
  terminalStates,
} from '../../../src/records/job-record.ts';

/** Written out a second time, as pairs, so that a slip in the table shows. */
const legal = new Set([
  'PENDING>PREPARING',
  'PENDING>FAILED',
  'PENDING>CANCELLED',
  'PENDING>SUSPENDED',
  'PREPARING>RUNNING',
  'PREPARING>PENDING',
  'PREPARING>CANCELLING',
  'PREPARING>SUSPENDING',
  'PREPARING>SUSPENDED',
  'PREPARING>FAILED',
  'RUNNING>SUCCEEDED',
  'RUNNING>PENDING',
  'RUNNING>CANCELLING',
  'RUNNING>SUSPENDING',
  'RUNNING>SUSPENDED',
  'SUSPENDING>SUSPENDED',
  'SUSPENDING>PENDING',
  'SUSPENDING>CANCELLING',
  'SUSPENDING>SUCCEEDED',
  'SUSPENDING>FAILED',
  'SUSPENDED>PENDING',
  'SUSPENDED>CANCELLED',
  'RUNNING>FAILED',
  'CANCELLING>CANCELLED',
  'CANCELLING>SUCCEEDED',
]);

const pairs = jobStates.flatMap((from) => jobStates.map((to) => ({ from, to })));

function conflictOf(from: JobState, to: JobState): GnndError | null {
  try {
    assertTransition(from, to);
    return null;
  } catch (error) {
    if (error instanceof GnndError) return error;
    throw error;
  }
}

describe('the state machine of a job', () => {
  test.each(pairs)('$from to $to is decided by the table', ({ from, to }) => {
    const expected = legal.has(`${from}>${to}`);
    expect(canTransition(from, to)).toBe(expected);
    const conflict = conflictOf(from, to);
    expect(conflict?.reason ?? null).toBe(expected ? null : 'JOB_STATE_CONFLICT');
  });

  test('a terminal state has no way out and every other state has one', () => {
    for (const from of jobStates) {
      const ways = jobStates.filter((to) => canTransition(from, to));
      expect(ways.length === 0).toBe(terminalStates.has(from));
    }
  });

  test('every state can be reached from PENDING', () => {
    const reached = new Set<JobState>(['PENDING']);
    for (const from of reached) {
      for (const to of jobStates) if (canTransition(from, to)) reached.add(to);
    }
    expect([...reached].sort()).toEqual([...jobStates].sort());
  });

  test('every state can still end', () => {
    for (const start of jobStates) {
      const reached = new Set<JobState>([start]);
      for (const from of reached) {
        for (const to of jobStates) if (canTransition(from, to)) reached.add(to);
      }
      expect([...reached].some((state) => terminalStates.has(state))).toBe(true);
    }
  });

  test('a refusal names the states that are allowed', () => {
    expect(conflictOf('PENDING', 'RUNNING')?.metadata).toEqual({
      from: 'PENDING',
      to: 'RUNNING',
      allowed: 'PREPARING,SUSPENDED,FAILED,CANCELLED',
    });
    expect(conflictOf('FAILED', 'RUNNING')?.message).toMatch(/it has ended/);
  });
});

test('a job is pending since its creation, and after an attempt since that ended', () => {
  const attempt: Attempt = {
    ...{ number: 1, startAtMs: 200, endAtMs: null, endReason: 'NONE', message: '' },
    ...{ executorRestarts: 0, exits: [], resumed: null },
  };
  expect(pendingSinceMs({ createAtMs: 100, attempts: [] })).toBe(100);
  const ended = [
    { ...attempt, endAtMs: 300 },
    { ...attempt, number: 2, endAtMs: 900 },
  ];
  expect(pendingSinceMs({ createAtMs: 100, attempts: ended })).toBe(900);
});
