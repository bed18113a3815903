import type { EpochReport, ExecutorExit, ExecutorRole, JobRecord } from '../records/job-record.ts';
import type { JobAttempt } from '../supervisor/job-attempt.ts';

/** What happens, for metrics; called after it was stored. */
export interface RunnerObserver {
  attemptStarted(attempt: JobAttempt): void;
  attemptEnded(attempt: JobAttempt): void;
  executorStarted(role: ExecutorRole): void;
  executorExited(exit: ExecutorExit): void;
  /** Seconds until it was durable. */
  checkpointWritten(seconds: number): void;
  epochEnded(attempt: JobAttempt, report: EpochReport): void;
  /** Whether the store refuses what jobs have to write. */
  storeFailing(isFailing: boolean): void;
  transitioned(before: JobRecord, after: JobRecord): void;
}
