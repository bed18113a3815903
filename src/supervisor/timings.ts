import { type ExecutorSnapshot, type SegmentSnapshot, stages } from '../native/contract.ts';
import type { BatchParts, BatchTimes } from '../records/batch-times.ts';

/** Medians; 0 = not seen. */
export interface MeasuredTimings extends BatchTimes {
  readonly parts: BatchParts;
}

type Stage = (typeof stages)[number];

/**
 * T_s = S + M + C; T_t = max(E, T) where Trainers `prefetch`, else E + T, as always for T_t': a
 * standby Trainer takes nothing ahead while there is a Trainer. E has history's pruning in it.
 * Medians; 0 = not seen.
 */
export function timingsOf(snapshot: SegmentSnapshot, prefetch: boolean): MeasuredTimings {
  const ofRole = (role: ExecutorSnapshot['role']) =>
    snapshot.executors.filter((executor) => executor.role === role);
  const trained = ofRole('TRAINER').filter((executor) => timeOf(executor, 'TRAIN') > 0);
  const helped = ofRole('STANDBY').filter((executor) => timeOf(executor, 'TRAIN') > 0);
  const [trainers, standbys] = [
    trained.length === 0 ? helped : trained,
    helped.length === 0 ? trained : helped,
  ];
  const both = prefetch && trained.length > 0 ? Math.max : sum;
  // A Trainer that keeps history does not prefetch.
  const extract = ['PRUNE', 'EXTRACT'] as const;
  const extractAndTrain = [...extract, 'TRAIN'] as const;
  return {
    samplerBatchNs: medianOf(ofRole('SAMPLER'), ['SAMPLE', 'MARK', 'COPY']),
    trainerBatchNs: medianOf(trainers, extractAndTrain, both),
    standbyBatchNs: medianOf(standbys, extractAndTrain),
    parts: {
      extractNs: medianOf(trainers, extract),
      trainNs: medianOf(trainers, ['TRAIN']),
      standbyExtractNs: medianOf(standbys, extract),
      standbyTrainNs: medianOf(standbys, ['TRAIN']),
      applyNs: medianOf([...trained, ...helped], ['APPLY']),
      prefetch,
    },
  };
}

const sum = (a: number, b: number) => a + b;

/** Over the executors that did any of it; 0 for none. */
function medianOf(
  executors: readonly ExecutorSnapshot[],
  names: readonly Stage[],
  join: (a: number, b: number) => number = sum,
): number {
  const times = executors
    .map((executor) => names.map((name) => timeOf(executor, name)).reduce((a, b) => join(a, b)))
    .filter((time) => time > 0)
    .sort((a, b) => a - b);
  return times[Math.floor(times.length / 2)] ?? 0;
}

function timeOf({ stages: times }: ExecutorSnapshot, name: Stage): number {
  return times[stages.indexOf(name)]?.medianNs ?? 0;
}
