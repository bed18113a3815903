import type { CachePolicy, JobSpec, JobSpecInput } from '../spec/job-spec.ts';
import type { Metric } from '../spec/metrics.ts';
import type { EncodedSpecs } from '../spec/spec-codec.ts';
import type { BatchTimes } from './batch-times.ts';

/** The nouns of a job as the daemon stores and shows them; data only. */

export const jobStates = [
  'PENDING',
  'PREPARING',
  'RUNNING',
  'CANCELLING',
  'SUCCEEDED',
  'FAILED',
  'CANCELLED',
  'SUSPENDING',
  'SUSPENDED',
] as const;
export type JobState = (typeof jobStates)[number];

export const terminalStates: ReadonlySet<JobState> = new Set(['SUCCEEDED', 'FAILED', 'CANCELLED']);

export type JobIntent = 'RUN' | 'CANCEL' | 'SUSPEND';

export type JobPhase =
  | 'LOADING_DATASET'
  | 'CALIBRATING'
  | 'STARTING'
  | 'TRAINING'
  | 'EVALUATING'
  | 'FINALIZING'
  | 'PREDICTING';

export type ExecutorRole = 'SAMPLER' | 'TRAINER' | 'STANDBY';

/** Why something is in its state; the strings are those of `enum Reason` without the prefix. */
export const reasons = [
  'NONE',
  'COMPLETED',
  'USER_CANCELLED',
  'WAITING_FOR_DEVICES',
  'BACKOFF',
  'DAEMON_SHUTDOWN',
  'DAEMON_RESTARTED',
  'SPEC_INVALID',
  'DATASET_CORRUPT',
  'PLAN_INFEASIBLE',
  'PENDING_TIMEOUT',
  'STARTUP_TIMEOUT',
  'RUN_TIMEOUT',
  'EXECUTOR_CRASHED',
  'EXECUTOR_STALLED',
  'EXECUTOR_UNKILLABLE',
  'SHM_ALLOCATION_FAILED',
  'SHM_CORRUPTED',
  'CHECKPOINT_WRITE_FAILED',
  'NUMERIC_DIVERGENCE',
  'RESTART_BUDGET_EXHAUSTED',
  'STARTUP_BUDGET_EXHAUSTED',
  'INTERNAL',
  'PLUGIN_FAILED',
  'DEVICE_UNAVAILABLE',
  'DEVICE_OUT_OF_MEMORY',
  'DEVICE_FAILED',
  'DEVICE_LOST',
  'CHECKPOINT_CORRUPT',
  'USER_SUSPENDED',
  'HOST_OUT_OF_MEMORY',
  'PREEMPTED',
  'DEVICE_DRAINED',
] as const;
export type Reason = (typeof reasons)[number];

export interface ExecutorExit {
  readonly role: ExecutorRole;
  readonly device: string;
  readonly pid: number;
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly reason: Reason;
  /** Last lines of its log, at most 4 KiB. */
  readonly logTail: string;
}

export interface Attempt {
  readonly number: number;
  readonly startAtMs: number;
  readonly endAtMs: number | null;
  readonly endReason: Reason;
  readonly message: string;
  readonly executorRestarts: number;
  readonly exits: readonly ExecutorExit[];
  /** Point that the attempt resumed from; null when it began at the beginning. */
  readonly resumed: ResumePoint | null;
}

/** Where an attempt took up the work of those before it. */
export interface ResumePoint {
  /** Epochs that were over. */
  readonly epochs: number;
  /** Batches of the next one that were committed. */
  readonly batches: number;
  /** The image's file name. */
  readonly image: string;
  /** Whether another build wrote it. */
  readonly otherBuild: boolean;
}

