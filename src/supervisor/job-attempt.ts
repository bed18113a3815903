import { GnndError, messageOf } from '../base/errors.ts';
import type { LivingSeat, Seat } from '../devices/seat.ts';
import { nativeCodeOf } from '../native/load.ts';
import type { CachePlan } from '../records/job-record.ts';
import { crewOf } from './attempt-crew.ts';
import { AttemptRun, lookEveryMs, type SeenRun } from './attempt-run.ts';
import type {
  AttemptContext,
  AttemptFailure,
  AttemptInput,
  LaunchFacts,
  LaunchPlan,
} from './attempt-types.ts';
import { type AttemptWork, noEpochs } from './attempt-work.ts';
import type { Crew } from './crew.ts';
import { CheckpointError, noCheckpoints } from './finalize.ts';
import { TaskDied, TaskStalled } from './task.ts';
import { measure } from './trial.ts';

const nothingSeen: SeenRun = {
  progress: null,
  timeline: null,
  snapshot: null,
  epochs: noEpochs,
  lastLookMs: 0,
  lastCommitWallMs: null,
  checkpoints: noCheckpoints,
};

/**
 * One attempt at running a job: its work is prepared and tried (trial.ts), run (attempt-run.ts) and
 * finished (finalize.ts). It performs what it is told and reports what happens; it decides nothing.
 */
export class JobAttempt {
  readonly input: AttemptInput;
  readonly #context: AttemptContext;
  readonly #work: AttemptWork;
  /** The trial's, then the run's; null while there is none. */
  #crew: Crew | null = null;
  /** The run, from its launch on; null before. */
  #run: AttemptRun | null = null;
  #ended = false;
  #stopping = false;

  /** `begin` makes the work of this attempt. */
  constructor(
    input: AttemptInput,
    parts: Omit<AttemptContext, 'input'>,
    begin: (context: AttemptContext) => AttemptWork,
  ) {
    this.input = input;
    this.#context = { input, ...parts };
    this.#work = begin(this.#context);
  }

  /** Plan of the rows that devices keep, as far as it is known. */
  get cachePlan(): CachePlan {
    return this.#work.cachePlan;
  }

  /** What the run's executors did since its launch. */
  get seen(): SeenRun {
    return this.#run ?? nothingSeen;
  }

  /** Batches taken back from dead executors. */
  get reclaimed(): Crew['reclaimed'] {
    return this.#crew?.reclaimed ?? { CLAIMED: 0, TAKEN: 0 };
  }

