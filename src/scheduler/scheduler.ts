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
  resumeAttempt,
  suspendAttempt,
} from './attempt.ts';
import { clearedBy, judged, lostWith } from './broken-devices.ts';
import { type DevicePlan, makePlan } from './plan.ts';
import { preemptions } from './preempt.ts';
import { compareJobs, grants } from './queue.ts';
import { deviceCountOf, requestProblem } from './request.ts';
import { backoffDelayMs } from './restart.ts';
import {
  type ActiveJob,
  type Command,
  type Decision,
  type Ending,
  isActive,
  isUsable,
  type Job,
  type Queued,
  type QueuedJob,
  type SchedulerEvent,
  type SchedulerState,
} from './state.ts';
import { type QueueView, viewQueue } from './waiting.ts';

/**
 * What should run where, now: one pure function of what is known and what has just happened. It
 * reads no clock, draws no random number and performs nothing (docs/scheduling.md).
 */

/** State before anything is known. */
export const initialState: SchedulerState = {
  devices: [],
  running: [],
  queue: [],
  draining: false,
  drained: false,
};

/**
 * Takes one event into account. The commands are to be performed in order, before the next event
 * is decided.
 *
 * Ignored, with the very same state object and no command: an event of an unknown job or of
 * another attempt than the present one; `submitted` of known jobs; `cancelled`, `suspended` and
 * `completed` that come after a success was decided, or again; `resumed` of one that is not being
 * suspended; an executor that is unknown or has left already; an event whose stage has passed
 * (`prepared`, `calibrated`, `executorReady`, `progress`, `epochEnded`, `attemptFailed` while
 * STOPPING, and so on); `progress` that is not progress; `deviceLost` of a device that is unknown
 * or already quarantined; `devicesFound` without a new name; a repeated `drain`; a `tick` at which
 * nothing is due.
 */
export function decide(state: SchedulerState, event: SchedulerEvent): Decision {
  const decision = apply(state, event);
  return decision.state === state ? decision : settle(state, decision, event.nowMs);
}

/** The next time at which a `tick` may change something, in ms; null if none will. */
export function nextWakeMs({ running, queue }: SchedulerState): number | null {
  const atMs = Math.min(earliestMs(running), queueWakeMs(queue));
  return atMs === never ? null : atMs;
}

const never = Number.POSITIVE_INFINITY;
const wakeOfQueue = new WeakMap<readonly QueuedJob[], number>();

/** Found once for each queue: steps of running jobs do not change it. */
function queueWakeMs(queue: readonly QueuedJob[]): number {
  const known = wakeOfQueue.get(queue);
  if (known !== undefined) return known;
  const atMs = earliestMs(queue);
  wakeOfQueue.set(queue, atMs);
  return atMs;
}

function earliestMs(jobs: readonly Job[]): number {
  let earliest = never;
  for (const job of jobs) earliest = Math.min(earliest, deadlineMs(job) ?? never);
  return earliest;
}

/**
 * A job's plan: the one in use, else an estimate on as many devices as it asks for, from the
 * times of its last attempt if there are any. Null for an unknown job.
 */
