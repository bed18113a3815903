import type { Timings } from '../records/batch-times.ts';
import type { ExecutorRole } from '../records/job-record.ts';
import type { DeviceKind } from '../spec/device-kinds.ts';
import type { PlacementPolicy, StandbyPolicy } from '../spec/job-spec.ts';
import type { Failure, FailureReason } from './failure.ts';
import type { DevicePlan } from './plan.ts';
import type { EpochSize, Steps } from './predict.ts';
import type { SplitWatch } from './resplit.ts';
import type { StandbyRoom } from './switching.ts';

/**
 * What the scheduler knows, hears and orders: plain data, all of it survives JSON.
 *
 * The loop around `decide` (scheduler.ts) performs the commands in the order given, and owes it
 * these events:
 * - after `prepare`: `prepared`, or `attemptFailed`;
 * - after `calibrate`: `calibrated` once every trial executor has been reaped, or `attemptFailed`,
 *   or `executorExited` of a trial executor;
 * - after `launch` and `respawn`, for each executor: `executorReady` and later `executorExited`,
 *   or `executorExited` alone; one that never says ready is killed and reported as STALLED;
 * - an executor stays until the job's last epoch is committed: one that left as DONE is not
 *   replaced, and a dead peer's batch may still come back;
 * - after `stopExecutors`, whatever had been started: `stopped`, once everything of the attempt is
 *   reaped or has been reported UNKILLABLE, and its segment is closed;
 * - `completed` once the final model is durable; it wins over anything but `stopped`;
 * - `tick` at `nextWakeMs(state)` or somewhat later.
 * An attempt number is never used twice, so an event of an earlier attempt is recognised as late.
 *
 * Times named `nowMs` and everything derived from them are of one monotonic clock of this daemon's
 * life, in ms; only `createdAtMs` is wall time, and only its order counts.
 */

// ---------------------------------------------------------------- jobs

/** A number of devices, of one kind or any, or devices by their names. */
export type DeviceRequest =
  | { readonly kind: 'count'; readonly count: number; readonly of?: DeviceKind }
  | { readonly kind: 'names'; readonly names: readonly string[] };

export interface PlacementRequest {
  readonly policy: PlacementPolicy;
  /** N_s for FIXED; ignored otherwise. */
  readonly fixedSamplers: number;
  readonly standby: StandbyPolicy;
  /** Trainers have the cores of all devices that have no batch to compute. */
  readonly teams?: boolean;
  /** Why nobody samples and all devices train, for people; unset: Samplers are chosen. */
  readonly withoutSamplers?: string;
}

export interface RestartPolicy {
  /** Attempts that may fail while running, the first one included. */
  readonly maxAttempts: number;
  /** Failures before RUNNING that are retried; the next one is final. */
  readonly startupFailures: number;
  /** Executors respawned within `windowMs`, and without progress in between, per attempt. */
  readonly executorRestarts: number;
  readonly windowMs: number;
  /** Delay before attempt n + 1: min(initialMs * factor^(n-1), maxMs), spread by +-jitter. */
  readonly backoff: {
    readonly initialMs: number;
    readonly factor: number;
    readonly maxMs: number;
    /** Share of the delay, 0..1. */
    readonly jitter: number;
  };
}

/** 0 means no limit for `pendingMs` and `runMs`; the others must be positive. */
export interface Timeouts {
  /** Longest stay in the queue, back-off included, since it was last queued. */
  readonly pendingMs: number;
  /** Longest time from the grant of the devices until all executors are ready. */
  readonly startupMs: number;
  /** Longest time RUNNING, all attempts together. */
  readonly runMs: number;
  /** Time in which `stopped` must follow `stopExecutors`; longer than grace and kill take. */
  readonly stopMs: number;
  /** Time in which `completed` must follow the last executor's end: a full disk may delay it. */
  readonly finalizeMs: number;
}

