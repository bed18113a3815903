import { GnndError } from '../base/errors.ts';
import { canonicalSha256 } from '../base/ids.ts';
import { removeImages } from '../files/image-files.ts';
import { type JobRecord, terminalStates } from '../records/job-record.ts';
import type { RequestKey, Store } from '../store/store.ts';
import { goingOnMessage } from './job-images.ts';
import type { Runner } from './runner.ts';

/** What a user may want of a job that is there: that it ends, rests, goes on, or tries again. */

export interface Lifecycle {
  /**
   * Idempotent on CANCELLING and CANCELLED; JOB_STATE_CONFLICT on SUCCEEDED and FAILED. A repeated
   * request has no second effect, whatever the job is by then. Throws REQUEST_ID_REUSED.
   */
  cancel(id: string, requestId: string | null): JobRecord;
  /**
   * Idempotent on a job that is suspended or is to be; JOB_STATE_CONFLICT on one that has ended or
   * is being cancelled. With a request id as `cancel`.
   */
  suspend(id: string, requestId: string | null): JobRecord;
  /** Idempotent on a job that is not suspended; otherwise as `suspend`. */
  resume(id: string, requestId: string | null): JobRecord;
  /**
   * Queues a FAILED or CANCELLED job again, with new budgets. Idempotent on a job that lives and is
   * not being cancelled; JOB_STATE_CONFLICT on one that SUCCEEDED. Rejects with JOB_QUEUE_FULL.
   */
  retry(id: string, how: RetryJob): Promise<JobRecord>;
}

export interface RetryJob {
  /** Whether the job begins anew, without its images. */
  readonly fromBeginning: boolean;
  readonly requestId: string | null;
}

export interface LifecycleOptions {
  readonly store: Store;
  readonly runner: Pick<Runner, 'state' | 'cancel' | 'suspend' | 'wake' | 'resume' | 'retry'>;
  readonly jobsFolder: string;
  readonly maxQueued: number;
  /** Throws JOB_NOT_FOUND. */
  readonly get: (id: string) => JobRecord;
}

/** Writes what is wanted, then acts. */
export function createLifecycle(options: LifecycleOptions): Lifecycle {
  const { store, runner, jobsFolder, get } = options;
  const isReplayed = (key: RequestKey | null) => key !== null && store.replayOf(key) !== null;
  return {
    cancel(id, requestId) {
      const key = requestKey('CancelJob', requestId, { id });
      if (isReplayed(key)) return get(id);
      get(id);
      const job = store.setIntent(id, 'CANCEL', ...optional(key));
      if (!terminalStates.has(job.state)) runner.cancel(id);
      return get(id);
    },
    suspend(id, requestId) {
      const key = requestKey('SuspendJob', requestId, { id });
      if (isReplayed(key)) return get(id);
      get(id);
      store.setIntent(id, 'SUSPEND', ...optional(key));
      runner.suspend(id);
      return get(id);
    },
    resume(id, requestId) {
      const key = requestKey('ResumeJob', requestId, { id });
      if (isReplayed(key)) return get(id);
      if (get(id).state === 'SUSPENDED') requireRoom(options);
      // Together: what rests with the intent to run would wait for the daemon's next start.
      const job = store.atomically(() => {
        const wanted = store.setIntent(id, 'RUN', ...optional(key));
        return wanted.state === 'SUSPENDED' ? runner.wake(wanted) : wanted;
      });
      runner.resume(job);
      return get(id);
    },
    async retry(id, { fromBeginning, requestId }) {
      const key = requestKey('RetryJob', requestId, { id, fromBeginning });
      if (isReplayed(key)) return get(id);
      const job = get(id);
      if (isOnItsWay(job)) return job;
      if (job.state === 'FAILED' || job.state === 'CANCELLED') {
        requireRoom(options);
        if (fromBeginning) await removeImages(jobsFolder, job.uid);
      }
      // Read the job again: another call may have retried it in the meantime.
      const now = get(id);
      if (isOnItsWay(now)) return now;
      const where = goingOnMessage(jobsFolder, now.uid);
      runner.retry(now, `retried; ${where}`, key ?? undefined);
      return get(id);
    },
  };
}

function isOnItsWay({ state, intent }: JobRecord): boolean {
  return intent === 'RUN' && ['PENDING', 'PREPARING', 'RUNNING'].includes(state);
}

function requireRoom({ runner, maxQueued }: LifecycleOptions): void {
  const { queue, running } = runner.state;
  if (queue.length + running.length < maxQueued) return;
  throw new GnndError('JOB_QUEUE_FULL', `${maxQueued} jobs are queued or running already`);
}

export function requestKey(
  method: string,
  requestId: string | null,
  request: unknown,
): RequestKey | null {
  if (requestId === null) return null;
  return { method, requestId, sha256: canonicalSha256(request) };
}

export function optional<T>(value: T | null): [] | [T] {
  return value === null ? [] : [value];
}
