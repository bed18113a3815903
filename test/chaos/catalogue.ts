import { EvaluationMethod } from '../../src/api/gen/gnnd/v1/evaluation_pb.ts';
import { Standardize } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import {
  InferenceFormat,
  InferenceOutput,
  JobKind,
} from '../../src/api/gen/gnnd/v1/inference_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { DeviceChoice, StandbyPolicy } from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import { SamplingAlgorithm } from '../../src/api/gen/gnnd/v1/sampling_pb.ts';
import { Determinism, StalenessCompensation } from '../../src/api/gen/gnnd/v1/training_pb.ts';
import { crew, type SpecInit } from '../support/crews.ts';

/** The jobs of which chaos draws: each kind that gnnd runs, small, and long enough to be hit. */

export interface Kind {
  readonly name: string;
  readonly spec: SpecInit;
  /** Who may work on it; the first one makes the model that all others must make, too. */
  readonly crews: readonly SpecInit[];
  /** Nothing is promised of its bits, but each batch once. */
  readonly isRelaxed?: true;
}

/** Devices of the daemon that the crews below ask for. */
export const cpuDevices = 5;
export const simulated = ['--sim-devices', '0,1', '--sim-memory-bytes', '200000000'] as const;

/** An epoch of cora has 35 batches of four. */
const batchSize = 4;
const sampled: SpecInit = { dataset: 'cora', sampling: { fanouts: [10, 5] } };
const alone: SpecInit = { resources: { devices: 1 } };
const rowCrews = [1, 2, 3].map((devices): SpecInit => ({ resources: { devices } }));
const crews = [
  crew(1, 1),
  crew(2, 2),
  crew(1, 3),
  crew(3, 1),
  crew(2, 1, StandbyPolicy.ALWAYS),
  alone,
];

/** What an inference predicts with: trained before anything is disturbed. */
export const trainedModel = {
  id: 'model',
  spec: {
    dataset: 'crowd',
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 64 },
    sampling: { fanouts: [3, 3, 3] },
    evaluation: { everyEpochs: 0 },
    training: { epochs: 1, batchSize: 500 },
  } satisfies SpecInit,
};

export const kinds: readonly Kind[] = [
  {
    name: 'sampled',
    spec: {
      ...sampled,
      model: { type: ModelType.GRAPHSAGE, hiddenDim: 16, dropout: 0.5 },
      cache: { ratio: 0.1 },
      training: { epochs: 80, batchSize, staleness: 2, batchesPerStep: 1 },
    },
    crews,
  },
  {
    name: 'grouped',
    spec: {
      ...sampled,
      model: { type: ModelType.GATV2, hiddenDim: 16, heads: 2, attentionDropout: 0.3 },
      sampling: { algorithm: SamplingAlgorithm.LABOR, fanouts: [8, 4] },
      features: { standardize: Standardize.ON },
      training: {
        ...{ epochs: 40, batchSize, staleness: 1, batchesPerStep: 3 },
        stalenessCompensation: StalenessCompensation.PREDICT,
        earlyStop: { patienceEpochs: 30, minDelta: 0 },
      },
      evaluation: { method: EvaluationMethod.SAMPLED, fanouts: [4, 3] },
    },
    crews,
  },
  {
    name: 'standby',
    spec: {
      ...sampled,
      model: { type: ModelType.GCN, hiddenDim: 16 },
      training: { epochs: 80, batchSize, staleness: 1, batchesPerStep: 1 },
      evaluation: { everyEpochs: 3 },
    },
    crews: [
      crew(2, 1, StandbyPolicy.ALWAYS),
      crew(3, 1, StandbyPolicy.ALWAYS),
      crew(2, 3, StandbyPolicy.ALWAYS),
      alone,
    ],
  },
  {
    name: 'history',
    spec: {
      ...sampled,
      model: { type: ModelType.GRAPHSAGE, hiddenDim: 16 },
      training: { epochs: 40, batchSize },
      history: { staleSteps: 20n, gradientShare: 0.9 },
    },
    crews: [crew(1, 1), crew(2, 2), crew(1, 3), alone],
  },
  {
    name: 'rows',
    spec: {
      dataset: 'cora',
      model: { type: ModelType.SIGN, hiddenDim: 16 },
      propagation: { hops: 2 },
      training: { epochs: 150, batchSize, staleness: 1, batchesPerStep: 2 },
    },
    crews: rowCrews,
  },
  {
    name: 'inference',
    spec: {
      kind: JobKind.INFERENCE,
      inference: {
        job: trainedModel.id,
        outputs: [InferenceOutput.LOGITS],
        formats: [InferenceFormat.NPY],
      },
    },
    crews: rowCrews,
  },
  {
    name: 'simulated',
    spec: {
      ...sampled,
      model: { type: ModelType.GRAPHSAGE, hiddenDim: 16, dropout: 0.5 },
      training: { epochs: 12, batchSize: 20, staleness: 1 },
      resources: { devices: 2, deviceKind: DeviceChoice.SIM },
    },
    crews: [
      { ...crew(1, 1), resources: { devices: 2, deviceKind: DeviceChoice.CPU } },
      { ...crew(1, 1), resources: { devices: 2, deviceKind: DeviceChoice.SIM } },
    ],
  },
  {
    name: 'relaxed',
    spec: {
      ...sampled,
      model: { type: ModelType.GRAPHSAGE, hiddenDim: 16 },
      training: { epochs: 80, batchSize, staleness: 2, determinism: Determinism.RELAXED },
    },
    crews: [crew(1, 1), crew(1, 3), crew(2, 2)],
    isRelaxed: true,
  },
];
