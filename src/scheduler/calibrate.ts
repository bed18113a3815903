import type { Timings } from './allocate.ts';

/**
 * Turns measured durations into the three numbers that allocation and switching need. Waits
 * (queue, turn, due, gradients) are never part of a duration.
 */

/** One batch on a Sampler, in ns. */
export interface SamplerDurations {
  readonly sampleNs: number;
  readonly markNs: number;
  readonly copyNs: number;
}

/** One batch on a Trainer, in ns. */
export interface TrainerDurations {
  readonly extractNs: number;
  readonly trainNs: number;
}

/** Durations of single batches, oldest first. */
export interface DurationRings {
  readonly sampler: readonly SamplerDurations[];
  readonly trainer: readonly TrainerDurations[];
  /** Empty where no standby Trainer was measured. */
  readonly standby: readonly TrainerDurations[];
}

/** The first batches of an executor pay for page faults and thread pools. */
const warmUpBatches = 2;

/** Enough to be steady, few enough to follow the run. */
const runningWindow = 32;

/**
 * T_s, T_t and T_t' from a trial: the median per-batch duration after the warm-up (of a ring that
 * is no longer than that, its last entry). Where only one kind of Trainer was measured it stands
 * for the other. Null when nothing was measured on either side.
 *
 * @param overlapped Whether extraction runs beside training, so that a batch costs the longer of
 *   the two instead of their sum.
 */
export function calibrate(rings: DurationRings, overlapped: boolean): Timings | null {
  const samplerBatchNs = medianNs(afterWarmUp(rings.sampler.map(samplerBatch)));
  const trainer = rings.trainer.map((entry) => trainerBatch(entry, overlapped));
  const standby = rings.standby.map((entry) => trainerBatch(entry, overlapped));
  const trainerBatchNs = medianNs(afterWarmUp(trainer.length > 0 ? trainer : standby));
  const standbyBatchNs = medianNs(afterWarmUp(standby.length > 0 ? standby : trainer));
  if (samplerBatchNs === null || trainerBatchNs === null || standbyBatchNs === null) return null;
  return { samplerBatchNs, trainerBatchNs, standbyBatchNs };
}

/**
 * The same numbers while a job runs: medians of the last 32 batches of each kind. A kind that has
 * done nothing keeps its former value.
 */
export function runningEstimates(
  rings: DurationRings,
  overlapped: boolean,
  former: Timings,
): Timings {
  const latest = (durationsNs: readonly number[]) => medianNs(durationsNs.slice(-runningWindow));
  const trainer = rings.trainer.map((entry) => trainerBatch(entry, overlapped));
  const standby = rings.standby.map((entry) => trainerBatch(entry, overlapped));
  return {
    samplerBatchNs: latest(rings.sampler.map(samplerBatch)) ?? former.samplerBatchNs,
    trainerBatchNs: latest(trainer) ?? former.trainerBatchNs,
    standbyBatchNs: latest(standby) ?? former.standbyBatchNs,
  };
}

/** The median, rounded down to whole ns between two middle values; null of nothing. */
export function medianNs(durationsNs: readonly number[]): number | null {
  const sorted = [...durationsNs].sort((left, right) => left - right);
  const upper = sorted[Math.floor(sorted.length / 2)];
  const lower = sorted[Math.floor((sorted.length - 1) / 2)];
  if (upper === undefined || lower === undefined) return null;
  return Math.floor(lower + (upper - lower) / 2);
}

function afterWarmUp(durationsNs: readonly number[]): readonly number[] {
  return durationsNs.slice(Math.min(warmUpBatches, Math.max(durationsNs.length - 1, 0)));
}

function samplerBatch({ sampleNs, markNs, copyNs }: SamplerDurations): number {
  return sampleNs + markNs + copyNs;
}

function trainerBatch({ extractNs, trainNs }: TrainerDurations, overlapped: boolean): number {
  return overlapped ? Math.max(extractNs, trainNs) : extractNs + trainNs;
}
