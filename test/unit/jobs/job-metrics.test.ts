import { expect, test } from 'vitest';
import { standbyProfitOf } from '../../../src/jobs/job-metrics.ts';
import type { ExecutorSnapshot, SegmentSnapshot } from '../../../src/native/contract.ts';

const kInfiniteProfitNs = Number(2n ** 63n - 1n);

function profitOf(standbyProfitNs: number, executors: readonly Partial<ExecutorSnapshot>[]) {
  const snapshot = { standbyProfitNs, executors: executors as SegmentSnapshot['executors'] };
  return standbyProfitOf(snapshot);
}

test("a standby Trainer's profit is a number or absent, never the segment's sentinel", () => {
  const standby = { role: 'STANDBY', phase: 'RUNNING' } as Partial<ExecutorSnapshot>;
  expect(profitOf(1_500_000_000, [standby])).toBe(1.5);
  expect(profitOf(-250_000_000, [standby])).toBe(-0.25);
  expect(profitOf(kInfiniteProfitNs, [standby])).toBe(null);
  expect(profitOf(1_500_000_000, [{ ...standby, phase: 'REAPED' }])).toBe(null);
  expect(profitOf(1_500_000_000, [])).toBe(null);
  expect(standbyProfitOf(null)).toBe(null);
});
