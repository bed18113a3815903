import { EvaluationMethod } from '../../src/api/gen/gnnd/v1/evaluation_pb.ts';
import { Prefetch, Standardize } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import {
  JobTask,
  KnownLinks,
  LinkHead,
  LinkLoss,
  MessagesAtTest,
  NegativeMethod,
} from '../../src/api/gen/gnnd/v1/links_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { Expansion, SamplingAlgorithm } from '../../src/api/gen/gnnd/v1/sampling_pb.ts';
import {
  Determinism,
  LrScheduleType,
  OptimizerType,
  Precision,
  StalenessCompensation,
} from '../../src/api/gen/gnnd/v1/training_pb.ts';
import type { SpecInit } from './crews.ts';

/**
 * Specs whose models no crew and no kill may change: test/thorough/determinism.test.ts tries all of
 * them on all of these. They have enough epochs to be caught in the middle.
 */

export const batchSize = 4;
/** Batches of that size that an epoch of cora has. */
export const batchesPerEpoch = 35;
export const patienceEpochs = 6;
export const plannedEpochs = 300;

export const common: SpecInit = {
  dataset: 'cora',
  timeouts: { stallMs: 2000n },
  restart: { executorRestarts: 100 },
};
export const training = { batchSize, randomSeed: 7n };
const sage = { type: ModelType.GRAPHSAGE, hiddenDim: 16, dropout: 0.5 };

/** Each takes part in the bits, or in when and where work is done. */
export const everything: SpecInit = {
  ...common,
  model: { type: ModelType.GATV2, hiddenDim: 16, heads: 2, dropout: 0.5, attentionDropout: 0.3 },
  sampling: {
    algorithm: SamplingAlgorithm.LABOR,
    fanouts: [10, 5],
    labor: { dependencyWindow: 4 },
  },
  features: { standardize: Standardize.ON },
  cache: { ratio: 0.1, standbyRatio: 0.3, prefetch: Prefetch.ON },
  training: {
    ...training,
    epochs: plannedEpochs,
    staleness: 2,
    stalenessCompensation: StalenessCompensation.PREDICT,
    batchesPerStep: 3,
    optimizer: { type: OptimizerType.ADAMW, learningRate: 0.003, clipNorm: 2 },
    lrSchedule: { type: LrScheduleType.COSINE, warmupEpochs: 2 },
    earlyStop: { patienceEpochs, minDelta: 0 },
    determinism: Determinism.STRICT,
    balanceClasses: true,
  },
  // In chunks that lie in a file, whose number and order no crew decides.
  evaluation: { method: EvaluationMethod.EXACT, maxBytes: 1n },
};

export const serial: SpecInit = {
  ...common,
  model: sage,
  sampling: { fanouts: [10, 5] },
  training: {
    ...training,
    epochs: 24,
    staleness: 0,
    batchesPerStep: 1,
    precision: Precision.BFLOAT16,
  },
  evaluation: { everyEpochs: 3, method: EvaluationMethod.SAMPLED, fanouts: [4, 3] },
};

/** Embeddings take a few rows of the cache. */
export const historyOfOneLevel: SpecInit = {
  ...common,
  model: sage,
  sampling: { fanouts: [10, 5] },
  cache: { ratio: 0.2 },
  training: { ...training, epochs: 12 },
  history: { staleSteps: 20n, gradientShare: 0.9, maxBytes: 60_000n },
};

/** Several levels, batches of a step that see the same, a buffer that goes round; one row stays. */
export const historyOfAllLevels: SpecInit = {
  ...common,
  model: { type: ModelType.GATV2, hiddenDim: 16, heads: 2, dropout: 0.3 },
  sampling: { fanouts: [5, 4, 3] },
  cache: { ratio: 0.003 },
  training: { ...training, epochs: 12, batchesPerStep: 3 },
  history: {
    staleSteps: 6n,
    gradientShare: 0.8,
    startStep: 10n,
    levels: [1, 2],
    maxBytes: 40_000n,
  },
};

