/**
 * The job spec with every default filled in. `resolveJobSpec` (resolve-job-spec.ts) makes it from
 * what a user sent; from then on it never changes. Names follow `proto/gnnd/v1/job.proto`.
 */

/** A file of the user's that executors load: by its path, frozen by its digest. */
export interface PluginFile {
  readonly path: string;
  /** Lower-case hex. */
  readonly sha256: string;
}

export type ModelType = 'GRAPHSAGE' | 'GCN' | 'GAT' | 'GATV2' | 'PINSAGE' | 'TORCHSCRIPT';
export type Activation = 'RELU' | 'ELU' | 'LEAKY_RELU';
export type Normalization = 'NONE' | 'L2' | 'LAYER';
export type OptimizerType = 'ADAM' | 'ADAMW' | 'SGD';
export type LrScheduleType = 'CONSTANT' | 'STEP' | 'COSINE';
export type Determinism = 'STRICT' | 'RELAXED';
export const evaluationMethods = ['EXACT', 'SAMPLED'] as const;
export type EvaluationMethod = (typeof evaluationMethods)[number];
export type StalenessCompensation = 'PREDICT' | 'NONE';
export type WeightDecayScope = 'ALL' | 'FIRST_LAYER';
export type SamplingAlgorithm =
  | 'KHOP_UNIFORM'
  | 'KHOP_WEIGHTED'
  | 'RANDOM_WALK'
  | 'LABOR'
  | 'KHOP_PLUGIN';
export type Expansion = 'ALL' | 'NEW';
export type PlacementPolicy = 'AUTO' | 'PAPER' | 'MINMAX' | 'FIXED';
export const cachePolicies = [
  'COMBINED',
  'PRESC',
  'PROBABILITY',
  'DEGREE',
  'RANDOM',
  'OPTIMAL',
] as const;
export type CachePolicy = (typeof cachePolicies)[number];
export const prefetchModes = ['AUTO', 'ON', 'OFF'] as const;
export type Prefetch = (typeof prefetchModes)[number];
export type StandbyPolicy = 'AUTO' | 'OFF' | 'ALWAYS';

export interface JobSpec {
  readonly dataset: string;
  readonly model: {
    readonly type: ModelType;
    readonly layers: number;
    /** 0 for TORCHSCRIPT, whose file says everything but the number of layers. */
    readonly hiddenDim: number;
    readonly dropout: number;
    readonly inputDropout: number;
    /** 1 unless GAT or GATV2. */
    readonly heads: number;
    readonly activation: Activation;
    /** L2 for PINSAGE. */
    readonly normalization: Normalization;
    readonly residual: boolean;
    /** 0 unless GAT or GATV2. */
    readonly attentionDropout: number;
    /** Empty unless TORCHSCRIPT. */
    readonly script: PluginFile;
  };
  readonly sampling: {
    /** From the seeds outward; -1 takes all neighbours. Empty for RANDOM_WALK. */
    readonly fanouts: readonly number[];
    readonly algorithm: SamplingAlgorithm;
    readonly replace: boolean;
    readonly expansion: Expansion;
    /** All 0 unless RANDOM_WALK. */
    readonly walk: {
      readonly walks: number;
      readonly length: number;
      readonly restartProb: number;
      readonly neighbors: number;
    };
    /** 0 unless LABOR. */
    readonly labor: { readonly dependencyWindow: number };
    /** All empty unless KHOP_PLUGIN. */
    readonly plugin: PluginFile & { readonly options: string; readonly weights: boolean };
  };
  readonly features: { readonly standardize: boolean };
  readonly cache: {
    readonly policy: CachePolicy;
    /** K. */
    readonly presampleEpochs: number;
    /** Share of the rows, or `automaticRatio`. */
    readonly ratio: number;
    readonly standbyRatio: number;
    readonly prefetch: Prefetch;
  };
  readonly training: {
    readonly epochs: number;
    readonly batchSize: number;
    /** G (design §4). */
    readonly batchesPerStep: number;
    /** S (design §4). */
    readonly staleness: number;
    readonly stalenessCompensation: StalenessCompensation;
    /** 64 bits, as a decimal string: JSON has no such number. */
    readonly randomSeed: string;
    readonly optimizer: {
      readonly type: OptimizerType;
      readonly learningRate: number;
      readonly beta1: number;
      readonly beta2: number;
      readonly epsilon: number;
      readonly weightDecay: number;
      readonly weightDecayScope: WeightDecayScope;
      /** 0 unless SGD. */
      readonly momentum: number;
      /** 0 = none. */
      readonly clipNorm: number;
    };
    readonly lrSchedule: {
      readonly type: LrScheduleType;
      /** 0 unless STEP, as gamma. */
      readonly stepEpochs: number;
      readonly gamma: number;
      readonly warmupEpochs: number;
    };
    readonly threadsPerTrainer: number;
    readonly earlyStop: {
      /** Evaluations in a row without improvement; 0 = the job never stops early. */
      readonly patienceEpochs: number;
      /** 0 without patience. */
      readonly minDelta: number;
    };
    readonly determinism: Determinism;
  };
  readonly evaluation: {
    /** 0 = at the end only; the last epoch is evaluated whatever this is. */
    readonly everyEpochs: number;
    /** What AUTO came to. */
    readonly method: EvaluationMethod;
    /** One a layer, -1 takes all neighbours; empty for EXACT and for RANDOM_WALK. */
    readonly fanouts: readonly number[];
    /** For hidden rows of an exact evaluation. */
    readonly maxBytes: number;
  };
  /** Either a count (names empty) or names (count = their number). */
  readonly resources: {
    readonly devices: number;
    readonly deviceNames: readonly string[];
    /** Per device; 0 = not set. */
    readonly deviceMemoryBytes: number;
    /** For features; 0 = not set. */
    readonly hostMemoryBytes: number;
  };
  readonly placement: {
    readonly policy: PlacementPolicy;
    /** Number of Samplers for FIXED, else 0. */
    readonly samplers: number;
    readonly standby: StandbyPolicy;
  };
  /** capacity 0 lets the plan choose: G·(S+1) + devices, more while maxBytes allows. */
  readonly queue: { readonly capacity: number; readonly maxBytes: number };
  readonly restart: { readonly maxAttempts: number; readonly executorRestarts: number };
  readonly timeouts: {
    readonly pendingMs: number;
    readonly startupMs: number;
    readonly stallMs: number;
    readonly cancelGraceMs: number;
    /** 0 = no limit. */
    readonly runMs: number;
  };
  readonly priority: number;
}

type DeepPartial<T> = T extends readonly (infer U)[]
  ? readonly U[]
  : T extends object
    ? { readonly [K in keyof T]?: DeepPartial<T[K]> | undefined }
    : T;

type Unresolved = Omit<JobSpec, 'evaluation'> & {
  readonly evaluation: Omit<JobSpec['evaluation'], 'method'> & {
    readonly method: EvaluationMethod | 'AUTO';
  };
};

/** What a user sent: any field may be missing. */
export type JobSpecInput = DeepPartial<Unresolved>;
