import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  Activation,
  LrScheduleType,
  ModelType,
  Normalization,
  OptimizerType,
  SamplingAlgorithm,
} from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { expectSameModels, type SpecInit } from '../support/crews.ts';
import { repository, TestDaemon } from '../support/daemon.ts';
import { refusalOf } from '../support/refusal.ts';
import { ringGraph } from '../support/ring-graph.ts';
import { folderOf } from '../unit/datasets/workbench.ts';

/** Every model and optimizer trains through the daemon, and who does what changes no bit. */

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 4 });
  await daemon.import('cora', join(repository, 'test', 'fixtures', 'cora.npz'));
  await daemon.import('ring', folderOf(ringGraph.files));
});

afterAll(async () => {
  await daemon.stop();
});

const fanouts = { fanouts: [10, 5] };
const walks = { algorithm: SamplingAlgorithm.RANDOM_WALK };

type Part<K extends 'model' | 'sampling' | 'training'> = NonNullable<SpecInit[K]>;

function spec(
  model: Part<'model'>,
  sampling: Part<'sampling'>,
  training: Part<'training'>,
): SpecInit {
  return {
    dataset: 'cora',
    model: { hiddenDim: 16, layers: 2, ...model },
    sampling,
    training: {
      epochs: 12,
      batchSize: 10,
      staleness: 2,
      randomSeed: 5n,
      threadsPerTrainer: 1,
      ...training,
    },
    timeouts: { stallMs: 10_000n },
  };
}

const fast = { optimizer: { learningRate: 0.01 } };
// Its projections of 1,433 columns make a step cost a hundred times another model's.
const few = { epochs: 8, batchSize: 20, optimizer: { learningRate: 0.001 } };
const models = [
  ['graphsage', { type: ModelType.GRAPHSAGE, normalization: Normalization.L2 }, fanouts, fast],
  ['gcn', { type: ModelType.GCN, residual: true }, fanouts, fast],
  [
    'gat',
    { type: ModelType.GAT, heads: 4, activation: Activation.ELU, attentionDropout: 0.3 },
    fanouts,
    fast,
  ],
  ['gatv2', { type: ModelType.GATV2, heads: 2, normalization: Normalization.LAYER }, fanouts, fast],
  [
    'pinsage',
    { type: ModelType.PINSAGE, activation: Activation.LEAKY_RELU, dropout: 0 },
    walks,
    few,
  ],
] as const;

test.each(models)('%s learns, the same with every crew', async (id, model, sampling, training) => {
  const job = await expectSameModels(daemon, id, spec(model, sampling, training));
  // The largest of the seven classes has 30 % of the nodes.
  expect(job.result?.testAccuracyBest).toBeGreaterThan(0.5);
});

const optimizers = [
  [
    'sgd',
    'ring',
    {
      // Enough to be caught in the middle.
      epochs: 200,
      optimizer: { type: OptimizerType.SGD, learningRate: 0.05, momentum: 0.9, clipNorm: 2 },
      lrSchedule: { type: LrScheduleType.STEP, stepEpochs: 100, gamma: 0.5 },
    },
  ],
  [
    'adamw',
    'cora',
    {
      optimizer: { type: OptimizerType.ADAMW, learningRate: 0.01, weightDecay: 0.01 },
      lrSchedule: { type: LrScheduleType.COSINE, warmupEpochs: 2 },
    },
  ],
] as const;

test.each(optimizers)('%s learns, the same with every crew', async (id, dataset, training) => {
  const model = { type: ModelType.GRAPHSAGE };
  const job = await expectSameModels(daemon, id, { ...spec(model, fanouts, training), dataset });
  expect(job.result?.testAccuracyBest).toBeGreaterThan(dataset === 'cora' ? 0.5 : 0.8);
});

describe('a wrong model or optimizer is answered with its field', () => {
  const gat = { type: ModelType.GAT };
  const { LABOR } = SamplingAlgorithm;
  test.each([
    ['heads that do not share the width', { ...gat, heads: 3 }, {}, {}, 'spec.model.hidden_dim'],
    ['no heads', { ...gat, heads: 0 }, {}, {}, 'spec.model.heads'],
    ['heads without attention', { heads: 2 }, {}, {}, 'spec.model.heads'],
    [
      'all attention dropped',
      { ...gat, attentionDropout: 1 },
      {},
      {},
      'spec.model.attention_dropout',
    ],
    ['PinSAGE without walks', { type: ModelType.PINSAGE }, {}, {}, 'spec.sampling.algorithm'],
    ['GCN on LABOR', { type: ModelType.GCN }, { algorithm: LABOR }, {}, 'spec.sampling.algorithm'],
    ['GCN with replacement', { type: ModelType.GCN }, { replace: true }, {}, 'sampling.replace'],
    ['an unknown activation', { activation: 9 as Activation }, {}, {}, 'spec.model.activation'],
    [
      'momentum without SGD',
      {},
      {},
      { optimizer: { momentum: 0.9 } },
      'spec.training.optimizer.momentum',
    ],
    [
      'a negative clip norm',
      {},
      {},
      { optimizer: { clipNorm: -1 } },
      'spec.training.optimizer.clip_norm',
    ],
    [
      'gamma without steps',
      {},
      {},
      { lrSchedule: { gamma: 0.5 } },
      'spec.training.lr_schedule.gamma',
    ],
    [
      'a warm-up longer than the job',
      {},
      {},
      { lrSchedule: { warmupEpochs: 13 } },
      'spec.training.lr_schedule.warmup_epochs',
    ],
  ])('%s', async (_, model, sampling, training, field) => {
    const wrong = spec(model, { ...fanouts, ...sampling }, training);
    const { code, fields } = await refusalOf(daemon.createJob('wrong', wrong));
    expect(code).toBe(status.INVALID_ARGUMENT);
    expect(Object.keys(fields)).toEqual([expect.stringContaining(field)]);
  });
});
