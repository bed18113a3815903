import { trainsInOwnMemory } from './device-kinds.ts';
import type { JobSpec, JobSpecInput, SpecDraft } from './job-spec.ts';
import { keepsHistory } from './rules/history.ts';
import { usualRate } from './schedule.ts';
import { rangeOf } from './spec-fields.ts';
import { reads } from './spec-parts.ts';

/**
 * How many batches a step averages in a job that leaves that open: one for each device that trains,
 * so that none waits for another, and the learning rate times as much, up to a bound. Both decide
 * bits, so they are decided when the job is created, and hold whoever trains it.
 *
 * More than one only where test accuracy was measured to stay within half a point of one batch a
 * step (docs/decisions/0108-batches-per-step.md).
 */

/** Most batches per step; more were not measured. */
const mostBatches = 8;
/**
 * An epoch keeps at least so many steps, and so many for each batch of a step: with fewer,
 * accuracy was measured to fall.
 */
const leastSteps = 16;
const leastStepsPerBatch = 8;
/**
 * Factor of the learning rate. Where an epoch has few batches, steps are what is
 * missing: as many times the rate as there are batches make up for them, to the root of
 * mostBatches; beyond, steps were measured to get too long. Where it has many the root of the
 * number keeps what noise a step has, as Adam wants it (Malladi et al., arXiv:2205.10287).
 */
const manyBatches = 256;
function rateFactorOf(batchesPerStep: number, batches: number): number {
  const root = Math.sqrt(batchesPerStep);
  return batches < manyBatches ? Math.min(batchesPerStep, Math.sqrt(mostBatches)) : root;
}

/** Fields of a complete spec that decide the number of batches per step. */
type Facts = Pick<
  SpecDraft,
  'kind' | 'task' | 'model' | 'history' | 'placement' | 'resources' | 'training' | 'queue'
>;

export interface StepChoice {
  readonly batchesPerStep: number;
  readonly learningRate: number;
}

/** Chooses steps and learning rate for a job whose epochs have so many batches. */
export function automaticSteps(given: JobSpecInput, spec: Facts, batches: number): StepChoice {
  const batchesPerStep = whyOne(given, spec) === null ? mostOf(spec, batches) : 1;
  const { learningRate } = spec.training.optimizer;
  return { batchesPerStep, learningRate: learningRate * rateFactorOf(batchesPerStep, batches) };
}

function mostOf({ queue: { capacity }, ...spec }: Facts, batches: number): number {
  const bounds = [
    trainersOf(spec),
    mostBatches,
    Math.floor(batches / leastSteps),
    Math.floor(Math.sqrt(batches / leastStepsPerBatch)),
    ...(capacity === 0 ? [] : [capacity]),
  ];
  return Math.max(1, Math.min(...bounds));
}

type Crew = Pick<SpecDraft, 'kind' | 'model' | 'placement' | 'resources' | 'training'>;

/** How many devices of a job train at once, were there batches for all of them. */
export function trainersOf(spec: Crew): number {
  const { placement, resources } = spec;
  const { devices } = resources;
  if (devices === 1 || sharesCores(spec)) return 1;
  if (!reads(spec, 'placement.samplers')) return devices;
  const { policy, samplers, standby } = placement;
  if (policy === 'FIXED') return samplers < devices ? devices - samplers : devices;
  return standby === 'OFF' ? devices - 1 : devices;
}

/** Whether the cores of a Trainer that waits compute for those that do not. */
export function sharesCores(
  spec: Pick<SpecDraft, 'placement' | 'resources' | 'training'>,
): boolean {
  return spec.training.threadsPerTrainer === 0 && !trainsInOwnMemory(spec);
}

/** Why a job has one batch a step however long its epochs are; null where nothing says so. */
function whyOne(given: JobSpecInput, spec: Facts): string | null {
  const { model, training } = spec;
  if (spec.resources.devices === 1) return 'it has one device';
  if (sharesCores(spec)) return 'the cores of all its devices compute the same batch';
  if (trainersOf(spec) === 1) return 'one of its devices trains';
  if (given.training?.optimizer?.learningRate !== undefined) {
    return 'its learning rate was set, and more batches a step would need another';
  }
  const unmeasured = [
    ...(reads({ task: spec.task }, 'links') ? ['links'] : []),
    ...(training.optimizer.type === 'SGD' ? ['SGD'] : []),
    ...(training.staleness > 0 ? ['a delay'] : []),
    ...(model.type === 'TORCHSCRIPT' ? ['a TORCHSCRIPT'] : []),
    ...(keepsHistory(spec) ? ['a history'] : []),
  ];
  if (unmeasured.length === 0) return null;
  return `what more of them cost with ${unmeasured.join(' and ')} was not measured`;
}

/** How the batches a step of a job came about, for people; empty where nothing is trained. */
export function stepsText(given: JobSpecInput, spec: JobSpec): string {
  if (!reads(spec, 'training')) return '';
  const { batchesPerStep, optimizer } = spec.training;
  if ((given.training?.batchesPerStep ?? 0) !== 0) return `${batchesPerStep}, as asked for`;
  const why = whyOne(given, spec);
  if (why !== null) return `1, chosen: ${why}`;
  const trainers = trainersOf(spec);
  const kept = `${leastSteps} steps, and ${leastStepsPerBatch} for each batch of one`;
  const bound =
    batchesPerStep === trainers
      ? ''
      : `, at most ${mostBatches}, as far as an epoch keeps ${kept}, and the queue holds them`;
  const factor = Number((optimizer.learningRate / usualRate).toPrecision(3));
  const rate = batchesPerStep === 1 ? '' : `; learning rate ${usualRate} times ${factor} for that`;
  return `${batchesPerStep}, chosen: one for each of ${trainers} devices that train${bound}${rate}`;
}

/** How many of so many Trainers wait while others compute, and what would use them. */
export function waitingText(spec: JobSpec, trainers: number): string | null {
  if (!reads(spec, 'training') || sharesCores(spec)) return null;
  const { batchesPerStep, staleness } = spec.training;
  const atOnce = (staleness + 1) * batchesPerStep;
  if (trainers <= atOnce) return null;
  const { max } = rangeOf('training.batches_per_step');
  const enough = Math.min(max, Math.ceil(trainers / (staleness + 1)));
  const computed = atOnce === 1 ? '1 batch is' : `${atOnce} batches are`;
  return (
    `${trainers - atOnce} of ${trainers} Trainers will wait, as ${computed} computed at once: ` +
    `training.batches_per_step: ${enough} would use them where an epoch has as many batches, ` +
    'and needs another learning rate (docs/job-spec.md, "Batches a step")'
  );
}