/** Budgets that a job has used up, stored with it: a restart of the daemon resets nothing. */
export interface Tally {
  /** Number of the last attempt; 0 before the first. */
  readonly attempt: number;
  /** Attempts that failed while RUNNING. */
  readonly runFailures: number;
  /** Attempts that failed before RUNNING. */
  readonly startupFailures: number;
  /** Time RUNNING of the attempts that have ended, in ms. */
  readonly ranMs: number;
  /** Reasons of retry class ONCE that have been met. */
  readonly onceMet: readonly FailureReason[];
  /** Attempts in a row that the daemon's death ended before an epoch was done. */
  readonly daemonDeaths: number;
}

export interface JobRequest {
  readonly jobId: string;
  /** Higher goes first. */
  readonly priority: number;
  /** Gives its devices to one of higher priority. Unset: no. */
  readonly preemptible?: boolean;
  /** At equal priority the older job goes first, then the smaller id. */
  readonly createdAtMs: number;
  readonly devices: DeviceRequest;
  readonly placement: PlacementRequest;
  /** Rules of which batches may be computed at the same time. */
  readonly steps: Steps;
  /** Something beside the split depends on what trial batches take, such as a cache's size. */
  readonly mustCalibrate: boolean;
  readonly restart: RestartPolicy;
  readonly timeouts: Timeouts;
  /** `freshTally` for a new job; what was stored for one that the daemon found at its start. */
  readonly tally: Tally;
  /** Back-off left when it is submitted; 0 for a new job. */
  readonly delayMs: number;
}

// ---------------------------------------------------------------- state

export interface SchedulerState {
  /** Devices in the host's order; they are granted first to last. */
  readonly devices: readonly Device[];
  /** Jobs with an attempt, at most one a device, in queue order. */
  readonly running: readonly ActiveJob[];
  /**
   * Jobs that wait, in queue order (priority, age, id). What happens to a running job leaves this
   * very array as it is: with 10,000 waiting, a step of one that runs touches none of them.
   */
  readonly queue: readonly QueuedJob[];
  /** Whether the daemon drains: then nothing new starts. */
  readonly draining: boolean;
  /** Whether the command `drained` has been given. */
  readonly drained: boolean;
}

export interface Device {
  readonly name: string;
  /** Null unless quarantined, for good: it is never granted again in this daemon's life. */
  readonly quarantine: string | null;
  /** Whether its user drained it until it is wanted again. Unset: no. */
  readonly drained?: boolean;
  /** Set when it fails a process, until a job succeeds on it (broken-devices.ts). */
  readonly suspicion?: Suspicion | null;
  /** Id of the job whose processes failed when the device was lost. */
  readonly lostFor?: string;
}

/** The attempt that met the failure that a device is suspected for. */
export interface Suspicion {
  readonly jobId: string;
  readonly attempt: number;
  /** All executors that ran then: one event may break several. */
  readonly executors: readonly string[];
}

/** Whether jobs may get it. */
export function isUsable({ quarantine, drained }: Device): boolean {
  return quarantine === null && drained !== true;
}

export type Job = QueuedJob | ActiveJob;

interface AnyJob {
  readonly request: JobRequest;
  readonly tally: Tally;
  /** Timings measured last, by its calibration, then by its last epoch; null before any. */
  readonly timings: Timings | null;
  /** Size of an epoch as the calibration found it; null before. */
  readonly epoch: EpochSize | null;
}

export interface QueuedJob extends AnyJob {
  readonly stage: Queued;
}

export interface ActiveJob extends AnyJob {
  readonly stage: Active;
}

/** Whether a job has devices, that is: an attempt. */
export function isActive(job: Job): job is ActiveJob {
  return job.stage.kind !== 'QUEUED';
}

export interface Queued {
  readonly kind: 'QUEUED';
  readonly sinceMs: number;
  /** Null unless it backs off. */
  readonly notBeforeMs: number | null;
  /** How its last attempt ended; null before the first. */
  readonly lastFailure: Failure | null;
}

