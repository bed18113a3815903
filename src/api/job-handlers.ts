import { create, toBinary } from '@bufbuild/protobuf';
import type { Clock } from '../base/clock.ts';
import { type FieldViolation, GnndError } from '../base/errors.ts';
import type { Deletion } from '../jobs/deletion.ts';
import type { CreateJob, JobCursor, Jobs } from '../jobs/jobs.ts';
import type { JobRecord, JobState } from '../spec/job-record.ts';
import { timestamp } from './convert.ts';
import { jobStateFromProto, jobToProto, planToProto } from './convert-job.ts';
import { specFromProto } from './convert-spec.ts';
import { ExecutorRole, type Job, JobSchema } from './gen/gnnd/v1/job_pb.ts';
import {
  type CreateJobRequest,
  DeleteJobResponseSchema,
  type JobService,
  type ListJobsRequest,
  ListJobsResponseSchema,
  StreamLogsResponseSchema,
  WatchJobResponseSchema,
  WatchType,
} from './gen/gnnd/v1/job_service_pb.ts';
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

export function jobHandlers(deps: JobDeps): Handlers<MethodsOf<typeof JobService>> {
  const { jobs } = deps;
  const full = (job: JobRecord): Job => jobToProto(job, jobs.progress(job.id), 'FULL');
  return {
    createJob(request) {
      deps.admit();
      const job = createChecked(jobs, request);
      if (!request.validateOnly) return full(job);
      return { ...jobToProto(job, null, 'FULL'), name: '', uid: '' };
    },
    getJob: (request) => full(jobs.get(idOfName('jobs', request.name))),
    listJobs: (request) => listJobs(deps, request),
    cancelJob(request) {
      deps.admit();
      const requestId = requestIdOf(request.requestId);
      return full(jobs.cancel(idOfName('jobs', request.name), requestId));
    },
    deleteJob(request) {
      deps.admit();
      const { isPending, keptCheckpoint } = deps.deletion.delete({
        id: idOfName('jobs', request.name),
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
      for await (const event of watchJob(deps, query, call.signal)) {
        yield create(WatchJobResponseSchema, {
          type: WatchType[event.kind],
          revision: BigInt(event.revision),
          ...(event.kind === 'BOOKMARK'
            ? {}
            : { job: jobToProto(event.job, event.progress, viewOf(event.kind)) }),
        });
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
    getJobPlan(request) {
      const id = idOfName('jobs', request.name);
      return planToProto(`jobs/${id}`, jobs.plan(id), jobs.get(id).effectiveSpec);
    },
  };
}

function viewOf(kind: 'SNAPSHOT' | 'CHANGED' | 'PROGRESS' | 'DELETED'): 'FULL' | 'WATCH' {
  return kind === 'PROGRESS' ? 'WATCH' : 'FULL';
}

/**
 * Creates the job. When the id is not one, the spec is checked all the same, so that one answer
 * names everything that is wrong.
 */
function createChecked(jobs: Jobs, request: CreateJobRequest): JobRecord {
  const requestId = requestIdOf(request.requestId);
  const spec = request.spec === undefined ? {} : specFromProto(request.spec);
  const { jobId, validateOnly } = request;
  const idProblem = jobId === '' ? null : idViolation('job_id', jobId);
  if (idProblem === null) {
    return jobs.create({ id: jobId === '' ? null : jobId, spec, validateOnly, requestId });
  }
  const check: CreateJob = { id: null, spec, validateOnly: true, requestId: null };
  throw invalidRequest([idProblem, ...violationsOf(() => jobs.create(check))]);
}

function violationsOf(check: () => unknown): readonly FieldViolation[] {
  try {
    check();
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
  const messages: Job[] = [];
  let bytes = 0;
  let next = page.next;
  for (const job of page.jobs) {
    const message = jobToProto(job, deps.jobs.progress(job.id), 'LIST');
    bytes += toBinary(JobSchema, message).length;
    const previous = page.jobs[messages.length - 1];
    if (bytes > pageBytesMax && previous !== undefined) {
      next = { createAtMs: previous.createAtMs, uid: previous.uid };
      break;
    }
    messages.push(message);
  }
  const nextPageToken = next === null ? '' : deps.pages.issue(list, next);
  return create(ListJobsResponseSchema, { jobs: messages, nextPageToken });
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
