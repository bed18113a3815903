import type { Clock } from '../../src/base/clock.ts';
import { GnndError } from '../../src/base/errors.ts';
import type { Log, LogFields } from '../../src/base/log.ts';
import type { JobEvent, Jobs } from '../../src/jobs/jobs.ts';
import type { DatasetRecord, OperationRecord } from '../../src/records/dataset-record.ts';
import type {
  JobProgress,
  JobRecord,
  JobState,
  JobTimeline,
} from '../../src/records/job-record.ts';
import type { PropagationRecord } from '../../src/records/propagation-record.ts';
import type { JobSpec } from '../../src/spec/job-spec.ts';
import { resolveJobSpec } from '../../src/spec/resolve-job-spec.ts';
import { encodeSpec } from '../../src/spec/spec-codec.ts';
import type { StoredEpoch } from '../../src/store/store.ts';
import { epochReport, jobPlan } from '../unit/store/job-values.ts';
import { contextOf } from './spec-context.ts';

/** Backends of the API that do as a test says, and time that passes when a test says so. */

export function resolvedSpec(): JobSpec {
  const context = contextOf({
    deviceNames: ['cpu:0', 'cpu:1'],
    numNodes: 2708,
    trainNodes: 140,
    valNodes: 500,
  });
  const resolution = resolveJobSpec({ dataset: 'cora', training: { epochs: 3 } }, context);
  if ('violations' in resolution) throw new Error(JSON.stringify(resolution.violations));
  return resolution.ok;
}

export function jobRecord(changes: Partial<Omit<JobRecord, 'encoded'>> = {}): JobRecord {
  const record = {
    id: 'mine',
    uid: '0b6c7d0e-6b0a-4a55-9a80-52f3a54bb001',
    spec: { dataset: 'cora', training: { epochs: 3 } },
    effectiveSpec: resolvedSpec(),
    datasetDigest: 'd'.repeat(64),
    choices: { standardize: 'OFF, as asked for', precision: 'FLOAT32, as asked for', schedule: '' },
    createdBy: 'sam',
    state: 'PENDING',
    phase: null,
    intent: 'RUN',
    reason: 'WAITING_FOR_DEVICES',
    message: 'waits for 1 device',
    createAtMs: 1_700_000_000_123,
    startAtMs: null,
    endAtMs: null,
    nextAttemptAtMs: null,
    revision: 1,
    attempts: [],
    plan: null,
    result: null,
    ...changes,
  } as const;
  const [spec, effectiveSpec] = [encodeSpec(record.spec), encodeSpec(record.effectiveSpec)];
  return { ...record, encoded: { spec, effectiveSpec } };
}

export function jobProgress(changes: Partial<JobProgress> = {}): JobProgress {
  return {
    epoch: 1,
    epochs: 3,
    batchesCommitted: 4,
    batchesPerEpoch: 9,
    version: 13,
    loss: 0.5,
    valAccuracy: 0.75,
    valMetrics: [{ name: 'accuracy', value: 0.75 }],
    seedsPerSecond: 1000,
    edgesPerSecond: 50_000,
    remainingMs: 9000,
    queueDepth: 2,
    queueCapacity: 5,
    executors: [
      {
        role: 'SAMPLER',
        device: 'cpu:0',
        pid: 41,
        busy: 0.5,
        batches: 12,
        stage: 'SAMPLE',
        cacheHitRate: 0,
      },
    ],
    evaluation: null,
    ...changes,
  };
}

