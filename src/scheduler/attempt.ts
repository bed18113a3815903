import { unreachable } from '../base/errors.ts';
import { teamsOf } from './choose.ts';
import { type Failure, failureRules } from './failure.ts';
import { type DevicePlan, makePlan } from './plan.ts';
import { noEvidence, reconsiderSplit } from './resplit.ts';
import { judge, recentRespawns, whyNoRespawn } from './restart.ts';
import type {
  Active,
  ActiveJob,
  Command,
  Ending,
  Executor,
  ExecutorOutcome,
  ExecutorSeat,
  Job,
  QueuedJob,
  SchedulerEvent,
  Stopping,
} from './state.ts';
import { areTimings } from './timings.ts';

/**
 * The life of one attempt: PREPARING, CALIBRATING, STARTING, RUNNING, STOPPING. Each function
 * takes the job as it is and answers how it is afterwards and what is to be done; a job that is
 * returned unchanged (the same object) means that the event was ignored.
 */

export interface JobStep {
  readonly job: Job;
  readonly commands: readonly Command[];
}

type EventOf<Kind extends SchedulerEvent['kind']> = Extract<
  SchedulerEvent,
  { readonly kind: Kind }
>;

/** Opens the next attempt of a queued job on the devices it was granted. */
export function openAttempt(job: QueuedJob, devices: readonly string[], nowMs: number): JobStep {
  const attempt = job.tally.attempt + 1;
  const stage: Active = {
    kind: 'PREPARING',
    attempt,
    startedAtMs: nowMs,
    sinceMs: nowMs,
    devices,
    executors: [],
    plan: null,
    respawnedAtMs: [],
    respawnsWithoutProgress: 0,
    committedBatches: 0,
    allDoneAtMs: null,
    ending: null,
    splitWatch: noEvidence,
  };
  const { jobId, restart } = job.request;
  const failuresLeft = restart.maxAttempts - job.tally.runFailures;
  return {
    job: { ...job, tally: { ...job.tally, attempt }, stage },
    commands: [{ kind: 'prepare', jobId, attempt, devices, failuresLeft }],
  };
}

/** Dataset and segment are there: measure, unless nothing depends on it. */
export function afterPrepared(job: ActiveJob, { nowMs }: EventOf<'prepared'>): JobStep {
  if (job.stage.kind !== 'PREPARING') return unchanged(job);
  if (!needsCalibration(job)) {
    const { devices } = job.stage;
    const { placement, steps } = job.request;
    const plan = makePlan({
      ...placement,
      devices,
      steps,
      timings: null,
      epoch: null,
      standbyRoom: [],
      estimated: false,
    });
    return launch(job, plan, nowMs);
  }
  const executors = trialSeats(job).map(
    (seat) => ({ ...seat, status: 'SPAWNED', ordinal: 1 }) as const,
  );
  return {
    job: enter(job, nowMs, { kind: 'CALIBRATING', executors }),
    commands: [{ kind: 'calibrate', ...idOf(job), executors: executors.map(seatOf) }],
  };
}

/** The measurements are in: split the devices and start. */
export function afterCalibrated(job: ActiveJob, event: EventOf<'calibrated'>): JobStep {
  if (job.stage.kind !== 'CALIBRATING') return unchanged(job);
  const { nowMs, timings, epoch, standbyRoom, samplerSets = [] } = event;
  if (!areTimings(timings)) {
    const message = `calibration reported ${JSON.stringify(timings)}, expected whole ns`;
    return failAttempt(job, { reason: 'INTERNAL', message }, nowMs);
  }
  const { devices } = job.stage;
  const { placement, steps } = job.request;
  const measured = { timings, epoch, standbyRoom, samplerSets, estimated: false };
  const plan = makePlan({ ...placement, ...measured, devices, steps });
  return launch({ ...job, timings, epoch }, plan, nowMs);
}

/** One executor has said ready; the last one begins the run. */
export function afterReady(job: ActiveJob, event: EventOf<'executorReady'>): JobStep {
  const executor = findExecutor(job, event.executor);
  if (executor?.status !== 'SPAWNED') return unchanged(job);
  const marked = markExecutor(job, executor, 'READY');
  if (job.stage.kind !== 'STARTING') return { job: marked, commands: [] };
  return beginIfStarted(marked, event.nowMs);
}

