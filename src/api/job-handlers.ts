import { create, toBinary } from '@bufbuild/protobuf';
import type { Clock } from '../base/clock.ts';
import { type FieldViolation, GnndError } from '../base/errors.ts';
import type { Deletion } from '../jobs/deletion.ts';
import type { CreateJob, JobCursor, Jobs } from '../jobs/jobs.ts';
import type { EpochReport, JobRecord, JobState } from '../records/job-record.ts';
import { measurementOf } from '../records/plan-measurement.ts';
import { kindText } from '../spec/automatic-kind.ts';
import { stepsText } from '../spec/batches-per-step.ts';
import type { JobSpecInput } from '../spec/job-spec.ts';
import { plainOf } from '../spec/spec-codec.ts';
import { type Caller, requireOwner } from './access.ts';
import { timestamp } from './convert.ts';
import {
  type BesideJob,
  epochInit,
  jobStateFromProto,
  jobToProto,
  timelineToProto,
} from './convert-job.ts';
import { planToProto } from './convert-plan.ts';
import { embed } from './embed.ts';
import { ExecutorRole } from './gen/gnnd/v1/executor_pb.ts';
import { type Job, JobSchema } from './gen/gnnd/v1/job_pb.ts';
import {
  type CreateJobRequest,
  DeleteJobResponseSchema,
  type JobService,
  type ListEpochsRequest,
  ListEpochsResponseSchema,
  type ListJobsRequest,
  ListJobsResponseSchema,
  StreamLogsResponseSchema,
} from './gen/gnnd/v1/job_service_pb.ts';
import { JobSpecSchema } from './gen/gnnd/v1/job_spec_pb.ts';
import { JobTimelineSchema } from './gen/gnnd/v1/timeline_pb.ts';
import { type LogQuery, streamLogs } from './logs.ts';
import type { PageTokens } from './pages.ts';
import {
  idOfName,
  idViolation,
  invalidRequest,
  notNegative,
  pageSizeOf,
  requestIdOf,
} from './requests.ts';
import type { Handlers, MethodsOf } from './rpc.ts';
import type { Sleep } from './wait.ts';
import { watchJob } from './watch.ts';
import { createWatchMessages } from './watch-messages.ts';

export interface JobDeps {
  readonly jobs: Jobs;
  readonly deletion: Pick<Deletion, 'delete'>;
  readonly pages: PageTokens;
  readonly clock: Clock;
  readonly sleep: Sleep;
  /** Throws while the daemon takes no changes. */
  readonly admit: () => void;
}

/** A page ends early rather than outgrow the largest message. */
const pageBytesMax = 2 * 1024 * 1024;
/** The last epochs that a job shows; `ListEpochs` has the others. */
const epochsShown = 100;
const nothingBeside: BesideJob = { progress: null, numEpochs: 0, epochs: [] };

