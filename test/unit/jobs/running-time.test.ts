import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RunningTime } from '../../../src/jobs/running-time.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

test('time in which the daemon was frozen does not count, while it watches', () => {
  let ms = 1000;
  const time = new RunningTime({ monotonicMs: () => ms });
  const pass = (forMs: number) => {
    for (let left = forMs; left > 0; left -= 100) {
      ms += 100;
      vi.advanceTimersByTime(100);
    }
  };
  expect(time.nowMs()).toBe(1000);
  // Nothing has a deadline: a long silence is no freeze.
  ms += 60_000;
  expect(time.nowMs()).toBe(61_000);
  time.watch(true);
  pass(30_000);
  expect(time.nowMs()).toBe(91_000);
  // Ten minutes in which no timer fires.
  ms += 600_000;
  vi.advanceTimersByTime(1000);
  expect(time.nowMs()).toBe(92_000);
  pass(10_000);
  expect(time.nowMs()).toBe(102_000);
  time.watch(false);
  ms += 60_000;
  expect(time.nowMs()).toBe(162_000);
});
