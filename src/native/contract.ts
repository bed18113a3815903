/**
 * Everything the addons export, in the addons' order: the only declaration of native functions.
 * Validation is TypeScript's: a wrong field here is a bug and throws a TypeError with its path.
 * Native failures throw, or reject with, an Error whose `code` is a NativeCode.
 * Numbers are integers up to 2^53 - 1 unless named a share, probability or rate.
 */

import type { JobSpec } from '../spec/job-spec.ts';
import type { SegmentEpoch, SegmentSnapshot } from './segment-contract.ts';

export * from './segment-contract.ts';

/** Parts of a job spec that cross the border as they are; native/node/gen reads them. */
type ModelSpec = JobSpec['model'];
type OptimizerSpec = JobSpec['training']['optimizer'];
type LrScheduleSpec = JobSpec['training']['lrSchedule'];

export type NativeCode =
  | 'SPEC_INVALID'
  | 'DATASET_NOT_FOUND'
  | 'DATASET_CORRUPT'
  | 'SHM_ALLOCATION_FAILED'
  | 'SHM_CORRUPTED'
  | 'IO'
  | 'ABORTED'
  | 'NUMERIC_DIVERGENCE'
  | 'PLUGIN_FAILED'
  | 'INTERNAL';

export interface DatasetCounts {
  readonly numNodes: number;
  /** CSC entries. */
  readonly numEdges: number;
  readonly numFeatures: number;
  readonly numClasses: number;
  readonly train: number;
  readonly val: number;
  readonly test: number;
  /** Of features.npy; derived features are float32. */
  readonly featureDtype: 'float32' | 'float16';
}

export interface DatasetLocation {
  readonly folder: string;
  readonly counts: DatasetCounts;
  /** Empty: features.npy of the folder. */
  readonly featuresPath: string;
}

export interface DatasetValidation {
  readonly problems: readonly { readonly path: string; readonly description: string }[];
  readonly problemCount: number;
}

/** options.h; RANDOM_WALK has its number of neighbours as the fanout of each hop. */
export interface SamplingOptions {
  readonly fanouts: readonly number[];
  readonly batchSize: number;
  readonly algorithm: 'KHOP_UNIFORM' | 'KHOP_WEIGHTED' | 'RANDOM_WALK' | 'LABOR' | 'KHOP_PLUGIN';
  readonly replace: boolean;
  readonly expansion: 'ALL' | 'NEW';
  /** Read for RANDOM_WALK only. */
  readonly walk: {
    readonly walks: number;
    readonly length: number;
    readonly restartProb: number;
  };
  /** Batches for which a node keeps its random number; read for LABOR only. */
  readonly laborWindow: number;
  /** Read for KHOP_PLUGIN only. */
  readonly plugin: {
    readonly path: string;
    readonly sha256: string;
    readonly options: string;
    readonly weights: boolean;
  };
  /** Edge weights 1/sqrt((d_u+1)(d_v+1)) and self weights, for GCN. */
  readonly gcnWeights: boolean;
  /** Records have room for hot ranks. */
  readonly hotRanks: boolean;
}

/**
 * The spec's model, beside what the dataset adds. A TORCHSCRIPT reads nothing but layers, inDim,
 * outDim and its script; the script is read for TORCHSCRIPT only.
 */
export interface ModelOptions extends ModelSpec {
  readonly inDim: number;
  readonly outDim: number;
}

export interface ParameterTensor {
  readonly name: string;
  /** As PyTorch has it. */
  readonly shape: readonly number[];
  /** In floats. */
  readonly offset: number;
}

export interface ModelManifest {
  readonly tensors: readonly ParameterTensor[];
  /** Length of the parameter vector, padding included. */
  readonly numFloats: number;
  /** Of a TORCHSCRIPT: columns that each layer gives. */
  readonly widths: readonly number[];
}

export type Role = 'SAMPLER' | 'TRAINER' | 'STANDBY';

export interface SegmentSpec {
  /** M. */
  readonly batchesPerEpoch: number;
  /** Only the first so many batches of each epoch; 0 = all. */
  readonly batchLimit: number;
  readonly epochs: number;
  readonly firstEpoch: number;
  /** G; S, and what is done about it. */
  readonly batchesPerStep: number;
  readonly staleness: number;
  readonly stalenessCompensation: 'PREDICT' | 'NONE';
  readonly numSlots: number;
  readonly slotBytes: number;
  readonly queueMaxBytes: number;
  readonly parameterFloats: number;
  readonly optimizerFloats: number;
  readonly numDevices: number;
  readonly maxExecutors: number;
  readonly batchSize: number;
  readonly trainNodes: number;
  /** The validation nodes after every so-many-th epoch, and after the last one; 0 = only then. */
  readonly evaluateEveryEpochs: number;
  /** Of `evaluationSizes`; 0 = nothing is evaluated. */
  readonly evaluationChunks: number;
  readonly lowWater: number;
  /** Evaluations without improvement that end the job; 0 = never. */
  readonly stopPatience: number;
  /** Share by which an accuracy must exceed the reference (early_stop.h). */
  readonly stopMinDelta: number;
}

