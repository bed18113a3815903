import type { Timings } from '../records/batch-times.ts';
import type { PlanLimit, PlanWay } from '../records/job-record.ts';
import { type Fraction, fraction, isLess, larger, roundUp, sum } from './fraction.ts';
import { partsOf } from './timings.ts';

/**
 * How long an epoch takes, from what a batch costs each kind of executor. A function of numbers
 * alone; a discrete-event simulation of the loops is the tests' oracle.
 *
 * An epoch has two phases: while n Samplers sample, s = T_s / n a batch, m Trainers train at
 *
 *   before = max(t / m, steps of m)                 t = T_t + A / G, t' likewise
 *
 * and when a device has sampled what there is, its standby Trainer helps:
 *
 *   after  = max(t t' / (m t' + n t), steps of m + n)
 *
 *   SPLIT      max(s, before)
 *   SWITCHING  the same where s >= before, else after + s (1 - after / before)
 *   SHARING    s + after, with m = 0, and extraction hidden where a Trainer hides it
 *
 * Steps: without S, a step's batches are computed in rounds of as many as there are devices, then
 * applied; with S > 0 at most (S + 1) G at once, and S + 1 steps take at least one T + A.
 */

/** How the steps of a job follow each other: docs/job-spec.md, `training`. */
export interface Steps {
  /** Batches of a step, G. */
  readonly batchesPerStep: number;
  /** Staleness, S. */
  readonly staleness: number;
}

/** Size of an epoch. */
export interface EpochSize {
  /** Number of batches of an epoch, M. */
  readonly batches: number;
  /** Batches that the queue holds. */
  readonly slots: number;
}

export interface Pace {
  readonly timings: Timings;
  readonly steps: Steps;
  /** Size of an epoch; null: not known, treated as endless. */
  readonly epoch: EpochSize | null;
}

/** So many devices sample, so many train; SHARING: all sample and none only trains. */
export interface Split {
  readonly way: PlanWay;
  /** Number of Samplers, N_s. */
  readonly samplers: number;
  /** Number of Trainers, N_t. */
  readonly trainers: number;
}

export interface Prediction {
  /** Wall time of a batch in a long epoch, rounded up to whole ns. */
  readonly batchNs: number;
  /** Wall time of an epoch without its evaluation; 0 where its size is not known. */
  readonly epochNs: number;
  /** What limits the time. */
  readonly limit: PlanLimit;
  /** Batches that are computed at the same time at most. */
  readonly atOnce: number;
}

export function predict(split: Split, pace: Pace): Prediction {
  const found = batchTime(split, pace);
  return {
    batchNs: roundUp(found.time),
    epochNs: epochTime(split, pace, found),
    limit: found.limit,
    atOnce: Math.min(workersOf(split), (pace.steps.staleness + 1) * pace.steps.batchesPerStep),
  };
}

interface BatchTime {
  readonly time: Fraction;
  readonly limit: PlanLimit;
}

function batchTime(split: Split, pace: Pace): BatchTime {
  const { way, samplers, trainers } = split;
  const costs = costsOf(pace);
  const sampling = fraction(costs.sample, costs.unit * BigInt(samplers));
  const after = trainingTime(pace, costs, { trainers, standbys: samplers });
  if (way === 'SHARING') return { time: sum(sampling, after.time), limit: after.limit };
  const before = trainingTime(pace, costs, { trainers, standbys: 0 });
  if (!isLess(sampling, before.time)) return { time: sampling, limit: 'SAMPLING' };
  if (way === 'SPLIT' || !mayPay(split, pace)) return before;
  return { time: phases(sampling, before.time, after.time), limit: after.limit };
}

/** after + sampling (1 - after / before); `before` is not 0. */
function phases(sampling: Fraction, before: Fraction, after: Fraction): Fraction {
  const [a, b, c] = [sampling.numerator, before.numerator, after.numerator];
  const [da, db, dc] = [sampling.denominator, before.denominator, after.denominator];
  return fraction(c * da * b + a * (b * dc - c * db), dc * da * b);
}

/** Costs of one batch, in units of 1 / G ns: a step's apply is shared by G batches. */
interface Costs {
  readonly unit: bigint;
  readonly sample: bigint;
  /** t and t'. */
  readonly train: bigint;
  readonly standby: bigint;
  /** t' where no device is a Trainer's. */
  readonly sharing: bigint;
}