  prepare(): void {
    this.#perform(async () => {
      const isPrepared = await this.#work.prepare(() => this.#stopping || this.#ended);
      if (isPrepared) this.#context.emit({ kind: 'prepared' });
    });
  }

  /** Runs the first batches of the reserved epoch on one executor of each kind. */
  calibrate(seats: readonly Seat[]): void {
    this.#perform(async () => {
      const { emit } = this.#context;
      emit({ kind: 'phase', phase: 'CALIBRATING' });
      const snapshot = await measure(this.#context, this.#work.trial(seats.length), seats, {
        onCrew: (crew) => {
          this.#crew = crew;
        },
        isStopped: () => this.#stopping,
        // Once the attempt stops, that is told by `stop`.
        onUnkillable: (left) => (this.#stopping ? undefined : this.#tellUnkillable(left)),
        lookEveryMs,
      });
      if (snapshot === null || this.#stopping) return;
      emit({ kind: 'calibrated', ...this.#work.tried(snapshot, seats.length) });
    });
  }

  /** Makes the job's segment and spawns its executors; none works before `begin`. */
  launch(plan: LaunchPlan): LaunchFacts {
    const { native, emit } = this.#context;
    emit({ kind: 'phase', phase: 'STARTING' });
    const { parts, facts } = this.#work.launch(plan.executors);
    const crew = crewOf(this.#context, parts, (seat) => this.#tellUnkillable([seat]));
    this.#crew = crew;
    const work = this.#work.run(crew);
    native.segmentCommand(crew.segment, 'PAUSE');
    const trainers = plan.executors.filter(({ role }) => role === 'TRAINER').length;
    const timings = { ...plan.timings, trainers };
    native.segmentStandby(crew.segment, plan.standby, plan.standby !== 'OFF', timings);
    const { prefetch } = parts.cache;
    const perform = this.#perform.bind(this);
    const run = new AttemptRun(this.#context, { crew, plan, work, prefetch, perform });
    this.#run = run;
    this.#perform(async () => {
      await run.resume();
      for (const seat of plan.executors) await crew.spawn(seat);
    });
    return facts;
  }

  begin(): void {
    if (!this.#ended) this.#run?.begin();
  }

  respawn(seat: Seat): void {
    this.#crew?.spawn(seat).catch((error: unknown) => {
      if (this.#stopping || this.#ended) return;
      const message = `${seat.executor} could not be started: ${messageOf(error)}`;
      this.#context.emit({ kind: 'attemptFailed', reason: 'EXECUTOR_CRASHED', message });
    });
  }

  /** While it holds, batches in hand are finished and no others begun. */
  hold(holds: boolean): void {
    if (!this.#ended) this.#run?.hold(holds);
  }

  /** Asks, waits, kills, reaps, writes down where it was if the job goes on; then `stopped`. */
  stop(graceMs: number, { goesOn }: { readonly goesOn: boolean }): void {
    if (this.#stopping) return;
    this.#stopping = true;
    const stopped = async () => {
      try {
        await this.#run?.stop();
        await this.#work.stop();
        if (this.#crew !== null) this.#tellUnkillable(await this.#crew.stop(graceMs));
        await this.#run?.keep({ goesOn });
        this.#end();
      } catch (error) {
        this.#context.log.error('attempt.stop', { error: messageOf(error) });
      }
      this.#context.emit({ kind: 'stopped' });
    };
    void stopped();
  }

  #tellUnkillable(seats: readonly LivingSeat[]): void {
    for (const { executor, role, device, pid } of seats) {
      const message = `${role} on ${device} could not be killed`;
      const outcome = { kind: 'UNKILLABLE', message } as const;
      const reason = 'EXECUTOR_UNKILLABLE';
      const how = { exitCode: null, signal: null, reason, logTail: '' } as const;
      const exit = { role, device, pid, ...how };
      this.#context.emit({ kind: 'executorExited', executor, outcome, exit });
    }
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#run?.close();
    this.#crew?.close();
    this.#crew = null;
    this.#work.close();
    this.#context.native.hostReturnMemory();
  }

  /** Runs a step; what it throws becomes `attemptFailed`. */
  #perform(step: () => Promise<void>): void {
    step().catch((error: unknown) => {
      if (this.#stopping || this.#ended) return;
      const { log } = this.#context;
      const reason = attemptFailureOf(error);
      // What the job's owner asked for cannot be, or the owner's module failed.
      const isTheirs = reason === 'SPEC_INVALID' || reason === 'PLUGIN_FAILED';
      log[isTheirs ? 'warn' : 'error']('attempt.failed', { error: messageOf(error) });
      this.#context.emit({ kind: 'attemptFailed', reason, message: messageOf(error) });
    });
  }
}

const ownReasons = ['DATASET_CORRUPT', 'CHECKPOINT_CORRUPT', 'SPEC_INVALID'] as const;

/** What a thrown error of a step means for the attempt. */
export function attemptFailureOf(error: unknown): AttemptFailure {
  if (error instanceof CheckpointError) return 'CHECKPOINT_WRITE_FAILED';
  if (error instanceof TaskStalled) return 'EXECUTOR_STALLED';
  if (error instanceof TaskDied) return 'EXECUTOR_CRASHED';
  // Errors of a Propagator or an inference carry reasons that say what failed.
  const own = error instanceof GnndError ? error.reason : '';
  for (const reason of ownReasons) if (own === reason) return reason;
  const code = nativeCodeOf(error);
  switch (code) {
    case 'SPEC_INVALID':
    case 'DATASET_CORRUPT':
    case 'SHM_ALLOCATION_FAILED':
    case 'SHM_CORRUPTED':
    case 'PLUGIN_FAILED':
    case 'DEVICE_UNAVAILABLE':
    case 'DEVICE_OUT_OF_MEMORY':
    case 'DEVICE_FAILED':
    case 'DEVICE_LOST':
      return code;
    case 'DATASET_NOT_FOUND':
      return 'DATASET_CORRUPT';
    default:
      return 'INTERNAL';
  }
}