export function planOf(state: SchedulerState, jobId: string): DevicePlan | null {
  const job = findJob(state, jobId);
  if (job === null) return null;
  if (isActive(job) && job.stage.plan !== null) return job.stage.plan;
  const { devices, placement, steps } = job.request;
  const healthy = state.devices.filter(isUsable).map(({ name }) => name);
  const places = Array.from(
    { length: deviceCountOf(devices) },
    (_, index) => healthy[index] ?? '?',
  );
  return makePlan({
    ...placement,
    devices: isActive(job) ? job.stage.devices : devices.kind === 'names' ? devices.names : places,
    steps,
    timings: job.timings,
    epoch: job.epoch,
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
    case 'deviceDrained':
      return drainDevice(state, event);
    case 'submitted':
      return submit(state, event);
    case 'cancelled':
      return cancel(state, event);
    case 'suspended':
      return suspend(state, event);
    case 'resumed': {
      const job = findRunning(state, event.jobId);
      return job === null ? { state, commands: [] } : put(state, job, resumeAttempt(job));
    }
    case 'drain':
      return drain(state, event.nowMs);
    case 'tick':
      return tick(state, event);
    default: {
      const job = findRunning(state, event.jobId);
      if (job === null || job.stage.attempt !== event.attempt) return { state, commands: [] };
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
      const { executors } = job.stage;
      const device = executors.find((each) => each.executor === event.executor)?.device;
      const place = {
        ...{ jobId: event.jobId, attempt: event.attempt, executor: event.executor },
        ...{ device: device ?? '', executors: executors.map(({ executor }) => executor) },
      };
      const { outcome, devices } = judged(event.outcome, place, state.devices);
      const decision = put(state, job, afterExited(job, { ...event, outcome }));
      if (decision.state === state || device === undefined || outcome.kind === 'DONE') {
        return decision;
      }
      const told = withDevices(decision, devices);
      return quarantine(told, lostWith(outcome, device, devices), outcome.message);
    }
    case 'progress':
      return put(state, job, afterProgress(job, event));
    case 'epochEnded':
      return put(state, job, afterEpoch(job, event));
    case 'attemptFailed': {
      const { reason, message } = event;
      return put(state, job, failAttempt(job, { reason, message }, event.nowMs));
    }
    case 'completed': {
      const decision = put(state, job, afterCompleted(job, event));
      return withDevices(decision, clearedBy(job.stage.devices, decision.state.devices));
    }
    case 'stopped':
      return job.stage.ending === null
        ? { state, commands: [] }
        : closeAttempt(state, job, { ending: job.stage.ending, ...event });
    default:
      return unreachable(event);
  }
}

/** Grants what has become free, and says so when a drain is over. */
function settle(before: SchedulerState, { state, commands }: Decision, nowMs: number): Decision {
  let settled: Decision = { state, commands };
  if (mayGrant(before, state)) {
    for (const { job, devices } of grants(state)) {
      settled = append(settled, put(settled.state, job, openAttempt(job, devices, nowMs)));
    }
  }
  if (mayGrant(before, state)) {
    for (const { job, by } of preemptions(settled.state)) {
      const { jobId, priority } = by.request;
      const message = `gives its devices to ${jobId}, whose priority is ${priority}`;
      const failure = { reason: 'PREEMPTED', message } as const;
      settled = append(settled, put(settled.state, job, failAttempt(job, failure, nowMs)));
    }
  }
  if (!state.draining || state.drained || state.running.length > 0) return settled;
  return append(settled, { state: { ...state, drained: true }, commands: [{ kind: 'drained' }] });
}

/** Whether somebody came, left, or a device did: nothing else frees a device or asks for one. */
function mayGrant(before: SchedulerState, after: SchedulerState): boolean {
  return (
    before.queue !== after.queue ||
    before.devices !== after.devices ||
    before.running.length !== after.running.length
  );
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
  const job = state.running.find(({ stage }) => stage.devices.includes(device));
  if (lost.state === state || job === undefined) return lost;
  const failure = { reason: 'EXECUTOR_CRASHED', message: `lost ${device}: ${message}` } as const;
  return append(lost, put(lost.state, job, failAttempt(job, failure, nowMs)));
}

/** Takes a device out of use, or gives it back; who has it goes on elsewhere. */
function drainDevice(state: SchedulerState, event: EventOf<'deviceDrained'>): Decision {
  const { device, drained, nowMs } = event;
  const found = state.devices.find(({ name }) => name === device);
  if (found === undefined || (found.drained === true) === drained) return { state, commands: [] };
  const devices = state.devices.map((each) => (each === found ? { ...each, drained } : each));
  const decision = { state: { ...state, devices }, commands: [] };
  const job = state.running.find(({ stage }) => stage.devices.includes(device));
  if (!drained || job === undefined || job.stage.allDoneAtMs !== null) return decision;
  const failure = { reason: 'DEVICE_DRAINED', message: `${device} is being drained` } as const;
  return append(decision, put(decision.state, job, failAttempt(job, failure, nowMs)));
}

function withDevices(decision: Decision, devices: SchedulerState['devices']): Decision {
  const { state, commands } = decision;
  return devices === state.devices ? decision : { state: { ...state, devices }, commands };
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

function submit(state: SchedulerState, { jobs, nowMs }: EventOf<'submitted'>): Decision {
  const queue = [...state.queue];
  const commands: Command[] = [];
  for (const request of jobs) {
    const { jobId, tally, delayMs } = request;
    const problem = requestProblem(request);
    const notBeforeMs = delayMs > 0 ? nowMs + delayMs : null;
    const stage: Queued = { kind: 'QUEUED', sinceMs: nowMs, notBeforeMs, lastFailure: null };
    const job: QueuedJob = { request, tally, timings: null, epoch: null, stage };
    const place = placeOf(queue, job);
    if (queue[place]?.request.jobId === jobId || findRunning(state, jobId) !== null) continue;
    if (problem === null) {
      queue.splice(place, 0, job);
      continue;
    }
    const failed = { kind: 'finish', outcome: 'FAILED', reason: 'PLAN_INFEASIBLE' } as const;
    commands.push({ ...failed, jobId, attempt: tally.attempt, message: problem });
  }
  if (queue.length === state.queue.length) return { state, commands };
  return { state: { ...state, queue }, commands };
}

function cancel(state: SchedulerState, { jobId, nowMs }: EventOf<'cancelled'>): Decision {
  const running = findRunning(state, jobId);
  if (running !== null) return put(state, running, cancelAttempt(running, nowMs));
  const queued = state.queue.find(({ request }) => request.jobId === jobId);
  return queued === undefined ? { state, commands: [] } : finish(state, queued, { kind: 'CANCEL' });
}

function suspend(state: SchedulerState, { jobId, nowMs }: EventOf<'suspended'>): Decision {
  const running = findRunning(state, jobId);
  if (running !== null) return put(state, running, suspendAttempt(running, nowMs));
  const queued = state.queue.find(({ request }) => request.jobId === jobId);
  return queued === undefined ? { state, commands: [] } : rest(state, queued);
}

/** Forgets a job that has no devices, until it is submitted again. */
function rest(state: SchedulerState, job: Job): Decision {
  const { tally, request } = job;
  const command = { kind: 'suspend', jobId: request.jobId, attempt: tally.attempt, tally } as const;
  return { state: without(state, job), commands: [command] };
}

function drain(state: SchedulerState, nowMs: number): Decision {
  if (state.draining) return { state, commands: [] };
  const failure = { reason: 'DAEMON_SHUTDOWN', message: 'the daemon is stopping' } as const;
  let decision: Decision = { state: { ...state, draining: true }, commands: [] };
  for (const job of state.running) {
    decision = append(decision, put(decision.state, job, failAttempt(job, failure, nowMs)));
  }
  return decision;
}

/** Queued jobs that one tick ends: each is a write of its own, and the next tick is due at once. */
const expiredAtOnce = 32;

function tick(state: SchedulerState, { nowMs, jitter }: EventOf<'tick'>): Decision {
  let decision: Decision = { state, commands: [] };
  for (const job of state.running) {
    if (isDue(job, nowMs)) decision = append(decision, expire(decision.state, job, nowMs, jitter));
  }
  if (nowMs < queueWakeMs(state.queue)) return decision;
  const view = viewQueue(state);
  const due = state.queue.filter((job) => isDue(job, nowMs)).slice(0, expiredAtOnce);
  for (const job of due) decision = append(decision, wake(decision.state, job, view, nowMs));
  return decision;
}

function isDue(job: Job, nowMs: number): boolean {
  const dueMs = deadlineMs(job);
  return dueMs !== null && nowMs >= dueMs;
}

/** Ends an attempt whose deadline has passed. */
function expire(state: SchedulerState, job: ActiveJob, nowMs: number, jitter: number): Decision {
  const { ending } = job.stage;
  if (ending === null) return put(state, job, failOverdue(job, nowMs));
  const message = 'an executor was not reaped in time';
  const stuck = livingExecutors(job).map(({ device }) => device);
  const quarantined = quarantine({ state, commands: [] }, stuck, message);
  return append(quarantined, closeAttempt(quarantined.state, job, { ending, nowMs, jitter }));
}

/** Does what is due for a job that waits: its back-off is over, or its patience. */
function wake(state: SchedulerState, job: QueuedJob, view: QueueView, nowMs: number): Decision {
  const { pendingMs } = job.request.timeouts;
  if (pendingMs > 0 && nowMs >= job.stage.sinceMs + pendingMs) {
    const why = view.waitingFor(job.request.jobId)?.message ?? 'its turn had come';
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

interface Closing {
  readonly ending: Ending;
  readonly nowMs: number;
  readonly jitter: number;
}

/** Closes an attempt of which nothing is left: its devices are free, the job goes its way. */
function closeAttempt(state: SchedulerState, job: ActiveJob, closing: Closing): Decision {
  const { jobId, restart } = job.request;
  const { attempt, devices } = job.stage;
  const released: Decision = {
    state,
    commands: [{ kind: 'releaseDevices', jobId, attempt, devices }],
  };
  const { ending, nowMs, jitter } = closing;
  if (ending.kind === 'SUSPEND') return append(released, rest(state, job));
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
function finish(state: SchedulerState, job: Job, ending: Final): Decision {
  const { jobId } = job.request;
  const { attempt } = job.tally;
  const command = { kind: 'finish', jobId, attempt, ...outcomeOf(ending) } as const;
  return { state: without(state, job), commands: [command] };
}

type Final = Exclude<Ending, { readonly kind: 'RETRY' | 'SUSPEND' }>;

function outcomeOf(ending: Final) {
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
function put(state: SchedulerState, job: Job, { job: next, commands }: JobStep): Decision {
  if (next === job) return { state, commands };
  if (isActive(job) && isActive(next)) {
    const running = state.running.map((other) => (other === job ? next : other));
    return { state: { ...state, running }, commands };
  }
  const rest = without(state, job);
  if (isActive(next)) {
    const running = [...rest.running, next].sort(compareJobs);
    return { state: { ...rest, running }, commands };
  }
  const queue = rest.queue.toSpliced(placeOf(rest.queue, next), 0, next);
  return { state: { ...rest, queue }, commands };
}

function without(state: SchedulerState, job: Job): SchedulerState {
  if (isActive(job)) {
    return { ...state, running: state.running.filter((other) => other !== job) };
  }
  const queue = [...state.queue];
  const place = placeOf(queue, job);
  if (queue[place] === job) queue.splice(place, 1);
  return { ...state, queue };
}

/** Where a job stands, or would stand. */
function placeOf(queue: readonly QueuedJob[], job: Job): number {
  let low = 0;
  let high = queue.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = queue[middle];
    if (other !== undefined && compareJobs(other, job) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function append(first: Decision, next: Decision): Decision {
  return { state: next.state, commands: [...first.commands, ...next.commands] };
}

function findRunning(state: SchedulerState, jobId: string): ActiveJob | null {
  return state.running.find(({ request }) => request.jobId === jobId) ?? null;
}

function findJob(state: SchedulerState, jobId: string): Job | null {
  return (
    findRunning(state, jobId) ?? state.queue.find(({ request }) => request.jobId === jobId) ?? null
  );
}