function costsOf({ timings, steps }: Pace): Costs {
  const parts = partsOf(timings);
  const unit = BigInt(steps.batchesPerStep);
  const cost = (extractNs: number, trainNs: number, hides: boolean) => {
    const extract = unit * BigInt(extractNs);
    const compute = unit * BigInt(trainNs) + BigInt(parts.applyNs);
    if (!hides) return extract + compute;
    return extract > compute ? extract : compute;
  };
  const { extractNs, trainNs, standbyExtractNs, standbyTrainNs, prefetch } = parts;
  return {
    unit,
    sample: unit * BigInt(timings.samplerBatchNs),
    train: cost(extractNs, trainNs, prefetch),
    standby: cost(standbyExtractNs, standbyTrainNs, false),
    sharing: cost(standbyExtractNs, standbyTrainNs, prefetch),
  };
}

interface Crew {
  readonly trainers: number;
  readonly standbys: number;
}

/** Time of a batch while nobody samples on these devices. */
function trainingTime(pace: Pace, costs: Costs, crew: Crew): BatchTime {
  const work = workTime(costs, crew);
  const steps = stepTime(pace, crew);
  return isLess(work, steps) ? { time: steps, limit: 'STEPS' } : { time: work, limit: 'TRAINING' };
}

/** Time of a batch by the devices' work, where nobody waits for a step. */
function workTime({ unit, train, standby, sharing }: Costs, crew: Crew): Fraction {
  const trainers = BigInt(crew.trainers);
  const standbys = BigInt(crew.standbys);
  if (trainers === 0n) return fraction(sharing, unit * standbys);
  const both = trainers * standby + standbys * train;
  if (standbys === 0n || both === 0n) return fraction(train, unit * trainers);
  return fraction(train * standby, unit * both);
}

/** Whether a standby Trainer ever takes: P > 0 needs so many READY batches (switching.ts). */
function mayPay({ trainers }: Split, { timings, epoch }: Pace): boolean {
  if (epoch === null) return true;
  const ready = BigInt(Math.min(epoch.batches, epoch.slots));
  return ready * BigInt(timings.trainerBatchNs) > BigInt(trainers) * BigInt(timings.standbyBatchNs);
}

/** Devices that hold a batch to compute. */
function workersOf({ way, samplers, trainers }: Split): number {
  return way === 'SPLIT' ? trainers : samplers + trainers;
}

/** Time of a batch by the order of steps, where devices have nothing else to do. */
function stepTime({ timings, steps }: Pace, { trainers, standbys }: Crew): Fraction {
  const { trainNs, standbyTrainNs, applyNs } = partsOf(timings);
  const workers = trainers + standbys;
  // Free devices take the next batch, so they take turns.
  const shares = BigInt(trainers) * BigInt(trainNs) + BigInt(standbys) * BigInt(standbyTrainNs);
  const count = BigInt(workers);
  const apply = fraction(BigInt(applyNs), BigInt(steps.batchesPerStep));
  const { rounds, batches } = roundsOf(workers, steps);
  // Where nobody ever waits, the devices' work is all there is.
  const inTurns = batches === rounds * workers && steps.staleness > 0 ? 0n : shares;
  const computing = fraction(inTurns * BigInt(rounds), count * BigInt(batches));
  // Nothing is computed while a step is applied.
  if (steps.staleness === 0) return sum(computing, apply);
  const atOnce = BigInt(steps.staleness + 1);
  const chained = fraction(
    shares + BigInt(applyNs) * count,
    count * BigInt(steps.batchesPerStep) * atOnce,
  );
  return larger(computing, chained, apply);
}

/** The repeating pattern of steps: how many rounds the devices need for how many batches. */
export function roundsOf(
  workers: number,
  { batchesPerStep, staleness }: Steps,
): { readonly rounds: number; readonly batches: number } {
  let batches = 0;
  let rounds = 0;
  do {
    const due = (Math.floor(batches / batchesPerStep) + staleness + 1) * batchesPerStep;
    batches += Math.min(workers, due - batches);
    rounds += 1;
  } while (batches % batchesPerStep !== 0);
  return { rounds, batches };
}

/** Time of an epoch: no batch, neither the first nor the last, is trained before it is sampled. */
function epochTime({ way }: Split, { timings, epoch }: Pace, { time, limit }: BatchTime): number {
  if (epoch === null) return 0;
  const batches = roundUp(fraction(time.numerator * BigInt(epoch.batches), time.denominator));
  if (way === 'SHARING') return batches;
  return batches + (limit === 'SAMPLING' ? timings.trainerBatchNs : timings.samplerBatchNs);
}