const evaluatedLinks = {
  split: { validation: 0.05, test: 0.1, randomSeed: 3n },
  evaluation: { count: 100 },
};
/** Pairs of cora's 5,278 links: as many batches as of its training nodes. */
export const links: SpecInit = {
  ...common,
  task: JobTask.LINKS,
  links: { ...evaluatedLinks, negatives: { count: 2 } },
  model: sage,
  sampling: { fanouts: [5, 5] },
  features: { standardize: Standardize.ON },
  cache: { ratio: 0.1, standbyRatio: 0.3 },
  training: { ...training, batchSize: 129, epochs: 12, staleness: 1, batchesPerStep: 2 },
};

/** A perceptron, windows of one list of negatives, draws that batches share. */
export const linksOfJointNegatives: SpecInit = {
  ...links,
  links: {
    ...evaluatedLinks,
    ...{ head: LinkHead.MLP, loss: LinkLoss.SOFTMAX, temperature: 0.5 },
    negatives: { method: NegativeMethod.JOINT, count: 3 },
  },
  sampling: {
    algorithm: SamplingAlgorithm.LABOR,
    fanouts: [5, 5],
    labor: { dependencyWindow: 4 },
  },
};

/**
 * A matrix, negatives by degree that are drawn again where they are links, and a test that is told
 * along links of validation.
 */
export const linksOfDegrees: SpecInit = {
  ...links,
  links: {
    ...evaluatedLinks,
    ...{ head: LinkHead.BILINEAR, loss: LinkLoss.BPR },
    messagesAtTest: MessagesAtTest.TRAIN_VAL,
    negatives: { method: NegativeMethod.DEGREE, count: 2, known: KnownLinks.AVOID },
  },
  model: { type: ModelType.GCN, hiddenDim: 16, dropout: 0.5 },
};

/** Heads of links, each with a loss of its own, and one with another model. */
const linkHeads = {
  MLP: {
    links: { head: LinkHead.MLP, loss: LinkLoss.SOFTMAX, temperature: 0.5 },
  },
  BILINEAR: {
    links: { head: LinkHead.BILINEAR, loss: LinkLoss.BPR },
    model: { type: ModelType.GCN, hiddenDim: 16, dropout: 0.5 },
  },
} satisfies Readonly<Record<string, SpecInit>>;

/** Kinds of negatives, with each choice for those that are links. */
const linkNegatives = {
  UNIFORM: { count: 2, known: KnownLinks.ALLOW },
  DEGREE: { method: NegativeMethod.DEGREE, count: 2, known: KnownLinks.AVOID },
  JOINT: { method: NegativeMethod.JOINT, count: 3, known: KnownLinks.MASK },
};

/** With images every few batches. */
export function linksOf(
  head: keyof typeof linkHeads,
  negatives: keyof typeof linkNegatives,
): SpecInit {
  const { links: ofHead, ...others } = linkHeads[head];
  return {
    ...links,
    ...others,
    links: { ...evaluatedLinks, ...ofHead, negatives: linkNegatives[negatives] },
    sampling: { fanouts: [4, 3] },
    training: { ...links.training, epochs: 8 },
    checkpoint: { everyEpochs: 1, everySteps: 7n },
  };
}

const besideACache: SpecInit = {
  ...common,
  cache: { ratio: 0.1 },
  training: { ...training, epochs: 24, staleness: 1 },
};

export const sageSampling = { fanouts: [3, 2] };
export const localityOfSage: SpecInit = {
  ...besideACache,
  model: sage,
  sampling: { ...sageSampling, locality: { maxScale: 4, hopNodes: 300 } },
};
/** A whole hop between, and each node once. */
export const gcnSampling = { fanouts: [3, -1, 2], expansion: Expansion.NEW };
export const localityOfGcn: SpecInit = {
  ...besideACache,
  model: { type: ModelType.GCN, hiddenDim: 16, dropout: 0.5 },
  sampling: { ...gcnSampling, locality: { maxScale: 8, ratio: 0.3, hopNodes: 300 } },
};
