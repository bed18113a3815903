import type { MessageInitShape } from '@bufbuild/protobuf';
import { Activation, ModelType, Normalization } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { Expansion, SamplingAlgorithm } from '../../src/api/gen/gnnd/v1/sampling_pb.ts';
import {
  LrScheduleType,
  OptimizerType,
  Precision,
  type TrainingSpec,
  type TrainingSpecSchema,
  WeightDecayScope,
} from '../../src/api/gen/gnnd/v1/training_pb.ts';
import type { SpecInit } from './crews.ts';

/** Every sampler, model, optimizer and schedule in one job or another, two new things at a time. */

export interface Option {
  /** Cora, unless it needs the weights of the ring. */
  readonly dataset?: 'cora' | 'ring';
  readonly model: NonNullable<SpecInit['model']>;
  readonly sampling?: NonNullable<SpecInit['sampling']>;
  readonly training?: Exclude<MessageInitShape<typeof TrainingSpecSchema>, TrainingSpec>;
  readonly cache?: NonNullable<SpecInit['cache']>;
}

export function specOf({ dataset = 'cora', model, sampling, training, cache }: Option): SpecInit {
  return {
    dataset,
    ...(cache === undefined ? {} : { cache }),
    model: { hiddenDim: 16, layers: 2, ...model },
    sampling: sampling ?? { fanouts },
    training: {
      epochs: 12,
      batchSize: 10,
      staleness: 2,
      randomSeed: 5n,
      threadsPerTrainer: 1,
      optimizer: { learningRate: 0.01 },
      ...training,
    },
    timeouts: { stallMs: 10_000n },
  };
}

const fanouts = [10, 5];
const { KHOP_WEIGHTED, RANDOM_WALK, LABOR } = SamplingAlgorithm;
const { GRAPHSAGE, GCN, GAT, GATV2, PINSAGE, GIN, TRANSFORMER } = ModelType;

const bfloat16 = { precision: Precision.BFLOAT16 };

// The largest of cora's seven classes has 30 % of the nodes; the ring has two classes.
const onCora = { accuracy: 0.5 };
const onRing = { accuracy: 0.8, dataset: 'ring' } as const;

export const options: Readonly<Record<string, Option & { readonly accuracy: number }>> = {
  'graphsage-l2-with-replacement': {
    ...onCora,
    model: { type: GRAPHSAGE, normalization: Normalization.L2 },
    sampling: { fanouts, replace: true },
  },
  'graphsage-locality-layer-norm': {
    ...onCora,
    model: { type: GRAPHSAGE, normalization: Normalization.LAYER },
    sampling: { fanouts: [4, 3], locality: { maxScale: 2.5, hopNodes: 500 } },
    cache: { ratio: 0.2 },
  },
  'gcn-residual-new-nodes': {
    ...onCora,
    model: { type: GCN, residual: true },
    sampling: { fanouts, expansion: Expansion.NEW },
  },
  'gcn-whole-neighbourhoods': {
    accuracy: 0.7,
    model: { type: GCN, dropout: 0.5, inputDropout: 0.5 },
    sampling: { fanouts: [-1, -1] },
    training: {
      ...{ epochs: 30, batchSize: 140, staleness: 0 },
      optimizer: {
        learningRate: 0.01,
        weightDecay: 5e-4,
        weightDecayScope: WeightDecayScope.FIRST_LAYER,
      },
    },
  },
  'weighted-sgd-steps': {
    ...onRing,
    model: { type: GRAPHSAGE },
    sampling: { fanouts, algorithm: KHOP_WEIGHTED },
    training: {
      epochs: 60,
      optimizer: { type: OptimizerType.SGD, learningRate: 0.05, momentum: 0.9, clipNorm: 2 },
      lrSchedule: { type: LrScheduleType.STEP, stepEpochs: 30, gamma: 0.5 },
    },
  },
  'weighted-with-replacement': {
    ...onRing,
    model: { type: GRAPHSAGE },
    sampling: { fanouts, algorithm: KHOP_WEIGHTED, replace: true },
    training: { epochs: 60 },
  },
  'pinsage-walks': {
    ...onCora,
    model: { type: PINSAGE, activation: Activation.LEAKY_RELU, dropout: 0 },
    sampling: {
      algorithm: RANDOM_WALK,
      walk: { walks: 8, length: 3, restartProb: 0.5, neighbors: 6 },
    },
    // This model's projections of 1,433 columns make a step cost a hundred times another's.
    training: { epochs: 8, batchSize: 20, optimizer: { learningRate: 0.001 } },
  },
  'gat-elu-labor': {
    ...onCora,
    model: { type: GAT, heads: 4, activation: Activation.ELU, attentionDropout: 0.3 },
    sampling: { fanouts, algorithm: LABOR },
  },
  'gatv2-layer-norm-labor-window-adamw-cosine': {
    ...onCora,
    model: { type: GATV2, heads: 2, normalization: Normalization.LAYER },
    sampling: { fanouts, algorithm: LABOR, labor: { dependencyWindow: 4 } },
    training: {
      optimizer: { type: OptimizerType.ADAMW, learningRate: 0.01, weightDecay: 0.01 },
      lrSchedule: { type: LrScheduleType.COSINE, warmupEpochs: 2 },
    },
  },
  'gin-whole-neighbourhoods-layer-norm': {
    ...onCora,
    model: { type: GIN, normalization: Normalization.LAYER },
    sampling: { fanouts: [-1, -1] },
    training: { optimizer: { learningRate: 0.003 } },
  },
  'transformer-elu-attention-dropout-bfloat16': {
    ...onCora,
    model: { type: TRANSFORMER, heads: 4, activation: Activation.ELU, attentionDropout: 0.3 },
    training: bfloat16,
  },
  'gcn-whole-neighbourhoods-bfloat16': {
    accuracy: 0.7,
    model: { type: GCN, dropout: 0.5, inputDropout: 0.5 },
    sampling: { fanouts: [-1, -1] },
    training: { ...bfloat16, ...{ epochs: 30, batchSize: 140, staleness: 0 } },
  },
  'gat-residual-bfloat16': {
    ...onCora,
    model: { type: GAT, heads: 4, activation: Activation.ELU, residual: true },
    training: bfloat16,
  },
  'pinsage-bfloat16': {
    ...onCora,
    model: { type: PINSAGE },
    sampling: { algorithm: RANDOM_WALK },
    training: { ...bfloat16, ...{ epochs: 8, batchSize: 20, optimizer: { learningRate: 0.001 } } },
  },
};