/** One executor has been reaped, or cannot be. */
export function afterExited(job: ActiveJob, event: EventOf<'executorExited'>): JobStep {
  const executor = findExecutor(job, event.executor);
  if (executor === null || hasLeft(executor)) return unchanged(job);
  const { kind } = job.stage;
  if (event.outcome.kind === 'DONE') {
    const marked = markExecutor(job, executor, 'DONE');
    if (kind === 'STARTING') return beginIfStarted(marked, event.nowMs);
    return { job: noteAllDone(marked, event.nowMs), commands: [] };
  }
  const marked = markExecutor(job, executor, 'DEAD');
  if (kind === 'STOPPING') return { job: marked, commands: [] };
  const failure = failureOf(executor, event.outcome);
  if (kind !== 'RUNNING' || !failureRules[failure.reason].respawn) {
    return failAttempt(marked, failure, event.nowMs);
  }
  return respawnOrFail(marked, executor, { failure, nowMs: event.nowMs });
}

/** Batches were committed: the run is alive. */
export function afterProgress(job: ActiveJob, event: EventOf<'progress'>): JobStep {
  const { kind, committedBatches } = job.stage;
  if (kind !== 'RUNNING' || event.committedBatches <= committedBatches) return unchanged(job);
  const progress = { committedBatches: event.committedBatches, respawnsWithoutProgress: 0 };
  return { job: { ...job, stage: { ...job.stage, ...progress } }, commands: [] };
}

/** An epoch ended: would another split be better by now? Only says so. */
export function afterEpoch(job: ActiveJob, event: EventOf<'epochEnded'>): JobStep {
  const { kind, plan } = job.stage;
  const { epoch, timings } = event;
  if (kind !== 'RUNNING' || plan === null || timings === null || !areTimings(timings)) {
    return unchanged(job);
  }
  const { placement, steps } = job.request;
  const pace = { timings, steps, epoch: job.epoch };
  const splitWatch = reconsiderSplit(job.stage.splitWatch, { ...placement, plan, epoch, pace });
  const stage: Active = {
    ...job.stage,
    splitWatch,
    plan: { ...plan, recommendation: splitWatch.recommendation },
  };
  return { job: { ...job, timings, stage }, commands: [] };
}

/** The final model is durable; that wins over a failure or a cancellation still under way. */
export function afterCompleted(job: ActiveJob, event: EventOf<'completed'>): JobStep {
  const { kind, plan, ending } = job.stage;
  if (plan === null || ending?.kind === 'SUCCEED') return unchanged(job);
  const succeed = { kind: 'SUCCEED' } as const;
  if (kind === 'STOPPING') return { job: withEnding(job, succeed), commands: [] };
  return stop(job, succeed, event.nowMs);
}

/** The user cancels; only a model that is already durable stands against that. */
export function cancelAttempt(job: ActiveJob, nowMs: number): JobStep {
  const { kind, ending } = job.stage;
  if (ending?.kind === 'SUCCEED' || ending?.kind === 'CANCEL') return unchanged(job);
  const cancel = { kind: 'CANCEL' } as const;
  if (kind !== 'STOPPING') return stop(job, cancel, nowMs);
  return {
    job: withEnding(job, cancel),
    commands: [{ kind: 'stopExecutors', ...idOf(job), shows: shownWhile(cancel) }],
  };
}

/** The user wants it to rest; an attempt that ends the job anyway goes its way. */
export function suspendAttempt(job: ActiveJob, nowMs: number): JobStep {
  const { kind, ending } = job.stage;
  if (ending !== null && ending.kind !== 'RETRY') return unchanged(job);
  const suspend = { kind: 'SUSPEND' } as const;
  if (kind !== 'STOPPING') return stop(job, suspend, nowMs);
  return {
    job: withEnding(job, suspend),
    commands: [{ kind: 'stopExecutors', ...idOf(job), shows: shownWhile(suspend) }],
  };
}

/** Resumes a job that is not suspended yet: it is queued once its executors have ended. */
export function resumeAttempt(job: ActiveJob): JobStep {
  if (job.stage.ending?.kind !== 'SUSPEND') return unchanged(job);
  const message = 'resumed before it was suspended';
  const failure = { reason: 'USER_SUSPENDED', message } as const;
  return { job: withEnding(job, { kind: 'RETRY', failure, free: true }), commands: [] };
}

/** Ends the attempt with a failure, charged to the budget of its stage. */
export function failAttempt(job: ActiveJob, failure: Failure, nowMs: number): JobStep {
  if (job.stage.kind === 'STOPPING') return unchanged(job);
  const { tally, ending } = judge({
    tally: job.tally,
    policy: job.request.restart,
    failure,
    wasRunning: job.stage.kind === 'RUNNING',
  });
  return stop({ ...job, tally }, ending, nowMs);
}