/** An open segment; closed explicitly. */
export interface SegmentHandle {
  readonly open: unknown;
}

export interface ExecutorId {
  readonly row: number;
  readonly incarnation: number;
}

/** What a dead executor held. */
export interface ReclaimReport {
  /** Batches whose record must be made again. */
  readonly claimed: number;
  /** Batches whose record is delivered again. */
  readonly taken: number;
  /** Chunks of evaluations that are computed again. */
  readonly evaluations: number;
}

export interface StandbyEstimates {
  readonly samplerBatchNs: number;
  readonly trainerBatchNs: number;
  readonly standbyBatchNs: number;
  /** N_t. */
  readonly trainers: number;
}

export interface CacheOptions {
  /** Of `cacheRank`; empty when nothing is cached. */
  readonly orderPath: string;
  /** For a Sampler those of the largest cache, for a Trainer those of its own. */
  readonly rows: number;
  /** The feature file is larger than the memory it may take. */
  readonly featuresOnDisk: boolean;
}

export interface ExecutorOptions {
  readonly dataset: DatasetLocation;
  readonly sampling: SamplingOptions;
  readonly randomSeed: bigint;
  readonly segmentFd: number;
  readonly topologyFd: number;
  readonly executor: ExecutorId;
  readonly cache: CacheOptions;
}

export interface TrainerOptions extends ExecutorOptions {
  readonly model: ModelOptions;
  readonly optimizer: OptimizerSpec & {
    readonly schedule: LrScheduleSpec & {
      readonly stepsPerEpoch: number;
      /** Of the job. */
      readonly epochs: number;
    };
  };
  readonly threads: number;
  /** Extract the next batch while the present one is computed. */
  readonly prefetch: boolean;
  readonly evaluation: {
    /** Receives hidden rows of exact evaluations; 0: there are none. */
    readonly scratchFd: number;
    readonly sampled: boolean;
    /** Read for sampled evaluations only; batchSize is not. */
    readonly sampling: SamplingOptions;
  };
}

/** A model of the user's. */
export interface ProbeOptions {
  readonly model: ModelOptions;
  /** Whether the job calls it with edge weights, in batches or in evaluations. */
  readonly weighted: boolean;
}

export type CachePolicyName =
  | 'COMBINED'
  | 'PRESC'
  | 'PROBABILITY'
  | 'DEGREE'
  | 'RANDOM'
  | 'OPTIMAL';

/** A dataset, and how a job samples it. */
export interface FootprintOptions {
  readonly dataset: DatasetLocation;
  readonly sampling: SamplingOptions;
  readonly randomSeed: bigint;
  readonly topologyFd: number;
}

export interface RankOptions extends FootprintOptions {
  readonly policy: CachePolicyName;
  /** K. */
  readonly presampleEpochs: number;
  /** Of the job, for OPTIMAL. */
  readonly epochs: number;
  /** Receives the order: .npy, uint32 [2, nodes]: the node of each rank, the rank of each node. */
  readonly orderPath: string;
}

export interface RankTimes {
  readonly presampleNs: number;
  readonly estimateNs: number;
}

export interface CacheReportOptions extends FootprintOptions {
  /** Measured, from 0. */
  readonly epochs: number;
  /** Each K that is to be shown. */
  readonly presampleEpochs: readonly number[];
  readonly ratios: readonly number[];
  /** Receives nodes.npy and offsets.npy; empty: no dump. */
  readonly dumpFolder: string;
}

/** Rates are shares; rows and bytes are means per epoch. */
export interface CacheReport {
  readonly batchesPerEpoch: number;
  readonly inputRows: number;
  readonly inputBytes: number;
  readonly similarity: number;
  readonly epochNs: number;
  readonly policies: readonly {
    readonly policy: CachePolicyName;
    /** 0 for policies that sample nothing in advance. */
    readonly presampleEpochs: number;
    readonly rankNs: number;
    readonly cells: readonly {
      readonly ratio: number;
      readonly cacheRows: number;
      readonly hitRate: number;
      readonly bytesMoved: number;
    }[];
  }[];
}

export interface PredictOptions {
  readonly dataset: DatasetLocation;
  readonly model: ModelOptions;
  /** In manifest order, padding included. */
  readonly parameters: Float32Array;
  readonly nodes: 'ALL' | 'VAL' | 'TEST';
  /** Means over neighbours are weighted by the dataset's edge weights. */
  readonly weightedMeans: boolean;
  readonly threads: number;
  /** For hidden layers' rows; where they are more they lie in a file in `scratchFolder`. */
  readonly memoryBytes: number;
  readonly scratchFolder: string;
  readonly topologyFd: number;
  /** Receives frames (native/train/prediction_stream.h). */
  readonly outputFd: number;
}

