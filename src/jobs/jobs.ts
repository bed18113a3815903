import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { GnndError } from '../base/errors.ts';
import { newUlid } from '../base/ids.ts';
import { mayTake, noDatasetText, requireReady } from '../datasets/ready-dataset.ts';
import { removeStartFile } from '../files/start-file.ts';
import type { CoreAddon } from '../native/contract.ts';
import { type Pool, poolTask } from '../pool/pool.ts';
import type {
  ExecutorRole,
  JobPlan,
  JobProgress,
  JobRecord,
  JobState,
  JobTimeline,
} from '../records/job-record.ts';
import type { MemoryPlan } from '../records/memory-plan.ts';
import { encodeSpec, withSpecs } from '../spec/spec-codec.ts';
import type { EpochPlace, NewJob, Store, StoredEpoch } from '../store/store.ts';
import { readTimeline } from '../supervisor/supervisor.ts';
import { workOf } from '../work/work.ts';
import { timelineFileOf } from './attempt-input.ts';
import { type InferenceSources, withModel } from './inference-input.ts';
import { createJobBells } from './job-bells.ts';
import { checkJob, type JobHost, placementFacts } from './job-check.ts';
import { predictPlan } from './job-plan.ts';
import { createLifecycle, type Lifecycle, optional, requestKey } from './lifecycle.ts';
import type { Runner } from './runner.ts';
import { findStart, type StartAsked } from './start-input.ts';
import {
  type CheckedJob,
  type CreateJob,
  createSubmissions,
  type Made,
  type PreparedJob,
} from './submissions.ts';
import { createWaitingJobs } from './waiting.ts';

export type { CreateJob } from './submissions.ts';

/** What the user owns: jobs and their history. Writes first, acts second. */
export interface Jobs extends Lifecycle {
  /**
   * Checks everything, stores the job durably, together with others that come at the same time,
   * then answers it. Rejects with GnndError SPEC_INVALID (all violations, paths from `spec`),
   * JOB_EXISTS, REQUEST_ID_REUSED, DATASET_NOT_FOUND, DATASET_NOT_READY, JOB_QUEUE_FULL,
   * DAEMON_STOPPING; with the reason of `signal` where the caller goes before it is stored.
   */
  create(request: CreateJob, signal?: AbortSignal): Promise<JobRecord>;
  /** Throws JOB_NOT_FOUND. */
  get(id: string): JobRecord;
  /** Newest first; `after` is the cursor of the page before. */
  list(query: ListJobs): { readonly jobs: readonly JobRecord[]; readonly next: JobCursor | null };
  /** The job as it was at each transition after `revision`, oldest first, at most `limit`. */
  events(id: string, revision: number, limit: number): readonly JobEvent[];
  /** Newest revision of the store. */
  revision(): number;
  /** The events up to this revision are gone. */
  compactedRevision(): number;
  /** The first deletion of a job of this id after `revision`, as its last event. */
  deletion(id: string, revision: number): JobEvent | null;
  /**
   * Called after every transition of the job, and when what it waits for may be another; not for
   * its progress and its epochs. Returns unsubscribe.
   */
  onChange(id: string, listener: () => void): () => void;
  /** Reports of an attempt from epoch `first` on, at most `limit`. Throws JOB_NOT_FOUND. */
  epochs(id: string, attempt: number, first: number, limit: number): readonly StoredEpoch[];
  /** How many epochs of its attempt have ended. */
  epochCount(job: JobRecord): number;
  /** Where the epochs after `revision` begin. Throws JOB_NOT_FOUND. */
  epochPlaceAfter(id: string, revision: number): EpochPlace;
  /** Null unless the job is PREPARING or RUNNING. */
  progress(id: string): JobProgress | null;
  /** Estimated until calibrated. Rejects with JOB_NOT_FOUND, and as `requireReady` throws. */
  plan(id: string, signal: AbortSignal): Promise<JobPlan>;
  /** Host memory that a job is predicted to take; null once its dataset is gone. */
  memory(job: JobRecord): MemoryPlan | null;
  /**
   * Times of an attempt's executors (0 = latest); nothing where it trained nothing, or died with
   * its daemon. Throws JOB_NOT_FOUND.
   */
  timeline(id: string, attempt: number): Promise<AttemptTimeline>;
  /** Log files of an attempt (0 = latest). Throws JOB_NOT_FOUND. */
  logs(id: string, attempt: number): readonly LogFile[];
}