export interface EpochReport {
  readonly epoch: number;
  readonly batches: number;
  readonly steps: number;
  readonly retries: number;
  readonly loss: number;
  /** 0 where the dataset has no classes. */
  readonly trainAccuracy: number;
  /** Null after an epoch that was not evaluated, and where the dataset has no classes. */
  readonly valAccuracy: number | null;
  /** The first decides; none after an epoch that was not evaluated. */
  readonly valMetrics: readonly Metric[];
  readonly durationMs: number;
  readonly version: number;
  /** SHA-256 of the parameters at the epoch's end. */
  readonly parametersSha256: string;
  readonly ledgerDigest: string;
  readonly batchesByDevice: Readonly<Record<string, number>>;
  readonly executorTimes: readonly ExecutorTimes[];
  readonly work: EpochWork;
}

/** The time that an epoch's batches took, and the scale by which they favoured neighbours. */
export interface EpochWork {
  /** Time of extraction and of training, summed over the batches, waited for or not. */
  readonly extractNs: number;
  readonly trainNs: number;
  /** How many times as likely as others favoured neighbours were drawn; 1: nobody was favoured. */
  readonly scale: number;
  /** Scale of the next epoch, where scales adapt; frozen with this epoch's last step. */
  readonly next: FollowingScale | null;
}

/** Scale of a following epoch in sixteenths, the same as in native/core/draw/locality.h. */
export interface FollowingScale {
  readonly scale: number;
  readonly before: number;
  readonly fixed: boolean;
}

/**
 * Where an executor's time went from one epoch's report to the next, in nanoseconds. Waits and
 * stages, extraction left out, add up to its duration but for a few percent.
 */
export interface ExecutorTimes {
  readonly role: ExecutorRole;
  readonly device: string;
  /** Wall time; from its start, if it was started in between. */
  readonly durationNs: number;
  readonly sampleNs: number;
  readonly markNs: number;
  readonly copyNs: number;
  /** Whether or not beside training. */
  readonly extractNs: number;
  readonly trainNs: number;
  readonly applyNs: number;
  readonly evaluateNs: number;
  readonly waitEnqueueNs: number;
  readonly waitDequeueNs: number;
  readonly waitDueNs: number;
  readonly waitTurnNs: number;
  /** Wait for its own extraction; the rest of `extractNs` was hidden behind training. */
  readonly waitExtractNs: number;
  readonly pruneNs: number;
  /** A part of `trainNs`: admission to history. */
  readonly historyNs: number;
  /**
   * Feature rows of batches: of the cache, of another device's memory, of the host's memory or
   * disk, and spared by history.
   */
  readonly cachedRows: number;
  readonly peerRows: number;
  readonly readRows: number;
  readonly prunedRows: number;
  /** Rows of hidden layers that were looked for in history, and those found. */
  readonly historyLookups: number;
  readonly historyHits: number;
  /** Rows computed anew and compared with what was there of them; such of a cosine of 0.8. */
  readonly historyCompared: number;
  readonly historySimilar: number;
  /** Sums over these: of cosines, and of the older ones' ages in steps. */
  readonly historyCosine: number;
  readonly historyLag: number;
  /** At the end: the hot rank below which the cache has rows, and rows that embeddings took. */
  readonly cacheBorder: number;
  readonly cacheGivenUpRows: number;
}

/** What the executors of an attempt did within a stretch of time. */
export interface TimelineStretch {
  readonly startAtMs: number;
  readonly durationNs: number;
  /** READY batches in the queue, the mean over time. */
  readonly queueDepth: number;
  /** Executors in the order of their starts; those of one role and device count as one. */
  readonly executors: readonly ExecutorTimes[];
}

/** Timeline of an attempt, oldest stretch first. */
export interface JobTimeline {
  readonly queueCapacity: number;
  readonly stretches: readonly TimelineStretch[];
}

