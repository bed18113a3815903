import { unreachable } from '../base/errors.ts';
import {
  afterCalibrated,
  afterCompleted,
  afterEpoch,
  afterExited,
  afterPrepared,
  afterProgress,
  afterReady,
  attemptDeadlineMs,
  cancelAttempt,
  failAttempt,
  failOverdue,
  type JobStep,
  livingExecutors,
  openAttempt,
} from './attempt.ts';
import { type DevicePlan, makePlan } from './plan.ts';
import { compareJobs, grants, waitingFor } from './queue.ts';
import { deviceCountOf, requestProblem } from './request.ts';
import { backoffDelayMs } from './restart.ts';
import {
  type ActiveJob,
  type Command,
  type Decision,
  type Ending,
  isActive,
  type Job,
  type Queued,
  type QueuedJob,
  type SchedulerEvent,
  type SchedulerState,
} from './state.ts';

/**
 * What should run where, now: one pure function of what is known and what has just happened. It
 * reads no clock, draws no random number and performs nothing (docs/scheduling.md).
 */

/** Before anything is known. */
export const initialState: SchedulerState = {
  devices: [],
  jobs: [],
  draining: false,
  drained: false,
};

/**
 * Takes one event into account. The commands are to be performed in order, before the next event
 * is decided.
 *
 * Ignored, with the very same state object and no command: an event of an unknown job or of
 * another attempt than the present one; `submitted` of a known job; `cancelled` and `completed`
 * that come after a success was decided, or again; an executor that is unknown or has left
 * already; an event whose stage has passed (`prepared`, `calibrated`, `executorReady`,
 * `progress`, `epochEnded`, `attemptFailed` while STOPPING, and so on); `progress` that is not
 * progress; `deviceLost` of a device that is unknown or already quarantined; `devicesFound`
 * without a new name; a repeated `drain`; a `tick` at which nothing is due.
 */
export function decide(state: SchedulerState, event: SchedulerEvent): Decision {
  const decision = apply(state, event);
  return decision.state === state ? decision : settle(decision, event.nowMs);
}

/** The next time at which a `tick` may change something, in ms; null if none will. */
export function nextWakeMs(state: SchedulerState): number | null {
  const deadlines = state.jobs.map(deadlineMs).filter((atMs) => atMs !== null);
  return deadlines.length === 0 ? null : Math.min(...deadlines);
}

/**
 * A job's plan: the one in use, else an estimate on as many devices as it asks for, from the
 * times of its last attempt if there are any. Null for an unknown job.
 */
export function planOf(state: SchedulerState, jobId: string): DevicePlan | null {
  const job = findJob(state, jobId);
  if (job === null) return null;
  if (isActive(job) && job.stage.plan !== null) return job.stage.plan;
  const { devices, placement } = job.request;
  const healthy = state.devices.flatMap(({ name, quarantine }) =>
    quarantine === null ? [name] : [],
  );
  const places = Array.from(
    { length: deviceCountOf(devices) },
    (_, index) => healthy[index] ?? '?',
  );
  return makePlan({
    ...placement,
    devices: isActive(job) ? job.stage.devices : devices.kind === 'names' ? devices.names : places,
    timings: job.timings,
    standbyRoom: [],
    estimated: true,
  });
}

function apply(state: SchedulerState, event: SchedulerEvent): Decision {
  switch (event.kind) {
    case 'devicesFound':
      return addDevices(state, event.names);
    case 'deviceLost':
      return loseDevice(state, event);
    case 'submitted':
      return submit(state, event);
    case 'cancelled':
      return cancel(state, event);
    case 'drain':
      return drain(state, event.nowMs);
    case 'tick':
      return tick(state, event);
    default: {
      const job = findJob(state, event.jobId);
      if (job === null || !isActive(job) || job.stage.attempt !== event.attempt) {
        return { state, commands: [] };
      }
      return applyToAttempt(state, job, event);
    }
  }
}

type AttemptEvent = Extract<SchedulerEvent, { readonly attempt: number }>;

function applyToAttempt(state: SchedulerState, job: ActiveJob, event: AttemptEvent): Decision {
  switch (event.kind) {
    case 'prepared':
      return put(state, job, afterPrepared(job, event));
    case 'calibrated':
      return put(state, job, afterCalibrated(job, event));
    case 'executorReady':
      return put(state, job, afterReady(job, event));
    case 'executorExited': {
      const decision = put(state, job, afterExited(job, event));
      if (event.outcome.kind !== 'UNKILLABLE' || decision.state === state) return decision;
      const device = job.stage.executors.find(
        ({ executor }) => executor === event.executor,
      )?.device;
      return quarantine(decision, device === undefined ? [] : [device], event.outcome.message);
    }
    case 'progress':
      return put(state, job, afterProgress(job, event));
    case 'epochEnded':
      return put(state, job, afterEpoch(job, event));
    case 'attemptFailed': {
      const { reason, message } = event;
      return put(state, job, failAttempt(job, { reason, message }, event.nowMs));
    }
    case 'completed':
      return put(state, job, afterCompleted(job, event));
    case 'stopped':
      return job.stage.ending === null
        ? { state, commands: [] }
        : closeAttempt(state, job, { ending: job.stage.ending, ...event });
    default:
      return unreachable(event);
  }
}

