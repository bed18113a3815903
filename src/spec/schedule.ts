import { counted } from './counted.ts';
import type { JobSpec, JobSpecInput, LrScheduleType, ModelType, SpecDraft } from './job-spec.ts';
import { reads } from './spec-parts.ts';
import { areRareWords, areSparse, fewText, type RareFacts } from './standardize.ts';

/**
 * How many epochs a job trains, at what learning rate, weight decay and dropout, where it leaves
 * that open (decisions 0120, 0126 and 0134). What a model has learnt goes by its steps: an epoch of
 * a graph with 140 training nodes is one step, and ten of the usual size leave most unlearnt.
 */

/** Learning rate where an epoch has many batches. */
export const usualRate = 0.003;
/** Learning rate where it has few, so that few steps are made. */
const fewBatchesRate = 0.01;
/** Learning rate of links where features are mostly 0 and not standardised. */
const rawLinksRate = 0.01;
/** Models with which that was measured and won (bench/README.md, "Defaults on six graphs"). */
const fastModels: ReadonlySet<ModelType> = new Set([
  ...(['GRAPHSAGE', 'GCN', 'GATV2', 'GAT', 'SGC'] as const),
]);
/** Those with which it was measured and did not win. */
const slowModels: ReadonlySet<ModelType> = new Set(['GIN', 'SIGN']);
/** Of Adam, for columns too rare for the training nodes; the one of GCN's authors. */
const rareWordsDecay = 5e-4;
/** Models that gain by it on every graph that was tried; of GAT one lost (decision 0126). */
const decayedModels: ReadonlySet<ModelType> = new Set(['GRAPHSAGE', 'GCN', 'SGC']);
/** An epoch has many batches from here on; more than one a step begin here, too (0108). */
const manyBatches = 32;
/** Share of hidden activations that is dropped. */
const usualDropout = 0.5;
/** From so many links a column of features on nothing is dropped: none is learnt by heart. */
const manyLinksPerColumn = 500;
/** Epochs of a job: as many as have so many batches together, within these bounds. */
const enoughBatches = 400;
/** The same of links, which are told apart long after classes are (decision 0134). */
const enoughBatchesOfLinks = 2000;
const leastEpochs = 10;
const mostEpochs = 100;

type Facts = Pick<SpecDraft, 'kind' | 'task' | 'model' | 'training' | 'features'>;

export interface ScheduleFacts extends RareFacts {
  /** Nodes or links that an epoch has (`itemsOf`); null where that is not known. */
  readonly items: number | null;
}

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
  const together = reads(spec, 'links.negatives') ? enoughBatchesOfLinks : enoughBatches;
  const enough = Math.min(mostEpochs, Math.ceil(together / batches));
  const what = `an epoch has ${counted(batches, 'batch', 'batches')}`;
  return { value: Math.max(least, enough), why: what };
}

/** The learning rate of a job, by its size of batches. */
export function automaticRate(spec: Facts, { items, columns }: ScheduleFacts): Choice<number> {
  const { optimizer } = spec.training;
  const usual = (why: string): Choice<number> => ({ value: usualRate, why });
  if (optimizer.type === 'SGD') return usual('what SGD wants was not measured');
  if (!reads(spec, 'labels')) return rateOfLinks(spec, columns);
  const { type } = spec.model;
  if (slowModels.has(type)) return usual(`a ${type} did not gain by a larger one`);
  if (!fastModels.has(type)) return usual(`what a ${type} wants was not measured`);
  const batches = batchesOf(spec, items);
  if (batches === null) return usual('it is not known what an epoch has');
  const why = `an epoch has ${counted(batches, 'batch', 'batches')}`;
  return batches < manyBatches ? { value: fewBatchesRate, why } : usual(why);
}

