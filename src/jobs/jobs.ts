import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { type FieldViolation, GnndError } from '../base/errors.ts';
import { newUlid } from '../base/ids.ts';
import {
  countsOf,
  hasEdgeWeights,
  noDatasetText,
  requireReady,
} from '../datasets/ready-dataset.ts';
import { parameterCountOf } from '../files/checkpoint.ts';
import { removeStartFile, writeStartFile } from '../files/start-file.ts';
import type { CoreAddon } from '../native/contract.ts';
import { layoutOf, queueSlots } from '../plan/job-layout.ts';
import { memoryPlanOf, memoryViolations, rowPlanOf } from '../plan/memory-plan.ts';
import { type DatasetRecord, modelColumnsMax } from '../records/dataset-record.ts';
import type {
  ExecutorRole,
  JobPlan,
  JobProgress,
  JobRecord,
  JobState,
  JobTimeline,
} from '../records/job-record.ts';
import type { MemoryPlan } from '../records/memory-plan.ts';
import { makePlan } from '../scheduler/plan.ts';
import { formatCount } from '../spec/counted.ts';
import { devicesOfKind } from '../spec/device-kinds.ts';
import type { JobSpec, SpecDraft } from '../spec/job-spec.ts';
import { resolveJobSpec } from '../spec/resolve-job-spec.ts';
import { infers, samplesNothing } from '../spec/rules/inference.ts';
import type { ResolveContext } from '../spec/rules/rule.ts';
import { encodeSpec, withSpecs } from '../spec/spec-codec.ts';
import type { EpochPlace, NewJob, Store, StoredEpoch } from '../store/store.ts';
import { readTimeline } from '../supervisor/timeline.ts';
import { timelineFileOf } from './attempt-input.ts';
import { type InferenceSources, type SpecWithModel, withModel } from './inference-input.ts';
import { createJobBells } from './job-bells.ts';
import { createLifecycle, type Lifecycle, optional, requestKey } from './lifecycle.ts';
import type { Runner } from './runner.ts';
import { findStart, type Start, startViolations } from './start-input.ts';
import { type CreateJob, createSubmissions, type Made, type PreparedJob } from './submissions.ts';
import { createWaitingJobs } from './waiting.ts';

export type { CreateJob } from './submissions.ts';

/** What the user owns: jobs and their history. Writes first, acts second. */
export interface Jobs extends Lifecycle {
  /**
   * Checks everything, stores the job durably, together with others that come at the same time,
   * then answers it. Rejects with GnndError SPEC_INVALID (all violations, paths from `spec`),
   * JOB_EXISTS, REQUEST_ID_REUSED, DATASET_NOT_FOUND, DATASET_NOT_READY, JOB_QUEUE_FULL,
   * DAEMON_STOPPING.
   */
  create(request: CreateJob): Promise<JobRecord>;
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
  /** Estimated until calibrated. Throws JOB_NOT_FOUND. */
  plan(id: string): JobPlan;
  /** What it is predicted to take of the host's memory; null once its dataset is gone. */
  memory(job: JobRecord): MemoryPlan | null;
  /**
   * What an attempt's executors did (0 = latest); nothing where it trained nothing, or died with
   * its daemon. Throws JOB_NOT_FOUND.
   */
  timeline(id: string, attempt: number): Promise<AttemptTimeline>;
  /** Log files of an attempt (0 = latest). Throws JOB_NOT_FOUND. */
  logs(id: string, attempt: number): readonly LogFile[];
}

export interface ListJobs {
  readonly limit: number;
  readonly after: JobCursor | null;
  /** Empty: all. */
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
  /** The host's part of resolving a spec. */
  readonly host: Pick<
    ResolveContext,
    'deviceNames' | 'deviceCores' | 'deviceBits' | 'matrixLibrary' | 'pluginFile'
  > & {
    /** Bytes of devices that have memory of their own, by their names. */
    readonly deviceBudgets?: ReadonlyMap<string, number>;
  };
  /** What the host's memory is to this daemon. */
  readonly hostBytes: number;
  readonly maxQueued: number;
}

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
    create: async (request) => {
      const prepared = await prepareJob(options, request);
      const { uid, start } = prepared;
      const folder = join(options.jobsFolder, uid);
      const isCopied = start !== null && !request.validateOnly;
      if (isCopied) await writeStartFile(folder, start.bytes);
      let made: JobRecord | null = null;
      try {
        made = await submissions.create(prepared);
        return waiting.shown(made);
      } finally {
        // It was refused, or an earlier call had made it.
        if (isCopied && made?.uid !== uid) await removeStartFile(folder);
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
    progress: (id) => runner.attempts.get(id)?.progress ?? null,
    plan: (id) => planOf(options, get(id)),
    memory: (job) => memoryPlanOfJob(options, job),
    timeline: (id, attempt) => timelineOf(options, get(id), attempt),
    logs: (id, attempt) => logFilesOf(options, get(id), attempt),
  };
}