/** Grants what has become free, and says so when a drain is over. */
function settle({ state, commands }: Decision, nowMs: number): Decision {
  let settled: Decision = { state, commands };
  for (const { job, devices } of grants(state)) {
    settled = append(settled, put(settled.state, job, openAttempt(job, devices, nowMs)));
  }
  if (!state.draining || state.drained || state.jobs.some(isActive)) return settled;
  return append(settled, { state: { ...state, drained: true }, commands: [{ kind: 'drained' }] });
}

function addDevices(state: SchedulerState, names: readonly string[]): Decision {
  const known = new Set(state.devices.map(({ name }) => name));
  const added = [...new Set(names)].filter((name) => !known.has(name));
  if (added.length === 0) return { state, commands: [] };
  const devices = [...state.devices, ...added.map((name) => ({ name, quarantine: null }))];
  return { state: { ...state, devices }, commands: [] };
}

type EventOf<Kind extends SchedulerEvent['kind']> = Extract<
  SchedulerEvent,
  { readonly kind: Kind }
>;

function loseDevice(state: SchedulerState, event: EventOf<'deviceLost'>): Decision {
  const { device, message, nowMs } = event;
  const lost = quarantine({ state, commands: [] }, [device], message);
  const job = state.jobs.filter(isActive).find(({ stage }) => stage.devices.includes(device));
  if (lost.state === state || job === undefined) return lost;
  const failure = { reason: 'EXECUTOR_CRASHED', message: `lost ${device}: ${message}` } as const;
  return append(lost, put(lost.state, job, failAttempt(job, failure, nowMs)));
}

/** Takes devices out of service for good. */
function quarantine(decision: Decision, names: readonly string[], message: string): Decision {
  const { state } = decision;
  const struck = state.devices.filter(
    (device) => device.quarantine === null && names.includes(device.name),
  );
  if (struck.length === 0) return decision;
  const devices = state.devices.map((device) =>
    struck.includes(device) ? { ...device, quarantine: message } : device,
  );
  const commands = struck.map(
    ({ name }): Command => ({ kind: 'quarantineDevice', device: name, message }),
  );
  return append(decision, { state: { ...state, devices }, commands });
}

function submit(state: SchedulerState, { job: request, nowMs }: EventOf<'submitted'>): Decision {
  const { jobId, tally, delayMs } = request;
  if (findJob(state, jobId) !== null) return { state, commands: [] };
  const problem = requestProblem(request);
  if (problem !== null) {
    const { attempt } = tally;
    const failed = { kind: 'finish', outcome: 'FAILED', reason: 'PLAN_INFEASIBLE' } as const;
    return { state, commands: [{ ...failed, jobId, attempt, message: problem }] };
  }
  const notBeforeMs = delayMs > 0 ? nowMs + delayMs : null;
  const stage: Queued = { kind: 'QUEUED', sinceMs: nowMs, notBeforeMs, lastFailure: null };
  const job: QueuedJob = { request, tally, timings: null, stage };
  return { state: { ...state, jobs: [...state.jobs, job].sort(compareJobs) }, commands: [] };
}

function cancel(state: SchedulerState, { jobId, nowMs }: EventOf<'cancelled'>): Decision {
  const job = findJob(state, jobId);
  if (job === null) return { state, commands: [] };
  if (isActive(job)) return put(state, job, cancelAttempt(job, nowMs));
  return finish(state, job, { kind: 'CANCEL' });
}

function drain(state: SchedulerState, nowMs: number): Decision {
  if (state.draining) return { state, commands: [] };
  const failure = { reason: 'DAEMON_SHUTDOWN', message: 'the daemon is stopping' } as const;
  let decision: Decision = { state: { ...state, draining: true }, commands: [] };
  for (const job of state.jobs.filter(isActive)) {
    decision = append(decision, put(decision.state, job, failAttempt(job, failure, nowMs)));
  }
  return decision;
}

function tick(state: SchedulerState, { nowMs, jitter }: EventOf<'tick'>): Decision {
  let decision: Decision = { state, commands: [] };
  for (const job of state.jobs) {
    const dueMs = deadlineMs(job);
    if (dueMs === null || nowMs < dueMs) continue;
    decision = append(decision, expire(decision.state, job, { nowMs, jitter }));
  }
  return decision;
}

