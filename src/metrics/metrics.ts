import { type ErrorReason, unreachable } from '../base/errors.ts';
import type { DatasetState } from '../spec/dataset-record.ts';
import type { ExecutorRole, JobPhase, JobState, Reason } from '../spec/job-record.ts';
import type { GarbageKind } from '../spec/retention-limits.ts';
import { writeExposition } from './exposition.ts';
import { daemonFamilies, slotFamilies } from './families.ts';
import { setHost } from './host-series.ts';
import type {
  BatchEvent,
  CacheResult,
  CacheTier,
  DeviceState,
  ExecutorOutcome,
  GrpcCode,
  GrpcType,
  QueueSide,
  ReclaimedState,
  SegmentKind,
  Split,
  Stage,
  StandbyOutcome,
  StoreErrorCode,
  StoreOp,
  Wait,
} from './labels.ts';
import { EventLoopDelay, ProcessMetrics } from './process-metrics.ts';
import { SeriesTable } from './series.ts';
import { SlotSeries } from './slot-series.ts';

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
    readonly commit: string;
    readonly nodeVersion: string;
    /** Of the job segment. */
    readonly abi: string;
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
  readonly kind: 'CPU' | 'GPU';
  /** Of the hardware; empty for CPU devices. */
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
  /** Of the last commit; null before the first. */
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
  /** Shares from 0 to 1, of the last evaluation. */
  readonly accuracy: Readonly<Partial<Record<Split, number>>>;

  readonly cache: {
    readonly capacityRows: number;
    readonly ratio: number;
    readonly lookups: Readonly<
      Record<CacheTier, Readonly<Record<CacheResult, { rows: number; bytes: number }>>>
    >;
    readonly fillSeconds: number;
    readonly presampleSeconds: number;
  };
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
    /** Of the newest; 0 before the first. */
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

export function createMetrics(options: MetricsOptions): Metrics {
  return new DaemonMetrics(options);
}

const daemonFamilyNames = namesOf(daemonFamilies);
const slotFamilyNames = namesOf(slotFamilies);
const grpcFamilyNames = [
  'grpc_server_started_total',
  'grpc_server_msg_received_total',
  'grpc_server_msg_sent_total',
  'grpc_server_handled_total',
  'grpc_server_handling_seconds',
] as const;

class DaemonMetrics implements Metrics {
  readonly #daemon = new SeriesTable(daemonFamilies);
  readonly #slots = new Map<number, SlotSeries>();
  readonly #process = new ProcessMetrics();
  readonly #eventLoop = new EventLoopDelay();
  readonly #listeners = new Set<() => void>();

  constructor(options: MetricsOptions) {
    for (const name of daemonFamilyNames) this.#daemon.initialize(name);
    const { version, commit, nodeVersion, abi } = options.build;
    this.#daemon.set('gnnd_build_info', { version, commit, node_version: nodeVersion, abi }, 1);
    this.#daemon.set('gnnd_start_time_seconds', {}, options.startAtMs / 1000);
    for (const method of options.grpcMethods) this.#initializeMethod(method);
  }

