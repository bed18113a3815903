import type {
  EpochReport,
  ExecutorRole,
  ExecutorTimes,
  JobPlan,
  PlanMeasurement,
} from './job-record.ts';

/** What epochs took, in the terms of their job's plan. */

/** The newest reports count, at most so many. */
export const measuredEpochs = 20;

/** Measures the reports of one attempt, given oldest first; null for none. */
export function measurementOf(
  reports: readonly EpochReport[],
  plan: Pick<JobPlan, 'cache'>,
): PlanMeasurement | null {
  const newest = reports.filter(({ batches }) => batches > 0).slice(-measuredEpochs);
  const later = newest.filter(({ epoch }) => epoch > 0);
  // The first one fills caches, memory and the queue.
  const counted = later.length > 0 ? later : newest;
  if (counted.length === 0) return null;
  const medianOf = (timeOf: (report: EpochReport) => number) =>
    Math.round(median(counted.map(timeOf).filter((value) => value > 0)));
  const prefetch = plan.cache?.prefetch ?? false;
  return {
    epochs: counted.length,
    epochNs: medianOf(({ durationMs }) => durationMs * 1e6),
    batchNs: medianOf(({ durationMs, batches }) => (durationMs * 1e6) / batches),
    samplerBatchNs: medianOf(samplerNs),
    trainerBatchNs: medianOf((report) => trainerNs(report, { role: 'TRAINER', prefetch })),
    standbyBatchNs: medianOf((report) => trainerNs(report, { role: 'STANDBY', prefetch: false })),
  };
}

function samplerNs({ executorTimes, batches }: EpochReport): number {
  const samplers = ofRole(executorTimes, 'SAMPLER');
  return sumOf(samplers, ({ sampleNs, markNs, copyNs }) => sampleNs + markNs + copyNs) / batches;
}

/** 0 where executors of that role trained nothing. A device has those of one role only. */
function trainerNs(
  { executorTimes, batchesByDevice }: EpochReport,
  { role, prefetch }: { readonly role: ExecutorRole; readonly prefetch: boolean },
): number {
  const trainers = ofRole(executorTimes, role);
  const batches = sumOf(trainers, ({ device }) => batchesByDevice[device] ?? 0);
  if (batches === 0) return 0;
  const extractNs = sumOf(trainers, (times) => times.extractNs);
  const trainNs = sumOf(trainers, (times) => times.trainNs);
  return (prefetch ? Math.max(extractNs, trainNs) : extractNs + trainNs) / batches;
}

function ofRole(times: readonly ExecutorTimes[], role: ExecutorRole): readonly ExecutorTimes[] {
  return times.filter((each) => each.role === role);
}

function sumOf(times: readonly ExecutorTimes[], timeOf: (times: ExecutorTimes) => number): number {
  return times.reduce((sum, each) => sum + timeOf(each), 0);
}

/** The median of values; 0 for none. */
function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
}
