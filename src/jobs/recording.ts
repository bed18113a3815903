import { messageOf } from '../base/errors.ts';
import type { JobRecord, JobResult, Reason } from '../records/job-record.ts';
import { freshTally } from '../scheduler/restart.ts';
import type { RequestKey, Store } from '../store/store.ts';
import type { AttemptInput } from '../supervisor/supervisor.ts';
import { completionMessage } from './completion.ts';
import type { RunnerObserver, RunnerOptions } from './runner-options.ts';
import { StoreQueue } from './store-queue.ts';
import { storeTally } from './tally.ts';

/**
 * What running jobs write: every transition before it shows, a job's writes in their order, later
 * where the store refuses for a while.
 */

export interface RecordingHooks {
  /** The store will never take what an attempt had to write. */
  readonly onRefused: (jobId: string, attempt: number, error: unknown) => void;
  /** After each round of trying again; by then some jobs may have nothing left to write. */
  readonly onRetried: () => void;
}

/** Names an attempt by its job and the scheduler's number of it. */
export type AttemptName = Pick<AttemptInput, 'jobId' | 'ordinal'>;

/** A part of an attempt that is a transition first, and that others of the job wait for. */
export interface Step {
  readonly kind: string;
  /** Whether the write is repeated until it succeeds, whatever the store says. */
  readonly mustHappen: boolean;
  readonly write: () => void;
  readonly refused: (error: unknown) => void;
}

export class Recording {
  readonly #options: Pick<RunnerOptions, 'store' | 'log' | 'observe'>;
  readonly #hooks: RecordingHooks;
  readonly #writes: StoreQueue;

  constructor(options: Pick<RunnerOptions, 'store' | 'log' | 'observe'>, hooks: RecordingHooks) {
    this.#options = options;
    this.#hooks = hooks;
    this.#writes = new StoreQueue({
      log: options.log,
      onRetried: hooks.onRetried,
      onFailing: (isFailing) => this.observe((observer) => observer.storeFailing(isFailing)),
    });
  }

  /** True while the store refuses what jobs have to write. */
  get isFailing(): boolean {
    return this.#writes.isFailing;
  }

  /** Writes of a job that wait. */
  countOf(jobId: string): number {
    return this.#writes.countOf(jobId);
  }

  /** Whether a step of the job waits. */
  hasStep(jobId: string): boolean {
    return this.#writes.hasStep(jobId);
  }

  /** Takes it now, or when the store lets it, after what waits for the job already. */
  step(jobId: string, step: Step): void {
    this.#writes.put(jobId, { ...step, isStep: true });
  }

  /** Writes what is known of an attempt, now or when the store takes it; nobody waits for it. */
  record(kind: string, { jobId, ordinal }: AttemptName, write: () => void): void {
    const refused = (error: unknown) => this.#hooks.onRefused(jobId, ordinal, error);
    this.#writes.put(jobId, { kind, isStep: false, mustHappen: false, write, refused });
  }

  transition(jobId: string, change: Parameters<Store['transition']>[1]): JobRecord {
    const { store } = this.#options;
    const before = store.getJob(jobId);
    const after = store.transition(jobId, change);
    if (before !== null) this.observe((observer) => observer.transitioned(before, after));
    return after;
  }

  succeed(job: JobRecord, result: JobResult | null): void {
    const reason = 'COMPLETED';
    const message = result === null ? '' : completionMessage(job.effectiveSpec.training, result);
    this.closeOpenAttempt(job, reason, message);
    this.transition(job.id, { state: 'SUCCEEDED', reason, message, result });
  }

  /** A job that rests is to run again. */
  wake({ id }: JobRecord): JobRecord {
    const change = { state: 'PENDING', reason: 'NONE', message: 'resumed' } as const;
    return this.transition(id, change);
  }

  /** A job that rests is cancelled: nobody has to be stopped. */
  endResting({ id }: JobRecord): JobRecord {
    const message = 'cancelled on request';
    return this.transition(id, { state: 'CANCELLED', reason: 'USER_CANCELLED', message });
  }

  /** A job that has ended is to run again, with new budgets. */
  reopen(job: JobRecord, message: string, request: RequestKey | undefined): JobRecord {
    const { store } = this.#options;
    const after = store.atomically(() => {
      storeTally(store, job, freshTally);
      return store.reopenJob(job.id, message, request);
    });
    this.observe((observer) => observer.transitioned(job, after));
    return after;
  }

  closeOpenAttempt(job: JobRecord, reason: Reason, message: string): void {
    const last = job.attempts.at(-1);
    if (last === undefined || last.endAtMs !== null) return;
    this.#options.store.closeAttempt(job.id, last.number, { reason, message });
  }

  /** Tells the observer, whose errors must not change what it observes. */
  observe(tell: (observer: RunnerObserver) => void): void {
    try {
      tell(this.#options.observe);
    } catch (error) {
      this.#options.log.error('observer.failed', { error: messageOf(error) });
    }
  }
}
