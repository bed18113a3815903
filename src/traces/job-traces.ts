import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import {
  type Attributes,
  type Context,
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  type Span,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type IdGenerator,
  RandomIdGenerator,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { systemClock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import {
  type EpochReport,
  type JobPhase,
  type JobRecord,
  terminalStates,
} from '../records/job-record.ts';

/** Jobs' lives as traces (OpenTelemetry): a trace a job, a span for each thing that took time. */

export interface JobTraces {
  /** After it was stored; `before` and `after` are of one job. */
  transitioned(before: JobRecord, after: JobRecord): void;
  epochEnded(jobUid: string, report: EpochReport): void;
  /** Something within its phase; so many seconds, until now. */
  partEnded(jobUid: string, name: string, seconds: number): void;
  /** Sends what is left, for at most a few seconds. */
  close(): Promise<void>;
}

export interface TraceOptions {
  /** Version of this daemon. */
  readonly version: string;
  readonly log: Log;
}

/** `endpoint` is a collector's base address, as OTEL_EXPORTER_OTLP_ENDPOINT; empty: no traces. */
export function createJobTraces(endpoint: string, { version, log }: TraceOptions): JobTraces {
  if (endpoint === '') return untraced;
  const say = (text: string) => log.warn('traces.failed', { endpoint, error: text });
  const quiet = () => {};
  const logger = { error: say, warn: say, info: quiet, debug: quiet, verbose: quiet };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`;
  const exporter = new OTLPTraceExporter({ url, timeoutMillis: exportTimeoutMs });
  return new Traces(version, new BatchSpanProcessor(exporter));
}

/** A collector that hangs must not hold up a daemon that stops. */
const exportTimeoutMs = 5000;

const untraced: JobTraces = {
  transitioned: () => {},
  epochEnded: () => {},
  partEnded: () => {},
  close: async () => {},
};

const phaseSpans: Readonly<Record<JobPhase, string>> = {
  LOADING_DATASET: 'load',
  CALIBRATING: 'calibrate',
  STARTING: 'start executors',
  TRAINING: 'train',
  EVALUATING: 'evaluate',
  FINALIZING: 'finalize',
  PREDICTING: 'predict',
};

/** Open spans of a job: the job, PENDING or an attempt below it, a phase below that. */
interface OpenJob {
  readonly root: Span;
  /** `wait` or `attempt`. */
  part: Span | null;
  phase: Span | null;
  /** Span of the phase TRAINING; epochs may end after it. */
  training: Span | null;
}

/** Every number of a trace that many daemons may write follows from the job's uid. */
export function idsOf(uid: string): { readonly traceId: string; readonly spanId: string } {
  const digest = createHash('sha256').update(uid).digest('hex');
  return { traceId: digest.slice(0, 32), spanId: digest.slice(32, 48) };
}

class Traces implements JobTraces {
  readonly #provider: BasicTracerProvider;
  readonly #tracer: Tracer;
  readonly #ids = new JobIds();
  readonly #open = new Map<string, OpenJob>();

  constructor(version: string, processor: SpanProcessor) {
    this.#provider = new BasicTracerProvider({
      idGenerator: this.#ids,
      resource: resourceFromAttributes({
        'service.name': 'gnnd',
        'service.version': version,
        'host.name': hostname(),
      }),
      spanProcessors: [processor],
    });
    this.#tracer = this.#provider.getTracer('gnnd', version);
  }

  transitioned(before: JobRecord, after: JobRecord): void {
    const nowMs = systemClock.wallMs();
    const job = this.#open.get(after.uid) ?? this.#openJob(before);
    const wasAttempt = hasDevices(before);
    const isAttempt = hasDevices(after);
    if (before.state !== after.state && wasAttempt !== isAttempt) {
      this.#endPart(job, after, nowMs);
      if (!terminalStates.has(after.state)) this.#startPart(job, after, nowMs);
    }
    if (isAttempt && after.phase !== before.phase) this.#enterPhase(job, after.phase, nowMs);
    if (!terminalStates.has(after.state)) return;
    this.#endPart(job, after, nowMs);
    job.root.setAttributes({ 'gnnd.attempts': after.attempts.length });
    endWith(job.root, after, nowMs);
    this.#open.delete(after.uid);
  }

  epochEnded(jobUid: string, report: EpochReport): void {
    const job = this.#open.get(jobUid);
    if (job === undefined) return;
    const nowMs = systemClock.wallMs();
    const { epoch, loss, valAccuracy, batches, retries, durationMs } = report;
    const accuracy = valAccuracy === null ? {} : { 'gnnd.val_accuracy': valAccuracy };
    const span = this.#below(job.training ?? job.part ?? job.root, 'epoch', nowMs - durationMs, {
      ...{ 'gnnd.epoch': epoch, 'gnnd.loss': loss, ...accuracy },
      ...{ 'gnnd.batches': batches, 'gnnd.retries': retries },
    });
    span.end(nowMs);
  }

  partEnded(jobUid: string, name: string, seconds: number): void {
    const job = this.#open.get(jobUid);
    if (job === undefined) return;
    const nowMs = systemClock.wallMs();
    const above = job.phase ?? job.part ?? job.root;
    this.#below(above, name, nowMs - 1000 * seconds, {}).end(nowMs);
  }

  async close(): Promise<void> {
    // Whoever goes on with a job in the next daemon goes on with its trace.
    for (const { phase, training, part } of this.#open.values()) {
      for (const span of new Set([phase, training, part])) span?.end(systemClock.wallMs());
    }
    this.#open.clear();
    await this.#provider.shutdown().catch(() => {});
  }

  /** A job that another daemon began has the same root; the daemon that ends it tells it. */
  #openJob(before: JobRecord): OpenJob {
    const spec = before.effectiveSpec;
    this.#ids.next = idsOf(before.uid);
    const root = this.#tracer.startSpan(
      'job',
      {
        startTime: before.createAtMs,
        attributes: {
          ...{ 'gnnd.job': before.id, 'gnnd.uid': before.uid, 'gnnd.dataset': spec.dataset },
          ...{ 'gnnd.model': spec.model.type, 'gnnd.created_by': before.createdBy },
        },
      },
      ROOT_CONTEXT,
    );
    this.#ids.next = null;
    const job: OpenJob = { root, part: null, phase: null, training: null };
    this.#open.set(before.uid, job);
    this.#startPart(job, before, before.attempts.at(-1)?.endAtMs ?? before.createAtMs);
    return job;
  }

  #startPart(job: OpenJob, record: JobRecord, startMs: number): void {
    job.part = hasDevices(record)
      ? this.#below(job.root, 'attempt', startMs, { 'gnnd.attempt': record.attempts.length })
      : this.#below(job.root, record.state === 'SUSPENDED' ? 'rest' : 'wait', startMs, {});
  }

  #endPart(job: OpenJob, after: JobRecord, nowMs: number): void {
    this.#enterPhase(job, null, nowMs);
    job.training = null;
    if (job.part === null) return;
    const last = after.attempts.at(-1);
    job.part.setAttributes({ 'gnnd.reason': last?.endReason ?? after.reason });
    if (terminalStates.has(after.state)) endWith(job.part, after, nowMs);
    else job.part.end(nowMs);
    job.part = null;
  }

  #enterPhase(job: OpenJob, phase: JobPhase | null, nowMs: number): void {
    job.phase?.end(nowMs);
    job.phase =
      phase === null || job.part === null
        ? null
        : this.#below(job.part, phaseSpans[phase], nowMs, {});
    if (phase === 'TRAINING') job.training = job.phase;
  }

  #below(parent: Span, name: string, startTime: number, attributes: Attributes): Span {
    const context: Context = trace.setSpan(ROOT_CONTEXT, parent);
    return this.#tracer.startSpan(name, { startTime, attributes }, context);
  }
}

function hasDevices({ state }: JobRecord): boolean {
  return state !== 'PENDING' && state !== 'SUSPENDED' && !terminalStates.has(state);
}

function endWith(span: Span, { state, reason, message }: JobRecord, nowMs: number): void {
  span.setAttributes({ 'gnnd.state': state, 'gnnd.reason': reason });
  if (state === 'FAILED') span.setStatus({ code: SpanStatusCode.ERROR, message });
  span.end(nowMs);
}

/** Chance, but for the root of a job. */
class JobIds implements IdGenerator {
  next: ReturnType<typeof idsOf> | null = null;
  readonly #random = new RandomIdGenerator();

  generateTraceId(): string {
    return this.next?.traceId ?? this.#random.generateTraceId();
  }

  generateSpanId(): string {
    return this.next?.spanId ?? this.#random.generateSpanId();
  }
}