export interface EvaluationSizes {
  /** At most, of one evaluation. */
  readonly chunks: number;
  /** Of hidden rows and what is made of them, if all are touched. */
  readonly scratchBytes: number;
  /** Private to each Trainer, beside what batches take. */
  readonly workBytes: number;
}

export type LoopEnd = 'COMPLETE' | 'STOPPED';

/** gnnd_core.node: no torch, no CUDA; for the daemon and Samplers. */
export interface CoreAddon {
  hostInstructionSet(): 'SCALAR' | 'AVX2' | 'AVX512' | 'NEON';
  /** Cores this process may run on. */
  hostCores(): readonly number[];
  hostPin(cores: readonly number[]): void;
  /** SIGKILL this process when its parent dies; false when the parent is dead already. */
  hostDieWithParent(parentPid: number): boolean;
  /** A descriptor that holds the lock for the process's life; null when another holds it. */
  hostLock(path: string): number | null;
  /** native/core/base/bus_error.h */
  hostExplainBusErrors(exitCode: number): void;
  /** After so long, writes `line` to stderr and ends this process, whatever its threads do. */
  hostExitAfter(delayMs: number, exitCode: number, line: string): void;
  datasetValidate(folder: string, counts: DatasetCounts): Promise<DatasetValidation>;
  datasetStandardize(inputPath: string, outputPath: string): Promise<void>;
  /** An empty memfd, the caller's to close. Filling seals it; `alias`: to sample by edge weight. */
  topologyReserve(): number;
  topologyFill(fd: number, location: DatasetLocation, alias: boolean): Promise<void>;
  /** Not for TORCHSCRIPT: `modelProbe`. */
  modelManifest(model: ModelOptions): ModelManifest;
  evaluationSizes(options: {
    readonly counts: DatasetCounts;
    readonly model: ModelOptions;
    /** On samples, not exact. */
    readonly sampled: boolean;
    /** Of a Trainer. */
    readonly threads: number;
    /** Of the model's manifest. */
    readonly widths: readonly number[];
  }): EvaluationSizes;
  /** Sparse memory, or with a folder an unnamed file in it; the caller closes it. */
  evaluationScratch(bytes: number, folder: string): number;
  recordSlotBytes(counts: DatasetCounts, sampling: SamplingOptions): number;

  segmentDefaultSlots(options: {
    readonly batchesPerStep: number;
    readonly staleness: number;
    readonly numDevices: number;
    readonly batchesPerEpoch: number;
    readonly queueMaxBytes: number;
    /** 0 = unknown. */
    readonly recordBytes: number;
  }): number;
  /** The caller closes both. */
  segmentCreate(spec: SegmentSpec): { readonly segment: SegmentHandle; readonly fd: number };
  segmentClose(segment: SegmentHandle): void;
  segmentRegister(segment: SegmentHandle, role: Role, device: number): ExecutorId;
  segmentSnapshot(segment: SegmentHandle): SegmentSnapshot;
  segmentEpoch(segment: SegmentHandle, epochIndex: number): SegmentEpoch;
  /** Frees what a dead executor held; it must have been reaped. */
  segmentReclaim(segment: SegmentHandle, incarnation: number): Promise<ReclaimReport>;
  segmentCommand(segment: SegmentHandle, command: 'RUN' | 'PAUSE'): void;
  segmentStandby(
    segment: SegmentHandle,
    policy: 'AUTO' | 'OFF' | 'ALWAYS',
    armed: boolean,
    estimates: StandbyEstimates,
  ): void;
  segmentAbort(segment: SegmentHandle, message: string): void;
  /** `at` is the version (LAST) or the epoch (BEST) of the copy. */
  segmentParameters(
    segment: SegmentHandle,
    which: 'LAST' | 'BEST',
  ): { readonly at: number; readonly data: Float32Array };

  samplerRun(options: ExecutorOptions): Promise<LoopEnd>;

  /** Samples whole epochs: for child processes. */
  cacheRank(options: RankOptions): Promise<RankTimes>;
  cacheReport(options: CacheReportOptions): Promise<CacheReport>;
}

/** gnnd_train.node: libtorch; for Trainers. */
export interface TrainAddon {
  /** Loads a user's model and tries it on a tiny block of each layer: for child processes. */
  modelProbe(options: ProbeOptions): Promise<ModelManifest>;
  trainerRun(options: TrainerOptions): Promise<LoopEnd>;

  /** Logits and classes of nodes with full neighbourhoods. ABORTED when nobody reads them. */
  modelPredict(options: PredictOptions): Promise<void>;
}
