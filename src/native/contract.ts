/**
 * Everything the addons export, in the addons' order: the only declaration of native functions.
 * Validation is TypeScript's: a wrong field here is a bug and throws a TypeError with its path.
 * Native failures throw, or reject with, an Error whose `code` is a NativeCode.
 * Numbers are integers up to 2^53 - 1 unless named a share, probability or rate.
 */

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

export interface ModelOptions {
  readonly type: 'GRAPHSAGE' | 'GCN' | 'GAT' | 'GATV2' | 'PINSAGE' | 'TORCHSCRIPT';
  readonly layers: number;
  readonly inDim: number;
  readonly hiddenDim: number;
  readonly outDim: number;
  readonly dropout: number;
  readonly inputDropout: number;
  /** 1 without attention. */
  readonly heads: number;
  readonly attentionDropout: number;
  readonly activation: 'RELU' | 'ELU' | 'LEAKY_RELU';
  readonly normalization: 'NONE' | 'L2' | 'LAYER';
  readonly residual: boolean;
  /** Read for TORCHSCRIPT only, which reads nothing else but layers, inDim and outDim. */
  readonly script: { readonly path: string; readonly sha256: string };
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
  readonly evaluation: 'NONE' | 'LAST_EPOCH' | 'EVERY_EPOCH';
  readonly lowWater: number;
  /** Evaluations without improvement that end the job; 0 = never. Needs EVERY_EPOCH. */
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

/** Upper bounds of `Times.buckets` in seconds; one more bucket follows for the rest. */
export const stageBoundsSeconds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const;
export const waitBoundsSeconds = [...stageBoundsSeconds, 60, 120] as const;

/** Index of `ExecutorSnapshot.stages`. */
export const stages = [
  'SAMPLE',
  'MARK',
  'COPY',
  'PRUNE',
  'EXTRACT',
  'TRAIN',
  'APPLY',
  'EVALUATE',
] as const;

/** Index of `ExecutorSnapshot.waits`. */
export const waitSides = ['ENQUEUE', 'DEQUEUE', 'DUE', 'TURN', 'EXTRACT'] as const;

/** Index of `ExecutorSnapshot.counters`. */
export const counters = {
  batchesSampled: 0,
  batchesTaken: 1,
  batchesTrained: 2,
  batchesGivenBack: 3,
  stepsApplied: 4,
  evaluations: 5,
  nodes: 6,
  edges: 7,
  seeds: 8,
  queueBytes: 9,
  turnSwitches: 10,
  standbyTakes: 11,
  standbyRefusals: 12,
  lockOwnersDied: 13,
  corruptRecords: 14,
  slotsTrimmed: 15,
  deviceRows: 16,
  hostRows: 17,
  diskRows: 18,
  deviceBytes: 19,
  hostBytes: 20,
  diskBytes: 21,
  /** Of the cache. */
  cacheRows: 22,
  cacheFillNs: 23,
  /** Memory that batches' work took at most. */
  workBytes: 24,
  /** Taken to be extracted while another one was computed. */
  batchesAhead: 25,
} as const;

export interface Times {
  readonly totalNs: number;
  readonly count: number;
  readonly buckets: readonly number[];
}

export interface ExecutorSnapshot extends ExecutorId {
  readonly role: Role;
  readonly device: number;
  /** 0 until the process has entered. */
  readonly pid: number;
  /** Whether the device is its own now: a Sampler and a standby Trainer on one take turns. */
  readonly hasTurn: boolean;
  readonly phase: 'REGISTERED' | 'LOADING' | 'RUNNING' | 'FINISHED' | 'FAILED' | 'REAPED';
  readonly registeredNs: number;
  /** CLOCK_MONOTONIC; 0 = no sign of life yet. */
  readonly heartbeatNs: number;
  readonly stage: string;
  readonly progressNs: number;
  readonly counters: readonly number[];
  readonly stages: readonly (Times & { readonly medianNs: number })[];
  readonly waits: readonly Times[];
}

export interface SegmentSnapshot {
  /** Committed groups. */
  readonly version: number;
  readonly committedBatches: number;
  /** Of `epochsToTrain`. */
  readonly totalBatches: number;
  /** All epochs, or fewer once an evaluation has stopped the job. */
  readonly epochsToTrain: number;
  readonly epoch: number;
  readonly epochsCommitted: number;
  /** All batches that are to be trained and the last evaluation. */
  readonly complete: boolean;
  readonly evaluating: boolean;
  /** READY batches. */
  readonly queueDepth: number;
  readonly queueBytes: number;
  /** Batches that Samplers and Trainers have in hand. */
  readonly claimed: number;
  readonly taken: number;
  readonly numSlots: number;
  readonly largestRecordBytes: number;
  readonly reclaimed: number;
  readonly standbyProfitNs: number;
  /** The abort's message; null unless aborted. */
  readonly aborted: string | null;
  readonly executors: readonly ExecutorSnapshot[];
}

export interface SegmentEpoch {
  readonly epoch: number;
  readonly committed: boolean;
  readonly startNs: number;
  readonly endNs: number;
  readonly batches: number;
  readonly steps: number;
  readonly retries: number;
  readonly seeds: number;
  readonly correct: number;
  readonly lossSum: number;
  /** Equal to expectedLedgerDigest iff each batch was committed exactly once, in order. */
  readonly ledgerDigest: string;
  readonly expectedLedgerDigest: string;
  readonly finalVersion: number;
  readonly deviceBatches: readonly number[];
  readonly evaluation: {
    readonly valNodes: number;
    readonly valCorrect: number;
    readonly testNodes: number;
    readonly testCorrect: number;
    readonly bestEpoch: number;
    readonly endNs: number;
    /** Of the parameters that were evaluated, padding left out; hex. */
    readonly parametersSha256: string;
  } | null;
}

/** What a dead executor held. */
export interface ReclaimReport {
  /** Batches whose record must be made again. */
  readonly claimed: number;
  /** Batches whose record is delivered again. */
  readonly taken: number;
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
  readonly optimizer: {
    readonly type: 'ADAM' | 'ADAMW' | 'SGD';
    readonly learningRate: number;
    readonly beta1: number;
    readonly beta2: number;
    readonly epsilon: number;
    readonly weightDecay: number;
    readonly firstLayerOnly: boolean;
    /** Read for SGD only. */
    readonly momentum: number;
    /** 0 = none. */
    readonly clipNorm: number;
    readonly schedule: {
      readonly type: 'CONSTANT' | 'STEP' | 'COSINE';
      /** Read for STEP only, as gamma. */
      readonly stepEpochs: number;
      readonly gamma: number;
      readonly warmupEpochs: number;
      readonly stepsPerEpoch: number;
      readonly epochs: number;
    };
  };
  readonly threads: number;
  /** Extract the next batch while the present one is computed. */
  readonly prefetch: boolean;
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
  /** Bound on hidden layers' rows; 0 = 1 GiB. */
  readonly memoryBytes: number;
  readonly topologyFd: number;
  /** Receives frames (native/train/prediction_stream.h). */
  readonly outputFd: number;
}

export type LoopEnd = 'COMPLETE' | 'STOPPED';

/** gnnd_core.node: no torch, no CUDA; for the daemon and Samplers. */
export interface CoreAddon {
  hostInstructionSet(): 'SCALAR' | 'AVX2' | 'AVX512';
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