export function jobHandlers(deps: JobDeps): Handlers<MethodsOf<typeof JobService>> {
  const { jobs } = deps;
  const messages = createWatchMessages(jobs);
  const full = (job: JobRecord): Job => {
    const beside = { ...besideOf(jobs, job), epochs: newestEpochs(jobs, job) };
    return jobToProto(job, { ...beside, memory: jobs.memory(job) }, 'FULL');
  };
  return {
    async createJob(request, { caller, signal }) {
      deps.admit();
      const job = await createChecked(jobs, request, caller.name, signal);
      if (!request.validateOnly) return full(job);
      const beside = { ...nothingBeside, memory: jobs.memory(job) };
      return { ...jobToProto(job, beside, 'FULL'), name: '', uid: '' };
    },
    getJob: (request) => full(jobs.get(idOfName('jobs', request.name))),
    listJobs: (request) => listJobs(deps, request),
    listEpochs: (request) => listEpochs(deps, request),
    cancelJob(request, { caller }) {
      const id = idToChange(deps, request.name, caller);
      return full(jobs.cancel(id, requestIdOf(request.requestId)));
    },
    suspendJob(request, { caller }) {
      const id = idToChange(deps, request.name, caller);
      return full(jobs.suspend(id, requestIdOf(request.requestId)));
    },
    resumeJob(request, { caller }) {
      const id = idToChange(deps, request.name, caller);
      return full(jobs.resume(id, requestIdOf(request.requestId)));
    },
    async retryJob(request, { caller }) {
      const id = idToChange(deps, request.name, caller);
      const requestId = requestIdOf(request.requestId);
      return full(await jobs.retry(id, { fromBeginning: request.fromBeginning, requestId }));
    },
    deleteJob(request, { caller }) {
      const { isPending, keptCheckpoint } = deps.deletion.delete({
        id: idToChange(deps, request.name, caller),
        force: request.force,
        keepCheckpoint: request.keepCheckpoint,
        allowMissing: request.allowMissing,
        requestId: requestIdOf(request.requestId),
      });
      return create(DeleteJobResponseSchema, {
        pending: isPending,
        keptCheckpoint: keptCheckpoint ?? '',
      });
    },
    async *watchJob(request, call) {
      const startRevision = Number(request.startRevision);
      notNegative('start_revision', startRevision);
      const id = idOfName('jobs', request.name);
      const query = { id, startRevision, untilTerminal: request.untilTerminal };
      for await (const event of watchJob({ ...deps, messages }, query, call.signal)) {
        yield messages.encode(event);
      }
    },
    async *streamLogs(request, call) {
      notNegative('attempt', request.attempt);
      notNegative('tail_lines', request.tailLines);
      const query = {
        id: idOfName('jobs', request.name),
        attempt: request.attempt,
        role: roleFromProto(request.role),
        device: request.device,
        tailLines: request.tailLines,
        follow: request.follow,
      };
      for await (const chunk of streamLogs(deps, query, call.signal)) {
        yield create(StreamLogsResponseSchema, {
          log: chunk.log,
          role: chunk.role === null ? ExecutorRole.UNSPECIFIED : ExecutorRole[chunk.role],
          device: chunk.device,
          lines: [...chunk.lines],
          readTime: timestamp(deps.clock.wallMs()),
        });
      }
    },
    async getJobTimeline(request) {
      notNegative('attempt', request.attempt);
      const id = idOfName('jobs', request.name);
      const timeline = await jobs.timeline(id, request.attempt);
      return create(JobTimelineSchema, timelineToProto(timeline));
    },
    async getJobPlan(request, { signal }) {
      const id = idOfName('jobs', request.name);
      const plan = await jobs.plan(id, signal);
      const job = jobs.get(id);
      const measured = measurementOf(newestEpochs(jobs, job), plan);
      const rows = jobs.memory(job)?.rows ?? null;
      const { spec, effectiveSpec, choices } = job;
      const deviceKindChoice = kindText(spec, effectiveSpec);
      const batchesPerStepChoice = stepsText(spec, effectiveSpec);
      const planned = { plan, measured, rows, deviceKindChoice, batchesPerStepChoice, choices };
      return planToProto(`jobs/${id}`, planned, effectiveSpec);
    },
  };
}

/** The newest epochs of the job's last attempt, oldest first. */
function newestEpochs(jobs: Jobs, job: JobRecord, limit = epochsShown): readonly EpochReport[] {
  const attempt = job.attempts.at(-1)?.number ?? 0;
  const first = Math.max(0, jobs.epochCount(job) - limit);
  return jobs.epochs(job.id, attempt, first, limit).map(({ report }) => report);
}

function besideOf(jobs: Jobs, job: JobRecord): BesideJob {
  return { progress: jobs.progress(job.id), numEpochs: jobs.epochCount(job), epochs: [] };
}

/**
 * Creates the job. When the id is not one, the spec is checked all the same, so that one answer
 * names everything that is wrong.
 */
/** Throws ACCESS_DENIED; that a job is not there is told by whoever looks for it. */
function idToChange({ jobs, admit }: JobDeps, name: string, caller: Caller): string {
  admit();
  const id = idOfName('jobs', name);
  const job = found(jobs, id);
  if (job !== null) requireOwner(caller, job);
  return id;
}