export interface ListJobs {
  readonly limit: number;
  readonly after: JobCursor | null;
  /** States to list; empty: all. */
  readonly states: readonly JobState[];
}

export interface JobCursor {
  readonly createAtMs: number;
  readonly uid: string;
}

export interface JobEvent {
  readonly revision: number;
  readonly atMs: number;
  readonly job: JobRecord;
}

export interface AttemptTimeline extends JobTimeline {
  /** 0 before the first one. */
  readonly attempt: number;
}

export interface LogFile {
  /** `trainer@cpu:1#1`; `trial-sampler@cpu:0#1` of a calibration; `probe`, `rank` of a task. */
  readonly log: string;
  /** Null for a task. */
  readonly role: ExecutorRole | null;
  /** Empty for a task. */
  readonly device: string;
  readonly path: string;
}

export interface JobsOptions extends Omit<InferenceSources, 'store'> {
  readonly store: Store;
  readonly runner: Runner;
  readonly native: CoreAddon;
  readonly clock: Clock;
  readonly host: Omit<JobHost, 'hostBytes'>;
  readonly pool: Pool;
  /** Memory that this daemon and its children may use: the host's, or a limit. */
  readonly hostBytes: number;
  readonly maxQueued: number;
}

const checking = poolTask(import.meta.url, './job-check.ts', 'SHORT', checkJob);
const predicting = poolTask(import.meta.url, './job-plan.ts', 'SHORT', predictPlan);

export function createJobs(options: JobsOptions): Jobs {
  const { store, runner } = options;
  const waiting = createWaitingJobs(() => runner.state);
  const bells = createJobBells();
  const submissions = createSubmissions({
    store,
    make: (request, others) => createJob(options, request, others),
    submit: (jobs) => runner.submit(jobs),
  });
  store.onCommit(bells.ring);
  runner.onQueueChange(() => bells.ringWhere((id) => !runner.attempts.has(id)));
  const get = (id: string): JobRecord => {
    const job = store.getJob(id);
    if (job !== null) return waiting.shown(job);
    const details = { resource: `jobs/${id}` };
    throw new GnndError('JOB_NOT_FOUND', `there is no job ${id}`, details);
  };
  return {
    create: async (request, signal = new AbortController().signal) => {
      const uid = randomUUID();
      const jobFolder = request.validateOnly ? null : join(options.jobsFolder, uid);
      let made: JobRecord | null = null;
      try {
        const checked = await checkedJob(options, request, { jobFolder, signal });
        made = await submissions.create({ ...request, uid, checked });
        return waiting.shown(made);
      } finally {
        // The job was refused, or an earlier call had made it.
        const beginsElsewhere = (request.spec.training?.startFrom ?? '') !== '';
        if (beginsElsewhere && jobFolder !== null && made?.uid !== uid) {
          await removeStartFile(jobFolder);
        }
      }
    },
    get,
    list: ({ limit, after, states }) => {
      const jobs = store.listJobs({ limit: limit + 1, after, states });
      const page = jobs.slice(0, limit).map(waiting.shown);
      const last = page.at(-1);
      const more = jobs.length > limit && last !== undefined;
      return { jobs: page, next: more ? { createAtMs: last.createAtMs, uid: last.uid } : null };
    },
    ...createLifecycle({ ...options, get }),
    events: (id, revision, limit) => store.events(id, revision, limit),
    revision: () => store.revision(),
    compactedRevision: () => store.compactedRevision(),
    deletion: (id, revision) => store.deletionOf(id, revision),
    onChange: bells.listen,
    epochs: (id, attempt, first, limit) => store.epochs(id, attempt, first, limit),
    epochCount: ({ id, attempts }) => {
      const attempt = attempts.at(-1)?.number ?? 0;
      return attempt === 0 ? 0 : store.epochCount(id, attempt);
    },
    epochPlaceAfter: (id, revision) => store.epochPlaceAfter(id, revision),
    progress: (id) => runner.attempts.get(id)?.seen.progress ?? null,
    plan: async (id, signal) => await planOf(options, get(id), signal),
    memory: (job) => memoryPlanOfJob(options, job),
    timeline: (id, attempt) => timelineOf(options, get(id), attempt),
    logs: (id, attempt) => logFilesOf(options, get(id), attempt),
  };
}