export interface JobResult {
  readonly parametersSha256: string;
  readonly checkpointDir: string;
  readonly testAccuracyLast: number;
  readonly testAccuracyBest: number;
  readonly bestEpoch: number;
  readonly bestValAccuracy: number;
  readonly testMetricsLast: readonly Metric[];
  readonly testMetricsBest: readonly Metric[];
  readonly bestValMetrics: readonly Metric[];
  /** Trained; fewer than planned when the job stopped early. */
  readonly epochs: number;
  /** Set by inference jobs, for which all above but the parameters' digest is 0 or empty. */
  readonly predictions?: JobPredictions | undefined;
}

export interface JobPredictions {
  readonly folder: string;
  readonly nodes: number;
  /** Size of all files together. */
  readonly bytes: number;
  /** SHA-256 of inference.json, which lists the SHA-256 of each file. */
  readonly sha256: string;
  /** What could not be checked of the dataset's fit to the model; empty: all was. */
  readonly notice: string;
}

export interface ExecutorStatus {
  readonly role: ExecutorRole;
  readonly device: string;
  readonly pid: number;
  /** Share of the last second it was busy. */
  readonly busy: number;
  readonly batches: number;
  readonly stage: string;
  /** Share of the feature rows it read that its cache held; 0 without a cache. */
  readonly cacheHitRate: number;
}

export interface JobProgress {
  readonly epoch: number;
  readonly epochs: number;
  readonly batchesCommitted: number;
  readonly batchesPerEpoch: number;
  readonly version: number;
  readonly loss: number;
  readonly valAccuracy: number;
  /** Metrics of the last evaluation. */
  readonly valMetrics: readonly Metric[];
  readonly seedsPerSecond: number;
  readonly edgesPerSecond: number;
  /** 0 = unknown. */
  readonly remainingMs: number;
  readonly queueDepth: number;
  readonly queueCapacity: number;
  readonly executors: readonly ExecutorStatus[];
  /** The one that runs, or null. */
  readonly evaluation: EvaluationProgress | null;
}

export interface EvaluationProgress {
  readonly kind: 'VALIDATION' | 'TEST_LAST' | 'TEST_BEST' | 'PREDICTION';
  /** Epoch whose parameters are evaluated. */
  readonly epoch: number;
  readonly rowsDone: number;
  /** 0 = not known yet. */
  readonly rowsTotal: number;
  /** 0 = unknown. */
  readonly remainingMs: number;
}

export interface PlannedExecutor {
  readonly role: ExecutorRole;
  readonly device: string;
}

export interface PolicyChoice {
  /** AUTO of a plan whose number of Samplers is neither policy's. */
  readonly policy: 'AUTO' | 'PAPER' | 'MINMAX' | 'FIXED';
  readonly samplers: number;
  readonly trainers: number;
  /** Predicted of what would run, standby Trainers included. */
  readonly batchNs: number;
}

/**
 * How devices are used: some sample and others train; likewise, and who samples trains while there
 * is nothing to sample; or every device does both in turn.
 */
export const planWays = ['SPLIT', 'SWITCHING', 'SHARING'] as const;
export type PlanWay = (typeof planWays)[number];

/** What limits a predicted time: sampling, all the devices' work, or the order of steps. */
export const planLimits = ['SAMPLING', 'TRAINING', 'STEPS'] as const;
export type PlanLimit = (typeof planLimits)[number];

/** A way to use the devices and what it is predicted to take; waits and evaluations left out. */
export interface PlannedWay {
  readonly way: PlanWay;
  readonly samplers: number;
  readonly trainers: number;
  readonly batchNs: number;
  readonly epochNs: number;
  readonly limit: PlanLimit;
  /** Batches that are computed at the same time at most. */
  readonly atOnce: number;
}

/** What epochs took, beside what was predicted; medians, 0 = not seen. */
export interface PlanMeasurement extends BatchTimes {
  /** Number of epochs measured; an attempt's first counts only while it is the only one. */
  readonly epochs: number;
  /** Wall time of an epoch without its evaluation, and of one of its batches. */
  readonly epochNs: number;
  readonly batchNs: number;
}