/** An attempt; its devices are the job's until `releaseDevices`. */
export interface Active {
  /** PREPARING and CALIBRATING and STARTING are the API's PREPARING. */
  readonly kind: 'PREPARING' | 'CALIBRATING' | 'STARTING' | 'RUNNING' | 'STOPPING';
  readonly attempt: number;
  readonly startedAtMs: number;
  /** When `kind` last changed. */
  readonly sinceMs: number;
  readonly devices: readonly string[];
  /** The trial's while CALIBRATING, the plan's from STARTING on. */
  readonly executors: readonly Executor[];
  readonly plan: DevicePlan | null;
  /** Times of respawns within the window. */
  readonly respawnedAtMs: readonly number[];
  /** Respawns since `committedBatches` last grew. */
  readonly respawnsWithoutProgress: number;
  readonly committedBatches: number;
  /** When the last executor said DONE; `completed` is due from then on. Null before. */
  readonly allDoneAtMs: number | null;
  /** Meaning of the attempt's end for the job; null unless STOPPING. */
  readonly ending: Ending | null;
  /** Evidence for another split, gathered at epoch ends. */
  readonly splitWatch: SplitWatch;
}

export interface Executor extends ExecutorSeat {
  readonly status: 'SPAWNED' | 'READY' | 'DONE' | 'DEAD';
  /** 1 for the first on its seat, one more with each respawn. */
  readonly ordinal: number;
}

export type Ending =
  | { readonly kind: 'SUCCEED' }
  | { readonly kind: 'CANCEL' }
  /** The job rests, and the scheduler forgets it until it is submitted again. */
  | { readonly kind: 'SUSPEND' }
  | { readonly kind: 'FAIL'; readonly reason: FinishReason; readonly message: string }
  /** The job is tried again after a back-off, or at once if `free`. */
  | { readonly kind: 'RETRY'; readonly failure: Failure; readonly free: boolean };

// ---------------------------------------------------------------- events

interface AtTime {
  readonly nowMs: number;
}

interface OfAttempt extends AtTime {
  readonly jobId: string;
  readonly attempt: number;
}

/** A uniform random number in [0, 1), drawn by the loop: `decide` has no randomness of its own. */
interface WithJitter {
  readonly jitter: number;
}

export type SchedulerEvent =
  /** Adds devices that are not known yet; known ones stay as they are. */
  | (AtTime & { readonly kind: 'devicesFound'; readonly names: readonly string[] })
  | (AtTime & { readonly kind: 'deviceLost'; readonly device: string; readonly message: string })
  | (AtTime & {
      readonly kind: 'deviceDrained';
      readonly device: string;
      readonly drained: boolean;
    })
  /** Many at once after a restart, and when many calls came in together. */
  | (AtTime & { readonly kind: 'submitted'; readonly jobs: readonly JobRequest[] })
  | (AtTime & { readonly kind: 'cancelled'; readonly jobId: string })
  | (AtTime & { readonly kind: 'suspended'; readonly jobId: string })
  /** Resumes a job that is still being stopped; a job that rests is `submitted` instead. */
  | (AtTime & { readonly kind: 'resumed'; readonly jobId: string })
  | (OfAttempt & { readonly kind: 'prepared' })
  | (OfAttempt & {
      readonly kind: 'calibrated';
      readonly timings: Timings;
      readonly epoch: EpochSize;
      /** Room for standby Trainers; empty where memory was not measured (CPU devices). */
      readonly standbyRoom: readonly StandbyRoom[];
      /** Same as in PlanRequest. */
      readonly samplerSets?: readonly (readonly string[])[];
    })
  | (OfAttempt & { readonly kind: 'executorReady'; readonly executor: string })
  | (OfAttempt & {
      readonly kind: 'executorExited';
      readonly executor: string;
      readonly outcome: ExecutorOutcome;
    })
  /** `committedBatches` counts over the whole job. */
  | (OfAttempt & { readonly kind: 'progress'; readonly committedBatches: number })
  /** `timings` are running estimates; null when there are none yet. */
  | (OfAttempt & {
      readonly kind: 'epochEnded';
      readonly epoch: number;
      readonly timings: Timings | null;
    })
  /** Something other than an executor failed: dataset, segment, checkpoint, loss. */
  | (OfAttempt & { readonly kind: 'attemptFailed' } & Failure)
  | (OfAttempt & { readonly kind: 'completed' })
  | (OfAttempt & WithJitter & { readonly kind: 'stopped' })
  | (AtTime & WithJitter & { readonly kind: 'tick' })
  /** The daemon stops: every attempt is stopped, nothing new starts. */
  | (AtTime & { readonly kind: 'drain' });

