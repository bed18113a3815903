import { expect, test } from 'vitest';
import {
  type ExecutorSnapshot,
  type Role,
  type SegmentSnapshot,
  stages,
} from '../../../src/native/contract.ts';
import { timingsOf } from '../../../src/supervisor/timings.ts';

type Medians = Partial<Record<(typeof stages)[number], number>>;

function executor(role: Role, medians: Medians): ExecutorSnapshot {
  return {
    row: 0,
    incarnation: 1,
    role,
    device: 0,
    pid: 1,
    hasTurn: true,
    phase: 'RUNNING',
    registeredNs: 0,
    heartbeatNs: 0,
    stage: 'WAIT',
    progressNs: 0,
    counters: [],
    stages: stages.map((name) => ({
      totalNs: 0,
      count: 0,
      buckets: [],
      medianNs: medians[name] ?? 0,
    })),
    waits: [],
  };
}

function timings(...executors: readonly ExecutorSnapshot[]) {
  return timingsOf({ executors } as unknown as SegmentSnapshot, false);
}

const noParts = {
  ...{ extractNs: 0, trainNs: 0, standbyExtractNs: 0, standbyTrainNs: 0, applyNs: 0 },
  prefetch: false,
};

const sampler = executor('SAMPLER', { SAMPLE: 70, MARK: 20, COPY: 10 });
const trainer = executor('TRAINER', { EXTRACT: 200, TRAIN: 300, APPLY: 7, EVALUATE: 999 });

test('a batch costs S + M + C on a Sampler and E + T on a Trainer', () => {
  expect(timings(sampler, trainer)).toEqual({
    samplerBatchNs: 100,
    trainerBatchNs: 500,
    standbyBatchNs: 500,
    parts: {
      ...{ extractNs: 200, trainNs: 300, standbyExtractNs: 200, standbyTrainNs: 300, applyNs: 7 },
      prefetch: false,
    },
  });
});

test('what history takes to prune is a part of extraction', () => {
  const pruning = executor('TRAINER', { PRUNE: 20, EXTRACT: 80, TRAIN: 300 });
  expect(timings(pruning)).toMatchObject({ trainerBatchNs: 400, parts: { extractNs: 100 } });
});

test('a standby Trainer has its own time, and stands in for missing Trainers', () => {
  const standby = executor('STANDBY', { EXTRACT: 400, TRAIN: 300 });
  expect(timings(sampler, trainer, standby).standbyBatchNs).toBe(700);
  expect(timings(sampler, standby).trainerBatchNs).toBe(700);
});

test('where Trainers prefetch, max(E, T) counts; for standby Trainers still the sum', () => {
  const standby = executor('STANDBY', { EXTRACT: 400, TRAIN: 300 });
  const longExtract = executor('TRAINER', { EXTRACT: 600, TRAIN: 300 });
  const prefetching = (...executors: readonly ExecutorSnapshot[]) =>
    timingsOf({ executors } as unknown as SegmentSnapshot, true);
  expect(prefetching(sampler, trainer, standby)).toEqual({
    samplerBatchNs: 100,
    trainerBatchNs: 300,
    standbyBatchNs: 700,
    parts: {
      ...{ extractNs: 200, trainNs: 300, standbyExtractNs: 400, standbyTrainNs: 300, applyNs: 7 },
      prefetch: true,
    },
  });
  expect(prefetching(longExtract).trainerBatchNs).toBe(600);
});

test('of several executors the middle one counts, of those with a batch', () => {
  const others = [100, 900, 0].map((TRAIN) => executor('TRAINER', { TRAIN }));
  expect(timings(trainer, ...others).trainerBatchNs).toBe(500);
});

test('nothing measured is 0', () => {
  const none = { samplerBatchNs: 0, trainerBatchNs: 0, standbyBatchNs: 0, parts: noParts };
  expect(timings()).toEqual(none);
});
