import type { ErrorReason } from '../base/errors.ts';
import type { GarbageKind } from '../config/retention-limits.ts';
import type { DatasetState } from '../records/dataset-record.ts';
import type { ExecutorRole, JobPhase, JobState, Reason } from '../records/job-record.ts';
import type { Metric } from '../spec/metrics.ts';
import type {
  BatchEvent,
  CacheResult,
  CacheTier,
  CopyDirection,
  DeviceMemoryUse,
  DeviceStage,
  DeviceState,
  ExecutorOutcome,
  GrpcCode,
  GrpcType,
  HistoryEvent,
  PropagationOutcome,
  QueueSide,
  ReclaimedState,
  RowWay,
  SegmentKind,
  Split,
  Stage,
  StandbyOutcome,
  StoreErrorCode,
  StoreOp,
  Wait,
} from './labels.ts';

/**
 * Everything that `/metrics` shows. Others tell it what happened (`jobTransitioned`) or how things
 * stand (`updateHost`, `updateJob`); which series follow from that is decided here alone, and the
 * families are declared in families.ts.
 *
 * Series of a job carry its slot, a small number that is used again, and never its id: that is
 * what bounds their number. `gnnd_job_info` maps slots to jobs.
 */
export interface Metrics {
  /** Replaces what is known about the host and the daemon. */
  updateHost(input: HostMetricsInput): void;
  /** Replaces what is known about the job in `input.slot`; its totals must not go backwards. */
  updateJob(input: JobMetricsInput): void;
  epochEnded(slot: number, seconds: number): void;
  /** Removes all series of the slot. */
  releaseSlot(slot: number): void;

  jobTransitioned(transition: JobTransitionInput): void;
  executorStarted(role: ExecutorRole): void;
  executorExited(exit: ExecutorExitInput): void;
  checkpointTook(seconds: number): void;
  /** Takes what the store's `observe` gives. */
  observeStore(observation: StoreObservationInput): void;
  observeGrpc(event: GrpcEvent): void;
  apiError(reason: ErrorReason): void;
  requestReplayed(method: string): void;
  removed(kind: GarbageKind, bytes: number): void;
  /** Replaces what is known about the propagations that run: the share done of each. */
  propagationsRun(shares: readonly number[]): void;
  propagationEnded(end: PropagationEndInput): void;

  /** `listener` runs before each rendering, to update the host and the jobs. */
  onScrape(listener: () => void): () => void;
  /** Rejects with what a scrape listener threw. */
  render(format: MetricsFormat): Promise<string>;
  close(): void;
}

/** PROMETHEUS is the text format 0.0.4, OPENMETRICS is 1.0.0. */
export type MetricsFormat = 'PROMETHEUS' | 'OPENMETRICS';

export interface MetricsOptions {
  readonly build: {
    readonly version: string;
    readonly nodeVersion: string;
  };
  readonly startAtMs: number;
  /** Every method that is served, so that its series exist before its first call. */
  readonly grpcMethods: readonly GrpcMethod[];
}

export interface HostMetricsInput {
  readonly ready: boolean;
  readonly store: {
    readonly revision: number;
    readonly dbBytes: number;
    readonly walBytes: number;
  };
  readonly stateDirFreeBytes: number;
  readonly watches: number;
  readonly jobs: Readonly<Record<JobState, number>>;
  readonly datasets: Readonly<Record<DatasetState, number>>;
  readonly datasetBytes: number;
  /** Shared memory that is mapped now; a kind that is left out has none. */
  readonly segments: readonly {
    readonly kind: SegmentKind;
    readonly bytes: number;
  }[];
  readonly devices: readonly DeviceMetricsInput[];
}

export interface DeviceMetricsInput {
  readonly device: string;
  readonly kind: 'CPU' | 'CUDA' | 'SIM';
  /** UUID of the hardware; empty for CPU devices. */
  readonly uuid: string;
  readonly model: string;
  readonly driver: string;
  readonly state: DeviceState;
}

/** How many observations fell into each bucket of a declared histogram, and their sum. */
export interface RawHistogram {
  /** One per bound of the family, not cumulative, and one more for the rest. */
  readonly counts: readonly number[];
  readonly sum: number;
}

/** A job that holds a slot. Totals count over the whole job, all attempts and dead executors. */
export interface JobMetricsInput {
  readonly slot: number;
  readonly job: string;
  readonly uid: string;
  readonly dataset: string;
  readonly model: string;
  readonly state: JobState;
  readonly phase: JobPhase | null;
  readonly attempt: number;
  readonly restartBudgetRemaining: number;
  /** Time of the last commit; null before the first. */
  readonly lastProgressAtMs: number | null;
  /** To the end of all planned epochs; null while unknown. */
  readonly remainingSeconds: number | null;
  /** Share done of the evaluation that runs; null while none does. */
  readonly evaluation: {
    readonly doneRatio: number;
    /** Null while unknown. */
    readonly remainingSeconds: number | null;
  } | null;

  /** In progress, from 0. */
  readonly epoch: number;
  readonly epochsTarget: number;
  readonly epochsCompleted: number;
  readonly batches: Readonly<Record<BatchEvent, number>>;
  readonly steps: number;
  readonly parameterVersion: number;
  readonly sampledEdges: number;
  readonly sampledNodes: number;
  readonly trainedSeeds: number;
  readonly evaluatedChunks: number;
  readonly evaluatedRows: number;
  readonly stageSeconds: readonly {
    readonly device: string;
    readonly stage: Stage;
    readonly seconds: number;
  }[];
  readonly waitSeconds: readonly {
    readonly device: string;
    readonly wait: Wait;
    readonly seconds: number;
  }[];
  /** Per batch, in `stageBounds`; stages that are left out have no observation. */
  readonly stageDurations: Readonly<Partial<Record<Stage, RawHistogram>>>;
  /** Null before the first. */
  readonly loss: number | null;
  /** Metrics of the last evaluation. */
  readonly evaluated: Readonly<Partial<Record<Split, readonly Metric[]>>>;