/** Of a job that learns links: words that stay as they are want larger steps (decision 0127). */
function rateOfLinks({ model, features }: Facts, columns: RareFacts['columns']): Choice<number> {
  if (model.type !== 'GRAPHSAGE') {
    return { value: usualRate, why: `what links of a ${model.type} want was not measured` };
  }
  return features.standardize === 'OFF' && areSparse(columns)
    ? { value: rawLinksRate, why: 'links are learnt from sparse features as they are' }
    : { value: usualRate, why: 'links are learnt from standardised or dense features' };
}

/** Whether a job learns links by the model with which that was measured (decision 0134). */
const learnsLinks = (spec: Facts) =>
  reads(spec, 'training') && reads(spec, 'links.negatives') && spec.model.type === 'GRAPHSAGE';

/**
 * How the rate goes on: down to 0 of links, whose small steps at the end order what large ones have
 * told apart. Not where a job may end early, for a schedule counts epochs that never come.
 */
export function automaticSchedule(spec: Facts): Choice<LrScheduleType> {
  if (!learnsLinks(spec)) return { value: 'CONSTANT', why: '' };
  return spec.training.earlyStop.patienceEpochs > 0
    ? { value: 'CONSTANT', why: 'the job may end early' }
    : { value: 'COSINE', why: 'small steps at the end rank links better' };
}

/** The weight decay of a job; columns that the rule of standardising calls rare words want one. */
export function automaticDecay(spec: Facts, facts: RareFacts): Choice<number> {
  const isOfNodes = reads(spec, 'training') && reads(spec, 'labels');
  const gains = spec.training.optimizer.type === 'ADAM' && decayedModels.has(spec.model.type);
  if (!isOfNodes || !gains || !areRareWords(facts)) return { value: 0, why: '' };
  return { value: rareWordsDecay, why: fewText(facts) };
}

/** The dropout of a model's hidden layers: none where links are many for their features. */
export function automaticDropout(spec: Facts, { items, columns }: ScheduleFacts): Choice<number> {
  const varying = columns?.varying ?? 0;
  if (!learnsLinks(spec) || items === null || varying === 0)
    return { value: usualDropout, why: '' };
  const why = `an epoch has ${counted(items, 'link')} for ${counted(varying, 'column')}`;
  return { value: items >= manyLinksPerColumn * varying ? 0 : usualDropout, why };
}

/** What is chosen for links alone: null is what was asked for. */
function partsOfLinks(given: JobSpecInput, spec: JobSpec, facts: ScheduleFacts): readonly Part[] {
  const { model, training } = spec;
  const asked = given.training?.lrSchedule?.type;
  return [
    [
      `schedule ${training.lrSchedule.type}`,
      asked === undefined ? automaticSchedule(spec).why : null,
    ],
    [
      `dropout ${model.dropout}`,
      given.model?.dropout === undefined ? automaticDropout(spec, facts).why : null,
    ],
  ];
}

type Part = readonly [what: string, why: string | null];

/** How all of that came about in a job, for people; empty where nothing is trained. */
export function scheduleText(given: JobSpecInput, spec: JobSpec, facts: ScheduleFacts): string {
  if (!reads(spec, 'training')) return '';
  const { epochs, optimizer } = spec.training;
  const asked = given.training?.optimizer ?? {};
  const parts: readonly Part[] = [
    [
      counted(epochs, 'epoch'),
      given.training?.epochs === undefined ? automaticEpochs(spec, facts.items).why : null,
    ],
    [
      `learning rate ${optimizer.learningRate}`,
      asked.learningRate === undefined ? automaticRate(spec, facts).why : null,
    ],
    [
      `weight decay ${optimizer.weightDecay}`,
      asked.weightDecay === undefined ? automaticDecay(spec, facts).why : null,
    ],
    ...(learnsLinks(spec) ? partsOfLinks(given, spec, facts) : []),
  ];
  return parts
    .filter(([, why]) => why !== '')
    .map(([what, why]) => (why === null ? `${what}, as asked for` : `${what}, chosen: ${why}`))
    .join('; ');
}