  updateHost(input: HostMetricsInput): void {
    setHost(this.#daemon, input);
  }

  updateJob(input: JobMetricsInput): void {
    this.#slot(input.slot).update(input);
  }

  epochEnded(slot: number, seconds: number): void {
    this.#slot(slot).epochEnded(seconds);
  }

  releaseSlot(slot: number): void {
    this.#slots.delete(slot);
  }

  jobTransitioned({ to, reason, pendingSeconds, durationSeconds }: JobTransitionInput): void {
    this.#daemon.add('gnnd_job_transitions_total', { to });
    if (pendingSeconds !== null)
      this.#daemon.observe('gnnd_job_pending_seconds', {}, pendingSeconds);
    if (to !== 'SUCCEEDED' && to !== 'FAILED' && to !== 'CANCELLED') return;
    this.#daemon.add('gnnd_job_ends_total', { state: to, reason });
    if (durationSeconds !== null) {
      this.#daemon.observe('gnnd_job_duration_seconds', { state: to }, durationSeconds);
    }
  }

  executorStarted(role: ExecutorRole): void {
    this.#daemon.add('gnnd_executor_starts_total', { role });
  }

  executorExited({ role, outcome, reason }: ExecutorExitInput): void {
    this.#daemon.add('gnnd_executor_exits_total', { role, outcome });
    this.#daemon.add('gnnd_executor_exit_reasons_total', { reason });
  }

  checkpointTook(seconds: number): void {
    this.#daemon.observe('gnnd_checkpoint_duration_seconds', {}, seconds);
  }

  observeStore({ op, seconds, error }: StoreObservationInput): void {
    this.#daemon.observe('gnnd_store_transaction_duration_seconds', { op }, seconds);
    if (error !== null) this.#daemon.add('gnnd_store_errors_total', { code: error });
  }

  observeGrpc(event: GrpcEvent): void {
    const labels = grpcLabels(event);
    switch (event.kind) {
      case 'started':
        this.#daemon.add('grpc_server_started_total', labels);
        return;
      case 'received':
        this.#daemon.add('grpc_server_msg_received_total', labels);
        return;
      case 'sent':
        this.#daemon.add('grpc_server_msg_sent_total', labels);
        return;
      case 'handled':
        this.#daemon.add('grpc_server_handled_total', { ...labels, grpc_code: event.code });
        if (event.type === 'unary') {
          this.#daemon.observe('grpc_server_handling_seconds', labels, event.seconds);
        }
        return;
      default:
        unreachable(event);
    }
  }

  apiError(reason: ErrorReason): void {
    this.#daemon.add('gnnd_api_errors_total', { reason });
  }

  requestReplayed(method: string): void {
    this.#daemon.add('gnnd_api_replayed_requests_total', { method });
  }

  removed(kind: GarbageKind, bytes: number): void {
    this.#daemon.add('gnnd_retention_removed_total', { kind });
    this.#daemon.add('gnnd_retention_removed_bytes_total', { kind }, bytes);
  }

  onScrape(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  async render(format: MetricsFormat): Promise<string> {
    for (const listener of this.#listeners) listener();
    const ofDaemon = daemonFamilyNames.map((name) => {
      const { help, type } = daemonFamilies[name];
      const samples = type === 'summary' ? this.#eventLoop.read() : this.#daemon.samples(name);
      return { name, help, type, samples };
    });
    const tables = [...this.#slots.values()].map((slot) => slot.series);
    const ofSlots = slotFamilyNames.map((name) => {
      const { help, type } = slotFamilies[name];
      return { name, help, type, samples: tables.flatMap((table) => table.samples(name)) };
    });
    return writeExposition([...ofDaemon, ...ofSlots, ...(await this.#process.families())], format);
  }

  close(): void {
    this.#eventLoop.close();
    this.#listeners.clear();
  }

  #slot(slot: number): SlotSeries {
    let series = this.#slots.get(slot);
    if (series === undefined) {
      series = new SlotSeries(slot);
      this.#slots.set(slot, series);
    }
    return series;
  }

  #initializeMethod(method: GrpcMethod): void {
    const labels = grpcLabels(method);
    for (const name of grpcFamilyNames) {
      // Only unary calls have a duration that means something.
      if (name === 'grpc_server_handling_seconds' && method.type !== 'unary') continue;
      this.#daemon.initialize(name, labels);
    }
    this.#daemon.initialize('gnnd_api_replayed_requests_total', { method: method.method });
  }
}

function grpcLabels(method: GrpcMethod) {
  return {
    grpc_service: method.service,
    grpc_method: method.method,
    grpc_type: method.type,
  };
}

function namesOf<F extends object>(families: F): readonly (keyof F & string)[] {
  const isName = (name: string): name is keyof F & string => name in families;
  return Object.keys(families).filter(isName);
}
