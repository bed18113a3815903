// Made by "npm run build:contract" from the tables in native/node.

import type { DatasetLocation, DatasetTask } from './dataset.ts';
import type { ModelManifest, ModelOptions, Precision } from './model.ts';
import type { PredictedNodes } from './predict.ts';
import type { CacheOptions, DeviceOptions, LoopEnd, SamplingOptions, SeedOptions } from './sampler.ts';
import type { DecidingMetric, ExecutorId, HistoryConfig } from './segment.ts';

export type OptimizerType = 'ADAM' | 'ADAMW' | 'SGD';

export type WeightDecayScope = 'ALL' | 'FIRST_LAYER';

export type ScheduleType = 'CONSTANT' | 'STEP' | 'COSINE';

export interface ScheduleOptions {
  readonly type: ScheduleType;
  readonly stepEpochs: number;
  readonly gamma: number;
  readonly warmupEpochs: number;
  readonly stepsPerEpoch: number;
  /** Of the job. */
  readonly epochs: number;
}

export interface OptimizerOptions {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
  readonly weightDecayScope: WeightDecayScope;
  readonly type: OptimizerType;
  readonly momentum: number;
  readonly clipNorm: number;
  readonly nesterov: boolean;
  readonly schedule: ScheduleOptions;
}

/** A model of the user's. */
export interface ProbeOptions {
  readonly model: ModelOptions;
  /** Whether the job calls it with edge weights, in batches or in evaluations. */
  readonly weighted: boolean;
}

export interface EvaluationOptions {
  /** Receives hidden rows of exact evaluations; 0: there are none. */
  readonly scratchFd: number;
  readonly sampled: boolean;
  /** Used for sampled evaluations only; batchSize is not. */
  readonly sampling: SamplingOptions;
  /** Decides which parameters are the best, and on an early stop. */
  readonly decides: DecidingMetric;
}

export type RowReadTier = 'HOST' | 'DISK' | 'DEVICE';

export type DeviceRowSplits = 'ALL' | 'TRAIN';

export interface RowOptions {
  /** Of a propagation's row files; empty: of blocks. */
  readonly folder: string;
  /** Rows that stay together in an epoch's order. */
  readonly chunk: number;
  /** Where they are read; decides no bit. */
  readonly tier: RowReadTier;
  /** What a device holds, where that is the tier. */
  readonly deviceSplits: DeviceRowSplits;
}

export type OutputKind = 'PREDICTIONS' | 'LOGITS' | 'PROBABILITIES' | 'EMBEDDINGS';

/** A file of an inference. */
export interface OutputChoice {
  readonly kind: OutputKind;
  /** Whose rows it is made of; 0: nearest the features. */
  readonly layer: number;
}

export type LinkAsks = 'NOTHING' | 'SCORES' | 'NEAREST';

/** What is asked of the head of a model of links. */
export interface QuestionOptions {
  /** SCORES: of the pairs in pairs.npy in the folder. */
  readonly asks: LinkAsks;
  /** NEAREST: so many each. */
  readonly k: number;
  /** NEAREST: whether they are of the nodes in among.npy in the folder; else of all. */
  readonly among: boolean;
  /** NEAREST: whether those that it is linked to already are among them. */
  readonly withKnown: boolean;
}

export interface PredictionOptions {
  /** Of native/core/executor/chunk_files.h; empty: nothing is predicted. */
  readonly folder: string;
  /** Of the model. */
  readonly task: DatasetTask;
  /** LISTED: those of targets.npy in the folder. */
  readonly nodes: PredictedNodes;
  readonly outputs: readonly OutputChoice[];
  readonly question: QuestionOptions;
}

export interface HistoryOptions {
  /** Where the segment has none: of the Trainer's own. */
  readonly own: HistoryConfig;
  /** Bit l: rows that layer l gives are kept. */
  readonly levels: number;
  /** p_grad. */
  readonly gradientShare: number;
}

/** Of losses, by class or label. */
export interface ClassWeighting {
  /** One each; none: 1. */
  readonly weights: readonly number[];
  /** By how many training nodes have it. */
  readonly balanced: boolean;
}

export type LinkLoss = 'BCE' | 'BCE_BALANCED' | 'BPR' | 'SOFTMAX';

export type EvaluationNegatives = 'AUTO' | 'KEYED' | 'ALL' | 'DATASET' | 'POOL';

/** Read if the model has a head. */
export interface LinkTrainingOptions {
  readonly loss: LinkLoss;
  readonly temperature: number;
  /** Of links_val.npy and links_test.npy in the dataset's folder. */
  readonly negatives: EvaluationNegatives;
  /** Of each link, for KEYED. */
  readonly count: number;
  /** Of the graph that test links are told by; empty: that of batches. */
  readonly testFolder: string;
  /** Of that graph. */
  readonly testEdges: number;
  /** Training links count as links_train_weights.npy has it, else alike. */
  readonly weighted: boolean;
  /** What is known of links is learnt: links_train_labels.npy and so on. */
  readonly labelled: boolean;
  /** Of the labels. */
  readonly task: DatasetTask;
}

export interface TrainerOptions {
  readonly dataset: DatasetLocation;
  readonly sampling: SamplingOptions;
  readonly seeds: SeedOptions;
  readonly randomSeed: bigint;
  readonly segmentFd: number;
  readonly topologyFd: number;
  readonly executor: ExecutorId;
  readonly cache: CacheOptions;
  readonly device: DeviceOptions;
  readonly model: ModelOptions;
  readonly optimizer: OptimizerOptions;
  readonly precision: Precision;
  readonly threads: number;
  /** Extract the next batch while the present one is computed. */
  readonly prefetch: boolean;
  readonly evaluation: EvaluationOptions;
  readonly rows: RowOptions;
  readonly prediction: PredictionOptions;
  readonly history: HistoryOptions;
  readonly classWeighting: ClassWeighting;
  readonly links: LinkTrainingOptions;
}

export interface TrainerFunctions {
  /** Loads a user's model and tries it on a tiny block of each layer: for child processes. */
  modelProbe(options: ProbeOptions): Promise<ModelManifest>;
  trainerRun(options: TrainerOptions): Promise<LoopEnd>;
}
