import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { CrewDevice } from '../devices/seat.ts';
import type { CoreAddon } from '../native/contract.ts';
import type { DataWitness, Propagations, Topologies } from '../prepare/prepare.ts';
import type { EpochReport, ExecutorExit, ExecutorRole, JobRecord } from '../records/job-record.ts';
import type { Store } from '../store/store.ts';
import type { AttemptPart, JobAttempt } from '../supervisor/supervisor.ts';

/** The parts that running jobs needs, and the observer that it tells. */

export interface RunnerOptions {
  readonly store: Store;
  readonly native: CoreAddon;
  readonly topologies: Topologies;
  readonly witness: DataWitness;
  readonly propagations: Propagations;
  readonly clock: Clock;
  readonly log: Log;
  readonly devices: readonly CrewDevice[];
  /** Folders of a job's attempts and checkpoint. */
  readonly jobsFolder: string;
  readonly cacheFolder: string;
  /** Uniform in [0, 1): spreads back-offs. */
  readonly random: () => number;
  readonly observe: RunnerObserver;
}

/** Observes what happens, for metrics; called after it was stored. */
export interface RunnerObserver {
  attemptStarted(attempt: JobAttempt): void;
  attemptEnded(attempt: JobAttempt): void;
  executorStarted(role: ExecutorRole): void;
  executorExited(exit: ExecutorExit): void;
  /** Something within a phase; so many seconds, until now. */
  partEnded(attempt: JobAttempt, part: AttemptPart, seconds: number): void;
  /** Seconds until it was durable. */
  checkpointWritten(attempt: JobAttempt, seconds: number): void;
  epochEnded(attempt: JobAttempt, report: EpochReport): void;
  /** Whether the store refuses what jobs have to write. */
  storeFailing(isFailing: boolean): void;
  transitioned(before: JobRecord, after: JobRecord): void;
}