function found(jobs: Jobs, id: string): JobRecord | null {
  try {
    return jobs.get(id);
  } catch (error) {
    if (error instanceof GnndError && error.reason === 'JOB_NOT_FOUND') return null;
    throw error;
  }
}

async function createChecked(
  jobs: Jobs,
  request: CreateJobRequest,
  createdBy: string,
  signal: AbortSignal,
): Promise<JobRecord> {
  const requestId = requestIdOf(request.requestId);
  const spec = request.spec === undefined ? {} : plainOf<JobSpecInput>(JobSpecSchema, request.spec);
  const { jobId, validateOnly } = request;
  const idProblem = jobId === '' ? null : idViolation('job_id', jobId);
  if (idProblem === null) {
    const id = jobId === '' ? null : jobId;
    return jobs.create({ id, spec, validateOnly, requestId, createdBy }, signal);
  }
  const check: CreateJob = { id: null, spec, validateOnly: true, requestId: null, createdBy };
  throw invalidRequest([idProblem, ...(await violationsOf(jobs.create(check, signal)))]);
}

async function violationsOf(check: Promise<unknown>): Promise<readonly FieldViolation[]> {
  try {
    await check;
    return [];
  } catch (error) {
    if (error instanceof GnndError) return error.violations;
    throw error;
  }
}

function listJobs(deps: JobDeps, request: ListJobsRequest) {
  const limit = pageSizeOf(request.pageSize);
  const states = statesOf(request);
  const list = `jobs ${[...states].sort().join(' ')}`;
  const after = deps.pages.open<JobCursor>(list, request.pageToken);
  const page = deps.jobs.list({ limit, after, states });
  const response = create(ListJobsResponseSchema, {});
  let bytes = 0;
  let next = page.next;
  let previous: JobRecord | null = null;
  for (const job of page.jobs) {
    const beside = { ...besideOf(deps.jobs, job), epochs: newestEpochs(deps.jobs, job, 1) };
    const message = jobToProto(job, beside, 'LIST');
    const part = toBinary(JobSchema, message);
    bytes += part.length;
    if (bytes > pageBytesMax && previous !== null) {
      next = { createAtMs: previous.createAtMs, uid: previous.uid };
      break;
    }
    embed(response, ListJobsResponseSchema.field.jobs, part);
    previous = job;
  }
  response.nextPageToken = next === null ? '' : deps.pages.issue(list, next);
  return response;
}

function listEpochs({ jobs, pages }: JobDeps, request: ListEpochsRequest) {
  notNegative('attempt', request.attempt);
  const limit = pageSizeOf(request.pageSize);
  const job = jobs.get(idOfName('jobs', request.name));
  const attempt = request.attempt === 0 ? (job.attempts.at(-1)?.number ?? 0) : request.attempt;
  const list = `epochs ${job.uid} ${attempt}`;
  const first = pages.open<number>(list, request.pageToken) ?? 0;
  const found = jobs.epochs(job.id, attempt, first, limit + 1);
  const epochs = found.slice(0, limit).map(({ report }) => epochInit(report, report.executorTimes));
  const nextPageToken = found.length > limit ? pages.issue(list, first + limit) : '';
  return create(ListEpochsResponseSchema, { attempt, epochs, nextPageToken });
}

function statesOf(request: ListJobsRequest): readonly JobState[] {
  const states = new Set<JobState>();
  const violations: FieldViolation[] = [];
  request.states.forEach((value, index) => {
    const state = jobStateFromProto(value);
    if (state !== undefined) states.add(state);
    else violations.push({ path: `states[${index}]`, description: `${value}: unknown state` });
  });
  if (violations.length > 0) throw invalidRequest(violations);
  return [...states];
}

/** Null for "every role". */
function roleFromProto(value: ExecutorRole): LogQuery['role'] {
  switch (value) {
    case ExecutorRole.UNSPECIFIED:
      return null;
    case ExecutorRole.SAMPLER:
      return 'SAMPLER';
    case ExecutorRole.TRAINER:
      return 'TRAINER';
    case ExecutorRole.STANDBY:
      return 'STANDBY';
    default:
      throw invalidRequest([{ path: 'role', description: `${value}: unknown role` }]);
  }
}