/** A fake of one job whose past a test writes. */
export interface FakeJobs extends Jobs {
  /** Moves the job to a state in a new revision of the store. */
  transition(state: JobState, changes?: Partial<JobRecord>): void;
  /** A revision that belongs to another job. */
  otherJobChanges(): void;
  setProgress(progress: JobProgress | null): void;
  setTimeline(timeline: JobTimeline): void;
  /** Removes the job as a daemon that deletes it does. */
  remove(): void;
  /** Forgets the events up to this revision, as a daemon does. */
  compact(revision: number): void;
  /** What the queued job waits for; no transition. */
  waitsFor(message: string): void;
  /** Ends so many epochs of the present attempt. */
  endEpochs(count: number): void;
  /** The job's newest attempt takes over so many epochs of the one before it. */
  takeOverEpochs(count: number): void;
  /** Calls of `events` so far. */
  readonly eventReads: number;
  /** Jobs that `get` gave so far. */
  readonly jobReads: number;
  /** Reports that `epochs` gave so far. */
  readonly epochsRead: number;
  readonly listenerCount: number;
}

export function createFakeJobs(): FakeJobs {
  let job = jobRecord();
  let revision = job.revision;
  let progress: JobProgress | null = null;
  const timeline: JobTimeline = { queueCapacity: 0, stretches: [] };
  let eventReads = 0;
  let compacted = 0;
  let deletion: JobEvent | null = null;
  const events: JobEvent[] = [{ revision, atMs: 0, job }];
  const epochs = new Map<number, StoredEpoch[]>();
  let [epochsRead, jobReads] = [0, 0];
  const attemptNow = () => job.attempts.at(-1)?.number ?? 0;
  const epochsOf = (attempt: number) => epochs.get(attempt) ?? [];
  const listeners = new Set<() => void>();
  const changed = () => {
    for (const listener of listeners) listener();
  };
  const get = (id: string) => {
    jobReads += 1;
    if (id === job.id && deletion === null) return job;
    throw new GnndError('JOB_NOT_FOUND', `no job ${id}`, { resource: `jobs/${id}` });
  };
  return {
    create: async () => job,
    get,
    list: () => ({ jobs: [job], next: null }),
    cancel: (id) => get(id),
    suspend: (id) => get(id),
    resume: (id) => get(id),
    retry: async (id) => get(id),
    events(id, after, limit) {
      eventReads += 1;
      if (id !== job.id) throw new Error(`no job ${id}`);
      return events.filter((event) => event.revision > after).slice(0, limit);
    },
    revision: () => revision,
    compactedRevision: () => compacted,
    deletion: (_, after) => (deletion !== null && deletion.revision > after ? deletion : null),
    onChange(_, listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    epochs(_, attempt, first, limit) {
      const page = epochsOf(attempt).slice(first, first + limit);
      epochsRead += page.length;
      return page;
    },
    epochCount: ({ attempts }) => epochsOf(attempts.at(-1)?.number ?? 0).length,
    epochPlaceAfter(_, after) {
      const attempt = Math.max(1, attemptNow());
      const seen = epochsOf(attempt).filter((epoch) => epoch.revision <= after);
      return { attempt, epoch: seen.length };
    },
    progress: () => progress,
    plan: async () => jobPlan(),
    memory: () => null,
    timeline: async () => ({ attempt: attemptNow(), ...timeline }),
    logs: () => [],
    transition(state, changes = {}) {
      revision += 1;
      job = { ...job, state, revision, ...changes };
      events.push({ revision, atMs: 0, job });
      changed();
    },
    remove() {
      revision += 1;
      deletion = { revision, atMs: 0, job };
      changed();
    },
    compact(upTo) {
      compacted = upTo;
    },
    waitsFor(message) {
      job = { ...job, message };
      changed();
    },
    endEpochs(count) {
      const attempt = attemptNow();
      const ended = [...epochsOf(attempt)];
      for (let index = 0; index < count; index += 1) {
        revision += 1;
        ended.push({ revision, report: epochReport(ended.length) });
      }
      epochs.set(attempt, ended);
    },
    takeOverEpochs(count) {
      const attempt = attemptNow();
      epochs.set(attempt, epochsOf(attempt - 1).slice(0, count));
      epochs.delete(attempt - 1);
    },
    otherJobChanges() {
      revision += 1;
      changed();
    },
    setTimeline: (value) => void Object.assign(timeline, value),
    setProgress(value) {
      progress = value;
      changed();
    },
    get eventReads() {
      return eventReads;
    },
    get jobReads() {
      return jobReads;
    },
    get epochsRead() {
      return epochsRead;
    },
    get listenerCount() {
      return listeners.size;
    },
  };
}

export function datasetRecord(changes: Partial<DatasetRecord> = {}): DatasetRecord {
  return {
    id: 'cora',
    state: 'READY',
    message: '',
    digest: 'e'.repeat(64),
    path: '/state/datasets/cora',
    numNodes: 2708,
    numEdges: 10_556,
    numFeatures: 1433,
    featureDtype: 'float32',
    task: 'CLASSIFICATION',
    numClasses: 7,
    numTrain: 140,
    numVal: 500,
    numTest: 1000,
    bytes: 15_700_000,
    schema: null,
    createAtMs: 1_700_000_000_000,
    ...changes,
  };
}

export function operationRecord(changes: Partial<OperationRecord> = {}): OperationRecord {
  return {
    id: '01hf7yat00000000000000000a',
    kind: 'ImportDataset',
    target: 'cora',
    done: false,
    progress: 0.25,
    message: 'reading edges',
    createAtMs: 1_700_000_000_000,
    endAtMs: null,
    error: null,
    resource: '',
    validation: null,
    ...changes,
  };
}

export function propagationRecord(): PropagationRecord {
  const propagation = {
    ...{ operators: ['SYMMETRIC' as const], hops: 3, selfLoops: true, alpha: 0, heatTime: 0 },
    ...{ terms: 0, rowDtype: 'FLOAT32' as const, randomSeed: '0' },
    ...{ standardize: false, permute: true },
  };
  return {
    id: 'a'.repeat(32),
    source: { dataset: 'cora', datasetDigest: 'e'.repeat(64), propagation, standardize: false },
    complete: true,
    ...{ rows: 1640, bytes: 37_600_000, peakBytes: 40_000_000, memoryBytes: 1_000_000 },
    blockColumns: 64,
    path: '/state/cache/propagations/a',
    digest: 'f'.repeat(64),
  };
}

/** Time that stands still until it is advanced; sleepers wake in the order of their times. */
export interface VirtualTime {
  readonly clock: Clock;
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
  advance(byMs: number): Promise<void>;
  readonly sleeperCount: number;
}

export function createVirtualTime(): VirtualTime {
  let nowMs = 0;
  let sleepers: { readonly atMs: number; readonly wake: () => void }[] = [];
  return {
    clock: { wallMs: () => 1_700_000_000_000 + nowMs, monotonicMs: () => nowMs },
    sleep(delayMs, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted === true) {
          reject(signal.reason);
          return;
        }
        const sleeper = { atMs: nowMs + delayMs, wake: resolve };
        sleepers.push(sleeper);
        signal?.addEventListener('abort', () => {
          sleepers = sleepers.filter((other) => other !== sleeper);
          reject(signal.reason);
        });
      });
    },
    async advance(byMs) {
      nowMs += byMs;
      const due = sleepers.filter((sleeper) => sleeper.atMs <= nowMs);
      sleepers = sleepers.filter((sleeper) => sleeper.atMs > nowMs);
      for (const sleeper of due) sleeper.wake();
      await settled();
    },
    get sleeperCount() {
      return sleepers.length;
    },
  };
}

/** Lets everything that can go on without time or input go on. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly fields: LogFields;
}

/** A log that keeps its lines. */
export function createMemoryLog(): { readonly log: Log; readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const make = (fixed: LogFields): Log => {
    const emit = (level: string) => (msg: string, fields?: LogFields) =>
      void lines.push({ level, msg, fields: { ...fixed, ...fields } });
    return {
      debug: emit('debug'),
      info: emit('info'),
      warn: emit('warn'),
      error: emit('error'),
      with: (fields) => make({ ...fixed, ...fields }),
    };
  };
  return { log: make({}), lines };
}
