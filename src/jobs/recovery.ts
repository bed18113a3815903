import { existsSync } from 'node:fs';
import type { Attempt, JobRecord } from '../records/job-record.ts';
import { judgeLost } from '../scheduler/restart.ts';
import { dropWork, madeChunks } from './inference-work.ts';
import { goingOnMessage, newestImage } from './job-images.ts';
import type { Recording } from './recording.ts';
import type { RunnerOptions } from './runner-options.ts';
import { storedTally, storeTally } from './tally.ts';

/**
 * What an earlier daemon left, as jobs to submit. Its executors died with it, so a job goes on from
 * its newest image, unless its model was finished or its user has cancelled it.
 */
export function recoverJobs(
  options: Pick<RunnerOptions, 'store' | 'clock' | 'jobsFolder'>,
  recording: Recording,
): readonly JobRecord[] {
  const recovery = new Recovery(options, recording);
  return options.store
    .nonTerminalJobs()
    .map((job) => recovery.recover(job))
    .filter((job) => job !== null);
}

const reason = 'DAEMON_RESTARTED';

class Recovery {
  readonly #options: Pick<RunnerOptions, 'store' | 'clock' | 'jobsFolder'>;
  readonly #recording: Recording;
  /** Jobs that may be what killed the daemon. */
  #suspects = 0;

  constructor(
    options: Pick<RunnerOptions, 'store' | 'clock' | 'jobsFolder'>,
    recording: Recording,
  ) {
    this.#options = options;
    this.#recording = recording;
  }

  /** Recovers a job after the daemon's death; null when nothing is left to run. */
  recover(job: JobRecord): JobRecord | null {
    const { store } = this.#options;
    const made = job.result?.predictions?.folder ?? job.result?.checkpointDir;
    if (made !== undefined && existsSync(made)) {
      store.atomically(() => this.#recording.succeed(job, job.result));
      void dropWork(this.#options.jobsFolder, job);
      return null;
    }
    if (job.intent === 'CANCEL') {
      store.atomically(() => this.#cancel(job));
      return null;
    }
    if (job.intent === 'SUSPEND') {
      if (job.state !== 'SUSPENDED') store.atomically(() => this.#suspend(job));
      return null;
    }
    if (job.state === 'SUSPENDED') return this.#recording.wake(job);
    return job.state === 'PENDING' ? job : store.atomically(() => this.#restart(job));
  }

  #suspend(job: JobRecord): void {
    const recording = this.#recording;
    recording.closeOpenAttempt(job, reason, 'the daemon died while it was suspended');
    const message = `suspended; ${goingOnMessage(this.#options.jobsFolder, job.uid)}`;
    const change = { state: 'SUSPENDED', reason: 'USER_SUSPENDED', message } as const;
    recording.transition(job.id, { ...change, result: null });
  }

  #cancel(job: JobRecord): void {
    const recording = this.#recording;
    recording.closeOpenAttempt(job, reason, 'the daemon died while it was cancelled');
    const hasExecutors = !['CANCELLING', 'PENDING', 'SUSPENDED'].includes(job.state);
    if (hasExecutors) {
      recording.transition(job.id, { state: 'CANCELLING' });
    }
    const message = 'cancelled by the user';
    recording.transition(job.id, { state: 'CANCELLED', reason: 'USER_CANCELLED', message });
  }

  #restart(job: JobRecord): JobRecord | null {
    const { store, clock, jobsFolder } = this.#options;
    const recording = this.#recording;
    const last = job.attempts.at(-1);
    const hasChunks = madeChunks(jobsFolder, job);
    const image = newestImage(jobsFolder, job.uid);
    const verdict = judgeLost({
      tally: storedTally(store, job),
      madeProgress: hasChunks || (last !== undefined && this.#madeProgress(job.id, last, image)),
      suspectsBefore: this.#suspects,
    });
    storeTally(store, job, verdict.tally);
    const why = 'the daemon died while the job ran';
    recording.closeOpenAttempt(job, reason, why);
    if (verdict.kind === 'FAIL') {
      const end = { state: 'FAILED', reason: 'RESTART_BUDGET_EXHAUSTED', result: null } as const;
      recording.transition(job.id, { ...end, message: verdict.message });
      return null;
    }
    if (verdict.isSuspect) this.#suspects += 1;
    const { delayMs } = verdict;
    const nextAttemptAtMs = delayMs > 0 ? clock.wallMs() + delayMs : null;
    const change = { state: 'PENDING', reason, nextAttemptAtMs, result: null } as const;
    const how =
      image !== null
        ? 'goes on from its newest image'
        : hasChunks
          ? 'goes on from there'
          : 'starts again from its beginning';
    return recording.transition(job.id, { ...change, message: `${why}; it ${how}` });
  }

  /** Beyond where it began: an epoch was reported, or an image written. */
  #madeProgress(jobId: string, { number, resumed }: Attempt, image: string | null): boolean {
    const epochs = this.#options.store.epochCount(jobId, number);
    if (resumed === null) return epochs > 0 || image !== null;
    return epochs > resumed.epochs || (image ?? '') > resumed.image;
  }
}
