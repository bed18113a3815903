import { counted } from './counted.ts';
import type { JobSpec, JobSpecInput, ModelType, SpecDraft } from './job-spec.ts';
import { reads } from './spec-parts.ts';

/**
 * How many epochs a job trains, and at what learning rate, where it leaves that open (decision
 * 0120). What a model has learnt goes by its steps: an epoch of a graph with 140 training nodes is
 * one step, and ten of the usual size leave most unlearnt.
 */

/** Learning rate where an epoch has many batches. */
export const usualRate = 0.003;
/** Learning rate where it has few, so that few steps are made. */
const fewBatchesRate = 0.01;
/** Models with which that was measured (bench/README.md, "Epochs and learning rates"). */
const measuredModels: ReadonlySet<ModelType> = new Set(['GRAPHSAGE', 'GCN', 'GATV2']);
/** An epoch has many batches from here on; more than one a step begin here, too (0108). */
const manyBatches = 32;
/** Epochs of a job: as many as have so many batches together, within these bounds. */
const enoughBatches = 400;
const leastEpochs = 10;
const mostEpochs = 100;

type Facts = Pick<SpecDraft, 'kind' | 'task' | 'model' | 'training'>;

interface Choice<Value> {
  readonly value: Value;
  readonly why: string;
}

/** Batches of an epoch; null where the number of its items is not known. */
function batchesOf({ training }: Facts, items: number | null): number | null {
  return items === null ? null : Math.max(1, Math.ceil(items / training.batchSize));
}

/** The epochs of a job that learns from so many nodes or links (`itemsOf`). */
export function automaticEpochs(spec: Facts, items: number | null): Choice<number> {
  const batches = batchesOf(spec, items);
  const { warmupEpochs } = spec.training.lrSchedule;
  const least = Math.max(leastEpochs, warmupEpochs);
  if (batches === null) return { value: least, why: 'it is not known what an epoch has' };
  const enough = Math.min(mostEpochs, Math.ceil(enoughBatches / batches));
  const what = `an epoch has ${counted(batches, 'batch', 'batches')}`;
  return { value: Math.max(least, enough), why: what };
}

/** The learning rate of a job, by its size of batches. */
export function automaticRate(spec: Facts, items: number | null): Choice<number> {
  const { optimizer } = spec.training;
  const usual = (why: string): Choice<number> => ({ value: usualRate, why });
  if (optimizer.type === 'SGD') return usual('what SGD wants was not measured');
  if (!reads(spec, 'labels')) return usual('what links want was not measured');
  if (!measuredModels.has(spec.model.type)) {
    return usual(`what a ${spec.model.type} wants was not measured`);
  }
  const batches = batchesOf(spec, items);
  if (batches === null) return usual('it is not known what an epoch has');
  const why = `an epoch has ${counted(batches, 'batch', 'batches')}`;
  return batches < manyBatches ? { value: fewBatchesRate, why } : usual(why);
}

/** How epochs and learning rate of a job came about, for people; empty where nothing is trained. */
export function scheduleText(given: JobSpecInput, spec: JobSpec, items: number | null): string {
  if (!reads(spec, 'training')) return '';
  const { epochs, optimizer } = spec.training;
  const { learningRate } = given.training?.optimizer ?? {};
  const length = counted(epochs, 'epoch');
  const rate = `learning rate ${optimizer.learningRate}`;
  const epochsText =
    given.training?.epochs === undefined
      ? `${length}, chosen: ${automaticEpochs(spec, items).why}`
      : `${length}, as asked for`;
  const rateText =
    learningRate === undefined
      ? `${rate}, chosen: ${automaticRate(spec, items).why}`
      : `${rate}, as asked for`;
  return `${epochsText}; ${rateText}`;
}