/** When something must have happened to the attempt, in ms; null if never. */
export function attemptDeadlineMs(job: ActiveJob): number | null {
  const { stage } = job;
  const { timeouts } = job.request;
  if (stage.kind === 'STOPPING') return stage.sinceMs + timeouts.stopMs;
  if (stage.kind !== 'RUNNING') return stage.startedAtMs + timeouts.startupMs;
  const deadlines = [
    ...(timeouts.runMs > 0 ? [runEndMs(job)] : []),
    ...(stage.allDoneAtMs === null ? [] : [stage.allDoneAtMs + timeouts.finalizeMs]),
  ];
  return deadlines.length === 0 ? null : Math.min(...deadlines);
}

/** Ends an attempt before STOPPING whose deadline has passed. */
export function failOverdue(job: ActiveJob, nowMs: number): JobStep {
  const { timeouts } = job.request;
  const { kind } = job.stage;
  if (kind !== 'RUNNING') {
    const message = `not running ${timeouts.startupMs / 1000} s after its start, still ${kind}`;
    return failAttempt(job, { reason: 'STARTUP_TIMEOUT', message }, nowMs);
  }
  if (timeouts.runMs > 0 && nowMs >= runEndMs(job)) {
    const message = `ran longer than ${timeouts.runMs / 1000} s in all`;
    return failAttempt(job, { reason: 'RUN_TIMEOUT', message }, nowMs);
  }
  const message = 'all executors ended, but the final model did not appear';
  return failAttempt(job, { reason: 'INTERNAL', message }, nowMs);
}

/** When a running job has used up its running time, that of earlier attempts included. */
function runEndMs({ stage, tally, request: { timeouts } }: ActiveJob): number {
  return stage.sinceMs + timeouts.runMs - tally.ranMs;
}

/** Executors that have not been reaped, as far as is known. */
export function livingExecutors(job: ActiveJob): readonly Executor[] {
  return job.stage.executors.filter((executor) => !hasLeft(executor));
}

/** Whether the split or the standby rule depends on measured times. */
function needsCalibration({ request: { placement, mustCalibrate } }: Job): boolean {
  if (placement.withoutSamplers !== undefined) return false;
  return mustCalibrate || placement.policy !== 'FIXED' || placement.standby === 'AUTO';
}

/** Seats of a trial: one executor of each kind, where such an executor would run. */
function trialSeats({ request, stage: { devices } }: ActiveJob): readonly ExecutorSeat[] {
  const first = devices.slice(0, 1);
  const seat = (role: ExecutorSeat['role']) => (device: string) =>
    ({ executor: `trial-${executorName(role, device, 1)}`, role, device }) as const;
  const { placement, steps } = request;
  const isTeamed = teamsOf({ ...placement, devices, steps }) !== null;
  const withStandby =
    devices.length === 1 ||
    placement.standby === 'ALWAYS' ||
    (placement.standby === 'AUTO' && !isTeamed);
  return [
    ...first.map(seat('SAMPLER')),
    ...devices.slice(1).slice(-1).map(seat('TRAINER')),
    ...(withStandby ? first.map(seat('STANDBY')) : []),
  ];
}

function launch(job: ActiveJob, plan: DevicePlan | null, nowMs: number): JobStep {
  if (plan === null) {
    const message =
      `a standby Trainer does not fit beside the Sampler on ${job.stage.devices.join(', ')}, ` +
      'and no device is left for a Trainer';
    return failAttempt(job, { reason: 'PLAN_INFEASIBLE', message }, nowMs);
  }
  const executors = plan.executors.map(({ role, device }): Executor => {
    const executor = executorName(role, device, 1);
    return { executor, role, device, status: 'SPAWNED', ordinal: 1 };
  });
  return {
    job: enter(job, nowMs, { kind: 'STARTING', executors, plan }),
    commands: [{ kind: 'launch', ...idOf(job), plan, executors: executors.map(seatOf) }],
  };
}

function beginIfStarted(job: ActiveJob, nowMs: number): JobStep {
  if (job.stage.executors.some(({ status }) => status === 'SPAWNED')) return { job, commands: [] };
  return {
    job: noteAllDone(enter(job, nowMs, { kind: 'RUNNING' }), nowMs),
    commands: [{ kind: 'begin', ...idOf(job) }],
  };
}

interface Death {
  readonly failure: Failure;
  readonly nowMs: number;
}