/** What devices keep of the features. */
export interface CachePlan {
  readonly policy: CachePolicy;
  readonly trainerRows: number;
  readonly standbyRows: number;
  readonly rowBytes: number;
  /** Reserved on a device with its own memory for what PyTorch and the driver take there. */
  readonly reservedBytes: number;
  /** 0 when an earlier job's order was used, or none was needed. */
  readonly rankMs: number;
  readonly explanation: string;
  /** Whether Trainers extract the next batch while they compute the present one. */
  readonly prefetch: boolean;
  readonly prefetchExplanation: string;
  /** Rows in host memory that devices with memory of their own read by themselves. */
  readonly pinnedRows: number;
  readonly pinnedExplanation: string;
  /** Placement of rows; null where no two devices could hold rows for each other. */
  readonly placement: RowPlacementPlan | null;
  /** Says which nodes batches favour, and how much; empty: locality is off. */
  readonly favoured: string;
}

/** Feature rows that Trainers' devices hold for each other, and why. */
export interface RowPlacementPlan {
  readonly explanation: string;
  /** Devices of Trainers; empty: each has a plain cache. */
  readonly devices: readonly PlacedDevice[];
}

export interface PlacedDevice {
  readonly device: string;
  /** Rows that others hold, too. */
  readonly copiedRows: number;
  /** Rows that it alone holds. */
  readonly dealtRows: number;
  readonly expected: RowShares;
  /** Null before the run's first epoch has ended. */
  readonly measured: RowShares | null;
}

/** Shares of the input rows of batches by where they come from. */
export interface RowShares {
  readonly own: number;
  readonly peer: number;
  readonly host: number;
  /** Wait for the rows of one batch, by the costs of the plan. */
  readonly waitNs: number;
}

export interface JobPlan extends BatchTimes {
  /** True before calibration. */
  readonly estimated: boolean;
  readonly executors: readonly PlannedExecutor[];
  readonly k: number;
  readonly choices: readonly PolicyChoice[];
  readonly policy: PolicyChoice['policy'];
  readonly standby: 'AUTO' | 'OFF' | 'ALWAYS';
  /** The ways that were compared, the chosen one first; empty when nothing was measured. */
  readonly ways: readonly PlannedWay[];
  readonly timeSharingBatchNs: number;
  readonly explanation: string;
  readonly queueCapacity: number;
  readonly slotBytes: number;
  readonly parameterCount: number;
  /** Null before calibration. */
  readonly cache: CachePlan | null;
}

/**
 * How fields came about that depend on the dataset and the host as they were when the job was
 * created, a sentence each for people; empty where the job does not read the field.
 */
export interface JobChoices {
  readonly standardize: string;
  readonly precision: string;
  /** Epochs and learning rate. */
  readonly schedule: string;
}

/** A job's status, as stored. Its epochs are history, which is read apart and in pages. */
export interface JobRecord {
  readonly id: string;
  readonly uid: string;
  readonly spec: JobSpecInput;
  readonly effectiveSpec: JobSpec;
  /** Both specs as bytes: whoever passes them on need not know what they say. */
  readonly encoded: EncodedSpecs;
  readonly datasetDigest: string;
  /** How what its spec leaves open was decided. */
  readonly choices: JobChoices;
  /** Name of the caller. */
  readonly createdBy: string;
  readonly state: JobState;
  readonly phase: JobPhase | null;
  readonly intent: JobIntent;
  readonly reason: Reason;
  readonly message: string;
  readonly createAtMs: number;
  readonly startAtMs: number | null;
  readonly endAtMs: number | null;
  /** When the next attempt may start; null unless it backs off. */
  readonly nextAttemptAtMs: number | null;
  /** Store revision of its last transition. */
  readonly revision: number;
  readonly attempts: readonly Attempt[];
  readonly plan: JobPlan | null;
  readonly result: JobResult | null;
}