/** What is read from files before a job is made. */
async function prepareJob(options: JobsOptions, request: CreateJob): Promise<PreparedJob> {
  const given = await withModel(options, request.spec);
  const { start, violations } = await findStart(options, given.spec);
  const frozen = { startParametersSha256: start?.parametersSha256 };
  const spec =
    start === null
      ? given.spec
      : { ...given.spec, training: { ...given.spec.training, ...frozen } };
  const input = { ...given, spec, violations: [...given.violations, ...violations] };
  return { ...request, input, uid: randomUUID(), start };
}

/** In a transaction; `others` are new in it, too. */
function createJob(options: JobsOptions, request: PreparedJob, others: number): Made {
  const { store, runner, clock } = options;
  const key = requestKey('CreateJob', request.requestId, { id: request.id, spec: request.spec });
  const first = key === null ? null : store.replayOf(key);
  const made = first === null ? null : store.getJob(first.resource.replace(/^jobs\//, ''));
  if (made !== null) return { job: made, isNew: false };
  if (runner.state.draining) {
    throw new GnndError('DAEMON_STOPPING', 'the daemon is stopping and accepts no jobs');
  }
  const dataset = store.getDataset(request.input.spec.dataset ?? '');
  const spec = resolveOrThrow(options, request.input, dataset);
  const ready = requireReady(store, spec.dataset);
  checkLayout(options, spec, ready);
  checkStart(options, request.start, spec, ready);
  checkMemory(options, spec, ready);
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
    createdBy: request.createdBy,
  };
  if (request.validateOnly) return { job: previewOf(newJob, clock.wallMs()), isNew: false };
  return { job: store.insertJob(newJob, ...optional(key)), isNew: true };
}

function resolveOrThrow(
  options: JobsOptions,
  { spec: input, violations: before, isComplete }: SpecWithModel,
  dataset: DatasetRecord | null,
): JobSpec {
  const ready = dataset?.state === 'READY' ? dataset : null;
  const resolution = resolveJobSpec(input, {
    ...options.host,
    numNodes: ready?.numNodes ?? null,
    trainNodes: ready?.numTrain ?? null,
    valNodes: ready?.numVal ?? null,
    ...(ready === null ? {} : { targets: { task: ready.task, count: ready.numClasses } }),
    hasEdgeWeights: ready === null ? null : hasEdgeWeights(ready),
    bestRowChunk: (spec: SpecDraft) =>
      ready === null
        ? 1
        : rowPlanOf(spec, { native: options.native, ...placementFacts(options, spec, ready) })
            .chunk,
  });
  if ('ok' in resolution && before.length === 0) return resolution.ok;
  const found = 'ok' in resolution ? [] : resolution.violations;
  const isNew = ({ path }: FieldViolation) => !before.some((other) => other.path === path);
  const violations = [...before, ...(isComplete ? found : ownOf(found)).filter(isNew)];
  if (input.dataset !== undefined && dataset === null && violations.length > 0) {
    const description = noDatasetText(options.store, input.dataset);
    if (!violations.some(({ path }) => path === 'spec.dataset')) {
      violations.push({ path: 'spec.dataset', description });
    }
  }
  const fields = violations.length === 1 ? 'a field' : `${violations.length} fields`;
  throw new GnndError('SPEC_INVALID', `the job spec has ${fields} that cannot be`, { violations });
}

/** Of an inference whose model is not known: what can be wrong all the same. */
function ownOf(violations: readonly FieldViolation[]): readonly FieldViolation[] {
  const groups = ['inference', 'resources', 'restart', 'timeouts', 'priority'];
  return violations.filter(({ path }) => groups.includes(path.split('.')[1] ?? ''));
}

/** Sizes that do not fit are refused now, not after loading. */
function checkLayout(options: JobsOptions, spec: JobSpec, dataset: DatasetRecord): void {
  const { numFeatures, numClasses } = dataset;
  const most = `a model takes at most ${formatCount(modelColumnsMax)}`;
  const violations = Object.entries({ features: numFeatures, classes: numClasses })
    .filter(([, count]) => count > modelColumnsMax)
    .map(([what, count]) => ({
      path: 'spec.dataset',
      description: `${dataset.id} has ${formatCount(count)} ${what}, ${most}`,
    }));
  if (violations.length > 0) {
    throw new GnndError('SPEC_INVALID', 'the dataset is too wide for a model', { violations });
  }
  try {
    layoutOf(options.native, spec, countsOf(dataset));
  } catch (error) {
    const description = error instanceof Error ? error.message : String(error);
    throw new GnndError('SPEC_INVALID', 'the job does not fit its limits', {
      violations: [{ path: 'spec.sampling.fanouts', description }],
    });
  }
}

/** Parameters that the model cannot take over are refused now, too. */
function checkStart(
  { native }: JobsOptions,
  start: Start | null,
  spec: JobSpec,
  dataset: DatasetRecord,
): void {
  if (start === null) return;
  const { model } = layoutOf(native, spec, countsOf(dataset));
  const violations = startViolations(native, start, model);
  if (violations.length === 0) return;
  const message = `the model does not have the shapes of job ${start.job.id}`;
  throw new GnndError('SPEC_INVALID', message, { violations });
}

/** A job that surely takes more memory than there is would be killed for it. */
function checkMemory(options: JobsOptions, spec: JobSpec, dataset: DatasetRecord): void {
  const violations = memoryViolations(memoryOf(options, spec, dataset));
  if (violations.length === 0) return;
  throw new GnndError('SPEC_INVALID', 'the job does not fit the memory of this host', {
    violations,
  });
}

function memoryOf(options: JobsOptions, spec: JobSpec, dataset: DatasetRecord): MemoryPlan {
  const { native } = options;
  return memoryPlanOf(spec, { native, ...placementFacts(options, spec, dataset) });
}

function placementFacts(
  options: JobsOptions,
  spec: Pick<JobSpec, 'resources'>,
  dataset: DatasetRecord,
) {
  const deviceBytes = smallestBudgetOf(options, spec);
  return { counts: countsOf(dataset), hostBytes: options.hostBytes, deviceBytes };
}

/** Of the devices that the job may get, those with memory of their own; 0: there are none. */
function smallestBudgetOf(
  { host }: JobsOptions,
  { resources }: Pick<JobSpec, 'resources'>,
): number {
  const { deviceNames, deviceKind } = resources;
  const names = deviceNames.length > 0 ? deviceNames : devicesOfKind(host.deviceNames, deviceKind);
  const budgets = names.flatMap((name) => host.deviceBudgets?.get(name) ?? []);
  return budgets.length === 0 ? 0 : Math.min(...budgets);
}

/** Null once the dataset is gone. */
function memoryPlanOfJob(options: JobsOptions, { effectiveSpec: spec }: JobRecord) {
  const dataset = options.store.getDataset(spec.dataset);
  return dataset?.state === 'READY' ? memoryOf(options, spec, dataset) : null;
}

/** What `validate_only` answers: the job as it would be, without a name. */
function previewOf(job: Omit<NewJob, 'id' | 'uid'>, createAtMs: number): JobRecord {
  const { datasetDigest, createdBy } = job;
  const encoded = {
    spec: encodeSpec(job.spec),
    effectiveSpec: encodeSpec(job.effectiveSpec),
  };
  const shown = {
    datasetDigest,
    createdBy,
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

function planOf(options: JobsOptions, job: JobRecord): JobPlan {
  if (job.plan !== null && options.runner.planOf(job.id)?.estimated !== true) return job.plan;
  const { effectiveSpec: spec } = job;
  const dataset = requireReady(options.store, spec.dataset);
  const { deviceNames: names, deviceKind, devices: count } = spec.resources;
  const devices =
    names.length > 0 ? names : devicesOfKind(options.host.deviceNames, deviceKind).slice(0, count);
  const split =
    options.runner.planOf(job.id) ??
    makePlan({
      devices,
      policy: spec.placement.policy,
      fixedSamplers: spec.placement.samplers,
      standby: spec.placement.standby,
      rows: samplesNothing(spec),
      infers: infers(spec),
      steps: {
        batchesPerStep: spec.training.batchesPerStep,
        staleness: spec.training.staleness,
      },
      timings: null,
      epoch: null,
      standbyRoom: [],
      estimated: true,
    });
  if (split === null) {
    throw new GnndError('PLAN_INFEASIBLE', 'no executor could train on the devices asked for');
  }
  const counts = countsOf(dataset);
  const layout = layoutOf(options.native, spec, counts);
  const queueCapacity = queueSlots(
    options.native,
    {
      ...{ spec, counts, layout, deviceCount: devices.length },
      executorCount: split.executors.length,
    },
    0,
  );
  return {
    ...split,
    queueCapacity,
    slotBytes: layout.slotBytes,
    parameterCount: parameterCountOf(layout.manifest),
    cache: null,
  };
}

async function timelineOf(
  { runner, jobsFolder }: JobsOptions,
  { id, uid, attempts }: JobRecord,
  attempt: number,
): Promise<AttemptTimeline> {
  const latest = attempts.at(-1)?.number ?? 0;
  const number = attempt === 0 ? latest : attempt;
  const running = runner.attempts.get(id);
  const isRunning = running?.input.number === number && running.timeline !== null;
  const file = timelineFileOf(join(jobsFolder, uid), number);
  const found = isRunning ? running.timeline : await readTimeline(file);
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

/** In the order of an attempt: what prepares it, its calibration, its run. */
function stageOf({ log, role }: LogFile): number {
  if (role === null) return 0;
  return log.startsWith('trial-') ? 1 : 2;
}