function respawnOrFail(job: ActiveJob, dead: Executor, { failure, nowMs }: Death): JobStep {
  const { stage, request } = job;
  const whyNot = whyNoRespawn(stage, request.restart, nowMs);
  if (whyNot !== null) {
    return failAttempt(job, { ...failure, message: `${failure.message}; ${whyNot}` }, nowMs);
  }
  const { role, device } = dead;
  const ordinal = dead.ordinal + 1;
  const next: Executor = {
    executor: executorName(role, device, ordinal),
    role,
    device,
    status: 'SPAWNED',
    ordinal,
  };
  const replaced: Active = {
    ...stage,
    executors: stage.executors.map((executor) =>
      executor.executor === dead.executor ? next : executor,
    ),
    respawnedAtMs: [...recentRespawns(stage, request.restart, nowMs), nowMs],
    respawnsWithoutProgress: stage.respawnsWithoutProgress + 1,
  };
  const replaces = dead.executor;
  return {
    job: { ...job, stage: replaced },
    commands: [{ kind: 'respawn', ...idOf(job), seat: seatOf(next), replaces, because: failure }],
  };
}

function stop(job: ActiveJob, ending: Ending, nowMs: number): JobStep {
  const { kind, sinceMs } = job.stage;
  const ranMs = job.tally.ranMs + (kind === 'RUNNING' ? nowMs - sinceMs : 0);
  return {
    job: enter({ ...job, tally: { ...job.tally, ranMs } }, nowMs, { kind: 'STOPPING', ending }),
    commands: [{ kind: 'stopExecutors', ...idOf(job), shows: shownWhile(ending) }],
  };
}

/** Null: what it showed before. */
function shownWhile(ending: Ending): Stopping | null {
  switch (ending.kind) {
    case 'CANCEL': {
      const message = 'executors are being stopped';
      return { state: 'CANCELLING', reason: 'USER_CANCELLED', message };
    }
    case 'SUSPEND': {
      const message = 'an image is taken and executors are stopped';
      return { state: 'SUSPENDING', reason: 'USER_SUSPENDED', message };
    }
    case 'RETRY': {
      const { reason, message } = ending.failure;
      const yields = reason === 'PREEMPTED' || reason === 'DEVICE_DRAINED';
      return yields ? { state: 'SUSPENDING', reason, message } : null;
    }
    default:
      return null;
  }
}

function enter(job: ActiveJob, nowMs: number, change: Partial<Active>): ActiveJob {
  return { ...job, stage: { ...job.stage, ...change, sinceMs: nowMs } };
}

function withEnding(job: ActiveJob, ending: Ending): ActiveJob {
  return { ...job, stage: { ...job.stage, ending } };
}

function noteAllDone(job: ActiveJob, nowMs: number): ActiveJob {
  const { kind, executors } = job.stage;
  if (kind !== 'RUNNING' || executors.some(({ status }) => status !== 'DONE')) return job;
  return { ...job, stage: { ...job.stage, allDoneAtMs: nowMs } };
}

function markExecutor(job: ActiveJob, marked: Executor, status: Executor['status']): ActiveJob {
  const executors = job.stage.executors.map((executor) =>
    executor.executor === marked.executor ? { ...executor, status } : executor,
  );
  return { ...job, stage: { ...job.stage, executors } };
}

function findExecutor({ stage }: ActiveJob, name: string): Executor | null {
  return stage.executors.find(({ executor }) => executor === name) ?? null;
}

function hasLeft({ status }: Executor): boolean {
  return status === 'DONE' || status === 'DEAD';
}

function failureOf(
  executor: Executor,
  outcome: Exclude<ExecutorOutcome, { kind: 'DONE' }>,
): Failure {
  const message = `${executor.executor}: ${outcome.message}`;
  switch (outcome.kind) {
    case 'CRASHED':
      return { reason: outcome.reason, message };
    case 'STALLED':
      return { reason: 'EXECUTOR_STALLED', message };
    case 'UNKILLABLE':
      return { reason: 'EXECUTOR_UNKILLABLE', message };
    default:
      return unreachable(outcome);
  }
}

function executorName(role: ExecutorSeat['role'], device: string, ordinal: number): string {
  return `${role.toLowerCase()}@${device}#${ordinal}`;
}

function seatOf({ executor, role, device }: Executor): ExecutorSeat {
  return { executor, role, device };
}

function idOf(job: ActiveJob): { readonly jobId: string; readonly attempt: number } {
  return { jobId: job.request.jobId, attempt: job.stage.attempt };
}

function unchanged(job: Job): JobStep {
  return { job, commands: [] };
}