/** Reads the files that a job begins with, before it is made, and resolves its spec. */
async function checkedJob(
  options: JobsOptions,
  request: CreateJob,
  asked: StartAsked,
): Promise<CheckedJob> {
  const { store, pool, hostBytes } = options;
  const given = await withModel(options, request.spec);
  const { start, violations } = await findStart(options, given.spec, asked);
  const frozen = { startParametersSha256: start?.parametersSha256 };
  const spec =
    start === null
      ? given.spec
      : { ...given.spec, training: { ...given.spec.training, ...frozen } };
  const dataset = store.getDataset(spec.dataset ?? '');
  const isNone = dataset === null && spec.dataset !== undefined;
  const check = {
    given: { ...given, spec, violations: [...given.violations, ...violations] },
    ...{ dataset, noDataset: isNone ? noDatasetText(store, spec.dataset) : '', start },
    host: { ...options.host, hostBytes },
  };
  try {
    const resolved = await pool.run(checking, check, asked.signal);
    return { ...resolved, datasetDigest: dataset?.digest ?? '' };
  } catch (error) {
    // Told after it is known that no earlier call made the job.
    return { error };
  }
}

/** Creates a job within a transaction in which `others` more are new. */
function createJob(options: JobsOptions, request: PreparedJob, others: number): Made {
  const { store, runner, clock } = options;
  const key = requestKey('CreateJob', request.requestId, { id: request.id, spec: request.spec });
  const first = key === null ? null : store.replayOf(key);
  const made = first === null ? null : store.getJob(first.resource.replace(/^jobs\//, ''));
  if (made !== null) return { job: made, isNew: false };
  if (runner.state.draining) {
    throw new GnndError('DAEMON_STOPPING', 'the daemon is stopping and accepts no jobs');
  }
  const { checked } = request;
  if ('error' in checked) throw checked.error;
  const { spec } = checked;
  const ready = requireReady(store, spec.dataset);
  if (ready.digest !== checked.datasetDigest) {
    const message = `dataset ${ready.id} became another one while the job was checked`;
    throw new GnndError('DATASET_CHANGED', message, { resource: `datasets/${ready.id}` });
  }
  const { queue, running } = runner.state;
  if (queue.length + running.length + others >= options.maxQueued) {
    const message = `${options.maxQueued} jobs are queued or running already`;
    throw new GnndError('JOB_QUEUE_FULL', message);
  }
  const newJob = {
    id: request.id ?? `j-${newUlid(clock.wallMs())}`,
    uid: request.uid,
    spec: request.spec,
    effectiveSpec: spec,
    datasetDigest: ready.digest,
    choices: checked.choices,
    createdBy: request.createdBy,
  };
  if (request.validateOnly) return { job: previewOf(newJob, clock.wallMs()), isNew: false };
  return { job: store.insertJob(newJob, ...optional(key)), isNew: true };
}

/** Memory plan of a job; null once its dataset is gone. */
function memoryPlanOfJob(options: JobsOptions, { effectiveSpec: spec }: JobRecord) {
  const { native, host, hostBytes, store } = options;
  const dataset = store.getDataset(spec.dataset);
  // Another one may have its id by now, of a kind that no job takes.
  if (dataset?.state !== 'READY' || !mayTake(spec, dataset)) return null;
  const facts = placementFacts({ ...host, hostBytes }, spec, dataset);
  return workOf(spec, facts.schema).memory({ native, ...facts });
}

/** What `validate_only` answers: the job as it would be, without a name. */
function previewOf(job: Omit<NewJob, 'id' | 'uid'>, createAtMs: number): JobRecord {
  const { datasetDigest, choices, createdBy } = job;
  const encoded = {
    spec: encodeSpec(job.spec),
    effectiveSpec: encodeSpec(job.effectiveSpec),
  };
  const shown = {
    ...{ datasetDigest, choices, createdBy },
    id: '',
    uid: '',
    state: 'PENDING',
    phase: null,
    intent: 'RUN',
    reason: 'NONE',
    message: '',
    createAtMs,
    startAtMs: null,
    endAtMs: null,
    nextAttemptAtMs: null,
    revision: 0,
    attempts: [],
    plan: null,
    result: null,
  } as const;
  return withSpecs(shown, encoded);
}

async function planOf(
  { store, runner, host, pool }: JobsOptions,
  { id, plan, encoded, effectiveSpec }: JobRecord,
  signal: AbortSignal,
): Promise<JobPlan> {
  const given = runner.planOf(id);
  if (plan !== null && given?.estimated !== true) return plan;
  const dataset = requireReady(store, effectiveSpec.dataset);
  const { deviceNames } = host;
  const request = { jobId: id, effectiveSpec: encoded.effectiveSpec, dataset, deviceNames, given };
  return await pool.run(predicting, request, signal);
}

async function timelineOf(
  { runner, jobsFolder }: JobsOptions,
  { id, uid, attempts }: JobRecord,
  attempt: number,
): Promise<AttemptTimeline> {
  const latest = attempts.at(-1)?.number ?? 0;
  const number = attempt === 0 ? latest : attempt;
  const running = runner.attempts.get(id);
  const isRunning = running?.input.number === number && running.seen.timeline !== null;
  const file = timelineFileOf(join(jobsFolder, uid), number);
  const found = isRunning ? running.seen.timeline : await readTimeline(file);
  return { attempt: number, ...(found ?? { queueCapacity: 0, stretches: [] }) };
}

/** Executors' logs have their names, with `_` for what a file name may not hold. */
const executorLog = /^(trial-)?(sampler|trainer|standby)_(.+)_(\d+)_(\d+)\.log$/;

function logFilesOf(options: JobsOptions, job: JobRecord, attempt: number): readonly LogFile[] {
  const number = attempt === 0 ? (job.attempts.at(-1)?.number ?? 0) : attempt;
  const folder = join(options.jobsFolder, job.uid, 'attempts', String(number), 'log');
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.log'))
    .map((name) => logFileOf(name, join(folder, name)));
  return files.sort((a, b) => stageOf(a) - stageOf(b) || (a.log < b.log ? -1 : 1));
}

function logFileOf(name: string, path: string): LogFile {
  const [, trial = '', role, kind, index, ordinal] = executorLog.exec(name) ?? [];
  if (role === undefined)
    return { log: name.slice(0, -'.log'.length), role: null, device: '', path };
  const device = `${kind}:${index}`;
  const log = `${trial}${role}@${device}#${ordinal}`;
  return { log, role: role.toUpperCase() as ExecutorRole, device, path };
}

/** Sorts logs by an attempt's stages: preparation, calibration, run. */
function stageOf({ log, role }: LogFile): number {
  if (role === null) return 0;
  return log.startsWith('trial-') ? 1 : 2;
}
