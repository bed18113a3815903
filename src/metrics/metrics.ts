import { type ErrorReason, unreachable } from '../base/errors.ts';
import type { GarbageKind } from '../config/retention-limits.ts';
import type { ExecutorRole } from '../records/job-record.ts';
import { writeExposition } from './exposition.ts';
import { daemonFamilies, slotFamilies } from './families.ts';
import { setHost } from './host-series.ts';
import type {
  ExecutorExitInput,
  GrpcEvent,
  GrpcMethod,
  HostMetricsInput,
  JobMetricsInput,
  JobTransitionInput,
  Metrics,
  MetricsFormat,
  MetricsOptions,
  PropagationEndInput,
  StoreObservationInput,
} from './metrics-types.ts';
import { EventLoopDelay, ProcessMetrics } from './process-metrics.ts';
import { SeriesTable } from './series.ts';
import { SlotSeries } from './slot-series.ts';

export type * from './metrics-types.ts';

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
    this.propagationsRun([]);
    const { version, nodeVersion } = options.build;
    this.#daemon.set('gnnd_build_info', { version, node_version: nodeVersion }, 1);
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

  propagationsRun(shares: readonly number[]): void {
    const sum = shares.reduce((total, share) => total + share, 0);
    this.#daemon.set('gnnd_propagations_running', {}, shares.length);
    this.#daemon.set('gnnd_propagation_done_ratio', {}, sum / Math.max(1, shares.length));
  }

  propagationEnded({ outcome, seconds, hops, deviceHops, bytes }: PropagationEndInput): void {
    this.#daemon.add('gnnd_propagation_ends_total', { outcome });
    this.#daemon.add('gnnd_propagation_seconds_total', {}, seconds);
    this.#daemon.add('gnnd_propagation_hops_total', {}, hops);
    this.#daemon.add('gnnd_propagation_device_hops_total', {}, deviceHops);
    this.#daemon.add('gnnd_propagation_bytes_total', {}, bytes);
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
