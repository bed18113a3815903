import { expect, test } from 'vitest';
import { createJobMetrics, standbyProfitOf } from '../../../src/jobs/job-metrics.ts';
import type { JobMetricsInput, Metrics } from '../../../src/metrics/metrics.ts';
import {
  counters,
  type ExecutorSnapshot,
  type SegmentSnapshot,
} from '../../../src/native/contract.ts';
import type { JobRecord } from '../../../src/records/job-record.ts';
import type { JobAttempt } from '../../../src/supervisor/job-attempt.ts';

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

/** What the metrics are told of a job whose executors have counted everything there is. */
function busyJob(): JobMetricsInput {
  const told: JobMetricsInput[] = [];
  const metrics = { updateJob: (input: JobMetricsInput) => void told.push(input) };
  const executors = (['SAMPLER', 'TRAINER', 'STANDBY'] as const).map((role) => ({
    ...{ role, phase: 'RUNNING', device: 0, pid: 1, heartbeatNs: 1 },
    counters: Object.values(counters).map(() => 1),
    stages: [],
    waits: [],
  }));
  const attempt = {
    input: {
      ...{ jobId: 'a', devices: [], dataset: { counts: { numNodes: 1 } } },
      spec: { history: { staleSteps: 0 }, sampling: { locality: { maxScale: 1 } } },
    },
    seen: {
      snapshot: { executors, committedBatches: 1, reclaimed: 1 },
      epochs: { count: 0, last: null, valMetrics: [] },
      progress: null,
    },
    cachePlan: {},
  } as unknown as JobAttempt;
  const effectiveSpec = { model: {}, training: {} };
  const job = { effectiveSpec, plan: null, result: null } as unknown as JobRecord;
  const jobMetrics = createJobMetrics(metrics as unknown as Metrics, () => job);
  jobMetrics.started(attempt);
  jobMetrics.update(0);
  const [input] = told;
  if (input === undefined) throw new Error('nothing was told');
  return input;
}

test('every event of batches and every outcome of wake-ups is counted by somebody', () => {
  const { batches, standbyWakeups } = busyJob();
  const silent = Object.entries({ ...batches, ...standbyWakeups }).filter(([, count]) => !count);
  expect(silent).toEqual([]);
});
