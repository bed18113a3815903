import { expect, test } from 'vitest';
import type { EpochReport, ExecutorTimes, JobPlan } from '../../../src/records/job-record.ts';
import { measuredEpochs, measurementOf } from '../../../src/records/plan-measurement.ts';
import { epochReport, jobPlan, someTimes } from '../store/job-values.ts';

function times(role: ExecutorTimes['role'], device: string, change: Partial<ExecutorTimes>) {
  return { ...someTimes, role, device, ...change };
}

const executorTimes = [
  times('SAMPLER', 'cpu:0', { sampleNs: 60, markNs: 30, copyNs: 10 }),
  times('TRAINER', 'cpu:1', { extractNs: 240, trainNs: 600 }),
  times('STANDBY', 'cpu:0', { extractNs: 90, trainNs: 210 }),
];

function report(epoch: number, durationMs: number): EpochReport {
  const batchesByDevice = { 'cpu:0': 4, 'cpu:1': 6 };
  return { ...epochReport(epoch), batches: 10, durationMs, batchesByDevice, executorTimes };
}

const { cache } = jobPlan();
const withPrefetch = (prefetch: boolean): Pick<JobPlan, 'cache'> => ({
  cache: cache === null ? null : { ...cache, prefetch },
});

test('the median epoch counts, without the first, and each kind of executor by its batches', () => {
  const reports = [900, 20, 40, 30].map((ms, epoch) => report(epoch, ms));
  expect(measurementOf(reports, withPrefetch(false))).toEqual({
    epochs: 3,
    epochNs: 30e6,
    batchNs: 3e6,
    samplerBatchNs: 10,
    trainerBatchNs: 140,
    standbyBatchNs: 75,
  });
  // Like calibration it takes the longer part where one hides the other; never on standbys.
  const hidden = measurementOf(reports, withPrefetch(true));
  expect(hidden).toMatchObject({ trainerBatchNs: 100, standbyBatchNs: 75 });
});

test('the first epoch counts while there is no other; none is none', () => {
  expect(measurementOf([report(0, 50)], withPrefetch(false))).toMatchObject({
    epochs: 1,
    epochNs: 50e6,
  });
  expect(measurementOf([], withPrefetch(false))).toBeNull();
});

test('only the newest count, and epochs whose executors were not timed say no kinds', () => {
  const reports = Array.from({ length: measuredEpochs + 5 }, (_, epoch) => ({
    ...report(epoch, epoch < 5 ? 1000 : 10),
    executorTimes: [],
  }));
  expect(measurementOf(reports, withPrefetch(false))).toEqual({
    epochs: measuredEpochs,
    epochNs: 10e6,
    batchNs: 1e6,
    samplerBatchNs: 0,
    trainerBatchNs: 0,
    standbyBatchNs: 0,
  });
});
