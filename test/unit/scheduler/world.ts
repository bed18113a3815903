import type { FailureReason } from '../../../src/scheduler/failure.ts';
import { decide, initialState, nextWakeMs } from '../../../src/scheduler/scheduler.ts';
import type {
  Command,
  Decision,
  JobRequest,
  SchedulerEvent,
  SchedulerState,
} from '../../../src/scheduler/state.ts';
import type { Random } from '../../support/random.ts';
import { jobsOf, plainRequest } from './script-language.ts';

/**
 * A made-up host that performs the scheduler's commands badly: whatever may go wrong does so now
 * and then. It keeps its side of the contract in state.ts and nothing more.
 */

/** One decision with what led to it. */
export interface Turn {
  readonly before: SchedulerState;
  readonly event: SchedulerEvent;
  readonly decision: Decision;
}

export interface Story {
  readonly jobs: readonly JobRequest[];
  readonly turns: readonly Turn[];
  readonly state: SchedulerState;
}

const failureReasons: readonly FailureReason[] = [
  'EXECUTOR_CRASHED',
  'SHM_CORRUPTED',
  'SHM_ALLOCATION_FAILED',
  'NUMERIC_DIVERGENCE',
  'PLUGIN_FAILED',
  'CHECKPOINT_WRITE_FAILED',
  'INTERNAL',
];

/** Runs random jobs on a random host until nothing can happen any more. */
export function liveThrough(random: Random): Story {
  return new World(random).run();
}

class World {
  readonly #random: Random;
  readonly #trouble: number;
  readonly #jobs: JobRequest[];
  readonly #unborn: JobRequest[];
  readonly #turns: Turn[] = [];
  /** What is under way; each entry may happen at any time, in any order. */
  readonly #soon: SchedulerEvent[] = [];
  /** Batches left to each running attempt, by `job/attempt`. */
  readonly #batchesLeft = new Map<string, number>();
  #state: SchedulerState = initialState;
  #nowMs = 0;

  constructor(random: Random) {
    this.#random = random;
    this.#trouble = random.pick([0, 0.02, 0.1, 0.2]);
    this.#jobs = Array.from({ length: random.integer(1, 8) }, (_, index) => this.#newJob(index));
    this.#unborn = [...this.#jobs];
  }

