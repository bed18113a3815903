import type { Clock } from '../base/clock.ts';
import type { DevicePlan } from '../scheduler/plan.ts';
import { decide, initialState, nextWakeMs, planOf } from '../scheduler/scheduler.ts';
import type { Command, SchedulerEvent, SchedulerState } from '../scheduler/state.ts';
import { RunningTime } from './running-time.ts';
import { isSameQueue } from './waiting.ts';

/** The loop around the scheduler: hands it what happens, one by one, and passes on its commands. */

type Untimed<E> = E extends unknown ? Omit<E, 'nowMs'> : never;

/** Something that happens now. */
export type RunnerEvent = Untimed<SchedulerEvent>;

export interface RunnerLoopOptions {
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Must not throw. */
  readonly perform: (command: Command) => void;
}

export class RunnerLoop {
  readonly #options: RunnerLoopOptions;
  #state: SchedulerState = initialState;
  readonly #listeners = new Set<() => void>();
  readonly #inbox: SchedulerEvent[] = [];
  /** Running time of this daemon: time in which it was frozen is nobody's fault. */
  readonly #time: RunningTime;
  #deciding = false;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: RunnerLoopOptions) {
    this.#options = options;
    this.#time = new RunningTime(options.clock);
  }

  get state(): SchedulerState {
    return this.#state;
  }

  planOf(jobId: string): DevicePlan | null {
    return planOf(this.#state, jobId);
  }

  /** Called when somebody has come into the queue or left it, got devices or given them back. */
  onQueueChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  handle(event: RunnerEvent): void {
    this.post(event);
    this.decideAll();
  }

  /** Queues an event for the next decision. */
  post(event: RunnerEvent): void {
    this.#inbox.push({ ...event, nowMs: this.#nowMs() });
  }

  /** Events that arrive while commands are performed wait for their turn. */
  decideAll(): void {
    if (this.#deciding) return;
    this.#deciding = true;
    const before = this.#state;
    try {
      for (let next = this.#inbox.shift(); next !== undefined; next = this.#inbox.shift()) {
        const { state, commands } = decide(this.#state, next);
        this.#state = state;
        for (const command of commands) this.#options.perform(command);
      }
    } finally {
      this.#deciding = false;
    }
    this.#time.watch(this.#state.running.length > 0);
    this.#armTimer();
    if (isSameQueue(before, this.#state)) return;
    for (const listener of this.#listeners) listener();
  }

  #nowMs(): number {
    return this.#time.nowMs();
  }

  #armTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const wakeMs = nextWakeMs(this.#state);
    if (wakeMs === null) return;
    const tick = () => this.handle({ kind: 'tick', jitter: this.#options.random() });
    const longestMs = 2 ** 31 - 1;
    const delayMs = Math.min(longestMs, Math.max(1, Math.ceil(wakeMs - this.#nowMs())));
    this.#timer = setTimeout(tick, delayMs);
    this.#timer.unref();
  }
}