  readonly cache: {
    readonly capacityRows: number;
    readonly ratio: number;
    /** Rows of the capacity whose memory embeddings have taken. */
    readonly givenUpRows: number;
    readonly lookups: Readonly<
      Record<CacheTier, Readonly<Record<CacheResult, { rows: number; bytes: number }>>>
    >;
    readonly fillSeconds: number;
    readonly presampleSeconds: number;
  };
  /** Null for a job that keeps none. */
  readonly history: {
    readonly lookups: number;
    /** By hidden layer, from the first, and by age, from the youngest eighth. */
    readonly hitsByLevel: readonly number[];
    readonly hitsByAge: readonly number[];
    readonly events: Readonly<Record<HistoryEvent, number>>;
    readonly prunedRows: number;
    /** Places for embeddings that were ever taken. */
    readonly places: number;
    /** Rows computed anew beside their embeddings; sums of their cosines and of lags. */
    readonly compared: {
      readonly rows: number;
      readonly similar: number;
      readonly cosine: number;
      readonly lagSteps: number;
    };
    readonly pruneSeconds: number;
    readonly updateSeconds: number;
  } | null;
  /** Null for a job that favours no neighbours. */
  readonly locality: {
    /** Scale of the epoch in progress. */
    readonly scale: number;
    /** Extraction's share of the last epoch that ended; null before the first ended. */
    readonly extractShare: number | null;
  } | null;
  /** Use of each device that is not a CPU device. */
  readonly deviceUse: readonly {
    readonly device: string;
    readonly memoryBytes: Readonly<Record<DeviceMemoryUse, number>>;
    readonly copiedBytes: Readonly<Record<CopyDirection, number>>;
    readonly features: Readonly<Record<RowWay, { rows: number; bytes: number }>>;
    readonly stageSeconds: Readonly<Record<DeviceStage, number>>;
    /** By the costs of the job's placement. */
    readonly rowWaitSeconds: number;
    /** Chunks of evaluations and inferences that the device computed. */
    readonly evaluatedChunks: number;
    /** Bytes of the host's memory that are registered with the device. */
    readonly registeredBytes: number;
  }[];
  readonly queue: {
    readonly depth: number;
    readonly capacity: number;
    /** CLAIMED by Samplers (ENQUEUE) and TAKEN by Trainers (DEQUEUE). */
    readonly inflight: Readonly<Record<QueueSide, number>>;
    readonly bytes: number;
    readonly slotBytes: number;
    readonly ops: Readonly<Record<QueueSide, number>>;
    /** In `waitBounds`. */
    readonly waits: Readonly<Record<QueueSide, RawHistogram>>;
    readonly reclaimed: Readonly<Record<ReclaimedState, number>>;
    readonly corruptRecords: number;
    readonly lockOwnersDied: number;
  };
  /** Null until calibrated. */
  readonly placement: {
    readonly k: number;
    readonly samplerBatchSeconds: number;
    readonly trainerBatchSeconds: number;
    readonly standbyBatchSeconds: number;
    /** Null where nothing was predicted; null before the first epoch has ended. */
    readonly predictedBatchSeconds: number | null;
    readonly measuredBatchSeconds: number | null;
    /** Null without standby Trainers, and where it has no bound. */
    readonly standbyProfitSeconds: number | null;
  } | null;
  readonly switches: { readonly toStandby: number; readonly toSampler: number };
  readonly standbyWakeups: Readonly<Record<StandbyOutcome, number>>;
  /** Alive now. */
  readonly executors: readonly {
    readonly role: ExecutorRole;
    readonly device: string;
    /** Whether the device is its own now, where a Sampler and a standby Trainer share one. */
    readonly hasTurn: boolean;
    readonly heartbeatAgeSeconds: number;
    readonly residentBytes: number;
  }[];
  readonly cpuSeconds: Readonly<Record<ExecutorRole, number>>;
  readonly checkpoints: {
    readonly ok: number;
    readonly failed: number;
    /** Bytes of the newest checkpoint; 0 before the first. */
    readonly bytes: number;
    readonly lastSuccessAtMs: number | null;
  };
}

export interface JobTransitionInput {
  readonly to: JobState;
  readonly reason: Reason;
  /** How long it waited, when it leaves PENDING; else null. */
  readonly pendingSeconds: number | null;
  /** From its creation, when it ends; else null. */
  readonly durationSeconds: number | null;
}

export interface ExecutorExitInput {
  readonly role: ExecutorRole;
  readonly outcome: ExecutorOutcome;
  readonly reason: Reason;
}

export interface PropagationEndInput {
  readonly outcome: PropagationOutcome;
  readonly seconds: number;
  /** Products of an operator and all columns, parts of one as such. */
  readonly hops: number;
  /** Products among `hops` that GPUs and simulated devices computed. */
  readonly deviceHops: number;
  /** Bytes of the files that the propagation completed. */
  readonly bytes: number;
}

export interface StoreObservationInput {
  readonly op: StoreOp;
  readonly seconds: number;
  readonly error: StoreErrorCode | null;
}

export interface GrpcMethod {
  /** Full name, for example `gnnd.v1.JobService`. */
  readonly service: string;
  readonly method: string;
  readonly type: GrpcType;
}

export type GrpcEvent =
  | (GrpcMethod & { readonly kind: 'started' | 'received' | 'sent' })
  | (GrpcMethod & { readonly kind: 'handled'; readonly code: GrpcCode; readonly seconds: number });