/** DONE: it left because its work was over or it was told to stop. */
export type ExecutorOutcome =
  | { readonly kind: 'DONE' }
  | { readonly kind: 'CRASHED'; readonly reason: FailureReason; readonly message: string }
  | { readonly kind: 'STALLED'; readonly message: string }
  | { readonly kind: 'UNKILLABLE'; readonly message: string };

// ---------------------------------------------------------------- commands

/** One process to run: `executor` names it within its attempt and is never used again. */
export interface ExecutorSeat {
  /** For example `trainer@cpu:1#1`; a respawn on that seat is `#2`. */
  readonly executor: string;
  readonly role: ExecutorRole;
  readonly device: string;
}

/** Why a job is over. */
export type FinishReason =
  | FailureReason
  | 'COMPLETED'
  | 'USER_CANCELLED'
  | 'RESTART_BUDGET_EXHAUSTED'
  | 'STARTUP_BUDGET_EXHAUSTED';

interface ForAttempt {
  readonly jobId: string;
  readonly attempt: number;
}

/** State shown by a job whose executors are being stopped. */
export interface Stopping {
  readonly state: 'CANCELLING' | 'SUSPENDING';
  readonly reason: FailureReason | 'USER_CANCELLED';
  readonly message: string;
}

/**
 * A job's commands in an attempt that goes well: prepare, calibrate, launch, begin, stopExecutors,
 * releaseDevices, finish.
 */
export type Command =
  /** Record the attempt (before anything is spawned), open the dataset, make the segment. */
  | (ForAttempt & {
      readonly kind: 'prepare';
      readonly devices: readonly string[];
      /** Attempts that may still fail while running, this one included. */
      readonly failuresLeft: number;
    })
  /** Measure one executor of each kind listed, then reap it. */
  | (ForAttempt & { readonly kind: 'calibrate'; readonly executors: readonly ExecutorSeat[] })
  /** Record the plan and spawn `executors`, which are the plan's with their names. */
  | (ForAttempt & {
      readonly kind: 'launch';
      readonly plan: DevicePlan;
      readonly executors: readonly ExecutorSeat[];
    })
  /** All executors are ready: the job is RUNNING, its first epoch opens. */
  | (ForAttempt & { readonly kind: 'begin' })
  /** Reclaim what `replaces` owned (it is reaped), then spawn `seat`. */
  | (ForAttempt & {
      readonly kind: 'respawn';
      readonly seat: ExecutorSeat;
      readonly replaces: string;
      readonly because: Failure;
    })
  /** Ask, wait, kill, reap everything of the attempt; `shows`: what the job is meanwhile. */
  | (ForAttempt & { readonly kind: 'stopExecutors'; readonly shows: Stopping | null })
  | (ForAttempt & { readonly kind: 'releaseDevices'; readonly devices: readonly string[] })
  | { readonly kind: 'quarantineDevice'; readonly device: string; readonly message: string }
  /** PENDING again; `tally` is to be stored with the job. */
  | (ForAttempt & {
      readonly kind: 'requeue';
      readonly failure: Failure;
      readonly delayMs: number;
      readonly tally: Tally;
    })
  /** SUSPENDED; `tally` is to be stored with the job. */
  | (ForAttempt & { readonly kind: 'suspend'; readonly tally: Tally })
  /** Terminal. `attempt` is 0 when the job never had one. */
  | (ForAttempt & {
      readonly kind: 'finish';
      readonly outcome: 'SUCCEEDED' | 'FAILED' | 'CANCELLED';
      readonly reason: FinishReason;
      readonly message: string;
    })
  /** No attempt is left after `drain`. */
  | { readonly kind: 'drained' };

export interface Decision {
  readonly state: SchedulerState;
  readonly commands: readonly Command[];
}