  run(): Story {
    const names = Array.from({ length: this.#random.integer(1, 5) }, (_, index) => `cpu:${index}`);
    this.#tell({ kind: 'devicesFound', nowMs: this.#nowMs, names });
    for (let step = 0; step < 20_000; step += 1) {
      this.#nowMs += this.#random.integer(0, 500);
      const event = this.#next();
      if (event === null) return { jobs: this.#jobs, turns: this.#turns, state: this.#state };
      this.#tell(event);
    }
    throw new Error('the story does not end');
  }

  /** What happens next; null when nothing will ever happen. */
  #next(): SchedulerEvent | null {
    const random = this.#random;
    const wakeMs = nextWakeMs(this.#state);
    if (wakeMs !== null && wakeMs <= this.#nowMs) return this.#tick();
    if (random.chance(this.#trouble)) return this.#mischief();
    const job = random.chance(0.3) ? this.#unborn.shift() : undefined;
    if (job !== undefined) return { kind: 'submitted', nowMs: this.#nowMs, jobs: [job] };
    const running = random.chance(0.5) ? this.#step() : null;
    if (running !== null) return running;
    const [event] = this.#soon.splice(random.integer(0, this.#soon.length - 1), 1);
    if (event !== undefined) return { ...event, nowMs: this.#nowMs };
    const last = this.#unborn.shift();
    if (last !== undefined) return { kind: 'submitted', nowMs: this.#nowMs, jobs: [last] };
    const idle = this.#step();
    if (idle !== null || wakeMs === null) return idle;
    this.#nowMs = wakeMs;
    return this.#tick();
  }

  #tick(): SchedulerEvent {
    return { kind: 'tick', nowMs: this.#nowMs, jitter: this.#random.unit() };
  }

  /** One running attempt moves: a batch, a death, or its end. Null when none runs. */
  #step(): SchedulerEvent | null {
    const random = this.#random;
    const running = this.#state.running.filter(({ stage }) => stage.kind === 'RUNNING');
    if (running.length === 0) return null;
    const { request, stage } = random.pick(running);
    const { jobId } = request;
    const { attempt } = stage;
    const head = { jobId, attempt, nowMs: this.#nowMs };
    const living = stage.executors.filter(({ status }) => status !== 'DEAD' && status !== 'DONE');
    if (living.length > 0 && random.chance(2 * this.#trouble)) {
      const { executor } = random.pick(living);
      return { kind: 'executorExited', ...head, executor, outcome: this.#death() };
    }
    const key = `${jobId}/${attempt}`;
    const left = (this.#batchesLeft.get(key) ?? random.integer(0, 20)) - 1;
    this.#batchesLeft.set(key, left);
    if (left < 0) return { kind: 'completed', ...head };
    if (random.chance(0.2)) {
      const time = () => random.integer(1, 1000);
      const timings = {
        samplerBatchNs: time(),
        trainerBatchNs: time(),
        standbyBatchNs: time(),
        parts: null,
      };
      return { kind: 'epochEnded', ...head, epoch: attempt, timings };
    }
    return { kind: 'progress', ...head, committedBatches: stage.committedBatches + 1 };
  }

  #death(): Extract<SchedulerEvent, { kind: 'executorExited' }>['outcome'] {
    const random = this.#random;
    const kind = random.pick(['CRASHED', 'CRASHED', 'STALLED', 'STALLED', 'UNKILLABLE'] as const);
    if (kind !== 'CRASHED') return { kind, message: 'bad luck' };
    const reason = random.chance(0.9) ? 'EXECUTOR_CRASHED' : random.pick(failureReasons);
    return { kind, reason, message: 'bad luck' };
  }

  /** Something that nobody ordered: users, lost devices, late and nonsensical messages. */
  #mischief(): SchedulerEvent {
    const random = this.#random;
    const nowMs = this.#nowMs;
    const jobId = random.chance(0.1) ? 'stranger' : random.pick(this.#jobs).jobId;
    const attempt = random.integer(0, 4);
    const executor = random.pick(['sampler@cpu:0#1', 'trainer@cpu:1#1', 'standby@cpu:0#2', '']);
    switch (random.integer(0, 11)) {
      case 9:
        return { kind: 'suspended', nowMs, jobId };
      case 10:
        return { kind: 'resumed', nowMs, jobId };
      case 0:
        return { kind: 'cancelled', nowMs, jobId };
      case 1:
        return {
          kind: 'deviceLost',
          nowMs,
          device: `cpu:${random.integer(1, 5)}`,
          message: 'gone',
        };
      case 2:
        return random.chance(0.1) ? { kind: 'drain', nowMs } : this.#tick();
      case 3:
        return { kind: 'devicesFound', nowMs, names: [`cpu:${random.integer(0, 5)}`] };
      case 4:
        return { kind: 'prepared', nowMs, jobId, attempt };
      case 5:
        return { kind: 'executorReady', nowMs, jobId, attempt, executor };
      case 6:
        return { kind: 'executorExited', nowMs, jobId, attempt, executor, outcome: this.#death() };
      case 7:
        return { kind: 'progress', nowMs, jobId, attempt, committedBatches: random.integer(0, 9) };
      case 8:
        return { kind: 'stopped', nowMs, jobId, attempt: 0, jitter: 0 };
      default:
        return { kind: 'submitted', nowMs, jobs: [random.pick(this.#known())] };
    }
  }

  /** Jobs that submitting again does not change, or else one that no host could run. */
  #known(): readonly JobRequest[] {
    const known = jobsOf(this.#state).map(({ request }) => request);
    return known.length > 0
      ? known
      : [{ ...plainRequest, jobId: 'misfit', devices: { kind: 'count', count: 0 } }];
  }

  #tell(event: SchedulerEvent): void {
    const before = this.#state;
    const decision = decide(before, event);
    this.#turns.push({ before, event, decision });
    this.#state = decision.state;
    if (event.kind === 'submitted') {
      for (const job of event.jobs) {
        const at = this.#unborn.indexOf(job);
        if (at >= 0) this.#unborn.splice(at, 1);
      }
    }
    for (const command of decision.commands) this.#perform(command);
  }

  /** Puts the outcome of a command among what is under way, or nothing: then it hangs. */
  #perform(command: Command): void {
    const random = this.#random;
    const goesWrong = random.chance(this.#trouble);
    const hangs = goesWrong && random.chance(0.3);
    const nowMs = this.#nowMs;
    if (command.kind === 'suspend') {
      // Sooner or later its user wants it to go on.
      const request = this.#jobs.find(({ jobId }) => jobId === command.jobId);
      const jobs = request === undefined ? [] : [{ ...request, tally: command.tally }];
      this.#soon.push({ kind: 'submitted', nowMs, jobs });
      return;
    }
    if (!('attempt' in command) || hangs) return;
    const head = { jobId: command.jobId, attempt: command.attempt, nowMs };
    const message = 'bad luck';
    switch (command.kind) {
      case 'prepare':
      case 'calibrate': {
        const time = () => random.integer(1, 1000);
        const timings = {
          samplerBatchNs: time(),
          trainerBatchNs: time(),
          standbyBatchNs: time(),
          parts: null,
        };
        if (goesWrong) {
          this.#soon.push({
            kind: 'attemptFailed',
            ...head,
            reason: random.pick(failureReasons),
            message,
          });
        } else if (command.kind === 'prepare') {
          this.#soon.push({ kind: 'prepared', ...head });
        } else {
          const epoch = { batches: 100, slots: 20 };
          this.#soon.push({ kind: 'calibrated', ...head, timings, epoch, standbyRoom: [] });
        }
        return;
      }
      case 'launch':
      case 'respawn': {
        const seats = command.kind === 'launch' ? command.executors : [command.seat];
        for (const { executor } of seats) {
          this.#soon.push(
            random.chance(this.#trouble)
              ? { kind: 'executorExited', ...head, executor, outcome: this.#death() }
              : { kind: 'executorReady', ...head, executor },
          );
        }
        return;
      }
      case 'stopExecutors':
        this.#soon.push({ kind: 'stopped', ...head, jitter: random.unit() });
        return;
      default:
        return;
    }
  }

  #newJob(index: number): JobRequest {
    const random = this.#random;
    const names = ['cpu:0', 'cpu:1', 'cpu:2'].filter(() => random.chance(0.5));
    const { restart, timeouts, placement } = plainRequest;
    return {
      ...plainRequest,
      jobId: `job-${index}`,
      priority: random.pick([100, 100, 200]),
      preemptible: random.chance(0.3),
      createdAtMs: random.integer(0, 5),
      devices:
        names.length > 0 && random.chance(0.4)
          ? { kind: 'names', names }
          : { kind: 'count', count: random.integer(1, 4) },
      placement: { ...placement, standby: random.pick(['AUTO', 'OFF', 'ALWAYS'] as const) },
      restart: { ...restart, executorRestarts: random.integer(0, 3) },
      timeouts: { ...timeouts, runMs: random.pick([0, 5000]) },
    };
  }
}