interface Moment {
  readonly nowMs: number;
  readonly jitter: number;
}

/** Does what is due for a job whose deadline has passed. */
function expire(state: SchedulerState, job: Job, { nowMs, jitter }: Moment): Decision {
  if (isActive(job)) {
    const { ending } = job.stage;
    if (ending === null) return put(state, job, failOverdue(job, nowMs));
    const message = 'an executor was not reaped in time';
    const stuck = livingExecutors(job).map(({ device }) => device);
    const quarantined = quarantine({ state, commands: [] }, stuck, message);
    return append(quarantined, closeAttempt(quarantined.state, job, { ending, nowMs, jitter }));
  }
  const { pendingMs } = job.request.timeouts;
  if (pendingMs > 0 && nowMs >= job.stage.sinceMs + pendingMs) {
    const why = waitingFor(state, job.request.jobId)?.message ?? 'its turn had come';
    const message = `got no devices within ${pendingMs / 1000} s: ${why}`;
    return finish(state, job, { kind: 'FAIL', reason: 'PENDING_TIMEOUT', message });
  }
  const stage: Queued = { ...job.stage, notBeforeMs: null };
  return put(state, job, { job: { ...job, stage }, commands: [] });
}

/** When something is due for a job, in ms; null if nothing ever is. */
function deadlineMs(job: Job): number | null {
  if (isActive(job)) return attemptDeadlineMs(job);
  const { stage, request } = job;
  const { pendingMs } = request.timeouts;
  const pendingAtMs = pendingMs > 0 ? stage.sinceMs + pendingMs : null;
  if (pendingAtMs === null || stage.notBeforeMs === null) return pendingAtMs ?? stage.notBeforeMs;
  return Math.min(pendingAtMs, stage.notBeforeMs);
}

interface Closing extends Moment {
  readonly ending: Ending;
}

/** Nothing of the attempt is left: its devices are free, and the job goes its way. */
function closeAttempt(state: SchedulerState, job: ActiveJob, closing: Closing): Decision {
  const { jobId, restart } = job.request;
  const { attempt, devices } = job.stage;
  const released: Decision = {
    state,
    commands: [{ kind: 'releaseDevices', jobId, attempt, devices }],
  };
  const { ending, nowMs, jitter } = closing;
  if (ending.kind !== 'RETRY') return append(released, finish(state, job, ending));
  const { failure, free } = ending;
  const { tally } = job;
  const delayMs = free ? 0 : backoffDelayMs(restart, tally, jitter);
  const stage: Queued = {
    kind: 'QUEUED',
    sinceMs: nowMs,
    notBeforeMs: delayMs > 0 ? nowMs + delayMs : null,
    lastFailure: failure,
  };
  const requeued = put(state, job, {
    job: { ...job, stage },
    commands: [{ kind: 'requeue', jobId, attempt, failure, delayMs, tally }],
  });
  return append(released, requeued);
}

/** Ends a job that has no devices, and forgets it. */
function finish(
  state: SchedulerState,
  job: Job,
  ending: Exclude<Ending, { readonly kind: 'RETRY' }>,
): Decision {
  const { jobId } = job.request;
  const { attempt } = job.tally;
  const jobs = state.jobs.filter((other) => other !== job);
  const command = { kind: 'finish', jobId, attempt, ...outcomeOf(ending) } as const;
  return { state: { ...state, jobs }, commands: [command] };
}

function outcomeOf(ending: Exclude<Ending, { readonly kind: 'RETRY' }>) {
  switch (ending.kind) {
    case 'SUCCEED':
      return { outcome: 'SUCCEEDED', reason: 'COMPLETED', message: '' } as const;
    case 'CANCEL':
      return {
        outcome: 'CANCELLED',
        reason: 'USER_CANCELLED',
        message: 'cancelled on request',
      } as const;
    case 'FAIL':
      return { outcome: 'FAILED', reason: ending.reason, message: ending.message } as const;
    default:
      return unreachable(ending);
  }
}

/** Puts a job's next form in the place of the present one. */
function put(state: SchedulerState, job: Job, step: JobStep): Decision {
  if (step.job === job) return { state, commands: step.commands };
  const jobs = state.jobs.map((other) => (other === job ? step.job : other));
  return { state: { ...state, jobs }, commands: step.commands };
}

function append(first: Decision, next: Decision): Decision {
  return { state: next.state, commands: [...first.commands, ...next.commands] };
}

function findJob(state: SchedulerState, jobId: string): Job | null {
  return state.jobs.find(({ request }) => request.jobId === jobId) ?? null;
}
