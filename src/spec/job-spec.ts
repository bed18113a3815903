/**
 * The job spec with every default filled in. `resolveJobSpec` (resolve-job-spec.ts) makes it from
 * what a user sent; from then on it never changes. Names follow `proto/gnnd/v1/job.proto`.
 */

export type ModelType = 'GRAPHSAGE' | 'GCN';
export type WeightDecayScope = 'ALL' | 'FIRST_LAYER';
export type SamplingAlgorithm = 'KHOP_UNIFORM' | 'KHOP_WEIGHTED' | 'RANDOM_WALK' | 'LABOR';
export type Expansion = 'ALL' | 'NEW';
export type PlacementPolicy = 'AUTO' | 'PAPER' | 'MINMAX' | 'FIXED';
export type StandbyPolicy = 'AUTO' | 'OFF' | 'ALWAYS';

export interface JobSpec {
  readonly dataset: string;
  readonly model: {
    readonly type: ModelType;
    readonly layers: number;
    readonly hiddenDim: number;
    readonly dropout: number;
    readonly inputDropout: number;
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
  };
  readonly features: { readonly standardize: boolean };
  readonly training: {
    readonly epochs: number;
    readonly batchSize: number;
    /** G (design §4). */
    readonly batchesPerStep: number;
    /** S (design §4). */
    readonly staleness: number;
    /** 64 bits, as a decimal string: JSON has no such number. */
    readonly randomSeed: string;
    readonly optimizer: {
      readonly learningRate: number;
      readonly beta1: number;
      readonly beta2: number;
      readonly epsilon: number;
      readonly weightDecay: number;
      readonly weightDecayScope: WeightDecayScope;
    };
    readonly threadsPerTrainer: number;
  };
  /** Either a count (names empty) or names (count = their number). */
  readonly resources: { readonly devices: number; readonly deviceNames: readonly string[] };
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

/** What a user sent: any field may be missing. */
export type JobSpecInput = DeepPartial<JobSpec>;
