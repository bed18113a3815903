import type { Clock } from '../base/clock.ts';
import type { GnndError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Pool } from '../pool/pool.ts';
import type {
  DatasetRecord,
  DatasetState,
  OperationFailure,
  OperationRecord,
} from '../records/dataset-record.ts';
import type {
  Attempt,
  EpochReport,
  ExecutorExit,
  FollowingScale,
  JobChoices,
  JobIntent,
  JobPhase,
  JobPlan,
  JobRecord,
  JobResult,
  JobState,
  Reason,
  ResumePoint,
} from '../records/job-record.ts';
import type { JobSpec, JobSpecInput } from '../spec/job-spec.ts';

/**
 * What the store promises to the rest of the daemon. Every method that writes is one transaction
 * (or part of the one that `atomically` opened) and is durable when it returns: a crash of the
 * process or the host after that keeps the effect.
 *
 * Errors, as GnndError: STATE_DISK_FULL (nothing was written; the store stays usable),
 * STORE_UNAVAILABLE (busy or I/O error) and STORE_CORRUPT. After an I/O error or corruption the
 * store refuses everything and `StoreOptions.onFatal` has been called: only a restart, which reads
 * what is really on the disk, can tell what was kept. JOB_NOT_FOUND, DATASET_NOT_FOUND and
 * OPERATION_NOT_FOUND from methods that change something; those that read answer null.
 */
export interface Store extends JobStore, DatasetStore, OperationStore, RetentionStore {
  /** Counts the starts of a daemon on this store, from 1; never the same twice. */
  readonly incarnation: number;
  /** False when the daemon before this one did not close the store. True on a new store. */
  readonly lastStopWasClean: boolean;

  /**
   * Runs `work` in one transaction: all that it writes is kept, or nothing. Nests. Listeners of
   * `onCommit` run after the outermost one.
   */
  atomically<T>(work: () => T): T;
  /** Called after every commit that changed a job, a dataset or an operation: whom it concerns. */
  onCommit(listener: (changed: Changed) => void): () => void;
  /**
   * Newest revision, 0 on a new store. Revisions count jobs' events and epochs without a gap; the
   * events up to `compactedRevision` are gone.
   */
  revision(): number;
  sizes(): StoreSizes;
  /** Small facts that the daemon keeps about itself. */
  getMeta(key: string): string | null;
  setMeta(key: string, value: string): void;
  findRequest(method: string, requestId: string): StoredRequest | null;
  /**
   * The result of an earlier equal call; null when this is the first. Every call with a request
   * id asks this before it looks at anything else. Throws REQUEST_ID_REUSED when the id was used
   * for another request.
   */
  replayOf(request: RequestKey): StoredRequest | null;

  /** Resolves when the file has been read after a stop that was not clean. */
  readonly checked: Promise<void>;
  /**
   * Moves the log into the database file and marks the stop as clean, if the file was found to be
   * whole. Idempotent.
   */
  close(): void;
}

export interface JobStore {
  /** Stores a PENDING job with intent RUN. Throws JOB_EXISTS, REQUEST_ID_REUSED. */
  insertJob(job: NewJob, request?: RequestKey): JobRecord;
  getJob(id: string): JobRecord | null;
  getJobByUid(uid: string): JobRecord | null;
  /** Lists jobs, newest first. */
  listJobs(query: JobQuery): readonly JobRecord[];
  /** Jobs that have not ended, oldest first. */
  nonTerminalJobs(): readonly JobRecord[];
  /** Every state has an entry. */
  countJobs(): Readonly<Record<JobState, number>>;
  /**
   * Sets what the user wants from now on. CANCEL stays, and an ended job's intent cannot change:
   * JOB_STATE_CONFLICT. An intent that holds already is no change (no revision), but its request
   * is remembered. Throws REQUEST_ID_REUSED.
   */
  setIntent(id: string, intent: JobIntent, request?: RequestKey): JobRecord;
  /**
   * A FAILED or CANCELLED job is PENDING again, with intent RUN. Throws JOB_STATE_CONFLICT on any
   * other, JOB_NOT_FOUND on one that is noted for deletion, REQUEST_ID_REUSED.
   */
  reopenJob(id: string, message: string, request?: RequestKey): JobRecord;
  /**
   * Applies `change`, appends the event, and returns the job at its new revision. A state that the
   * table forbids, and any change of a terminal job, throws JOB_STATE_CONFLICT and writes nothing.
   * Fields that are left out stay, except: `phase` is null outside PREPARING and RUNNING,
   * `nextAttemptAtMs` is null outside PENDING, `startAtMs` is set when the job first gets to
   * PREPARING, `endAtMs` when it becomes terminal.
   */
  transition(id: string, change: JobChange): JobRecord;
  /**
   * The next attempt, numbered from 1. Attempts, exits and restarts have no revision of their own:
   * they show in the events that follow, so record first and `transition` then (within
   * `atomically` where the two must not part).
   */
  openAttempt(id: string): Attempt;
  closeAttempt(id: string, attempt: number, end: AttemptEnd): void;
  addExecutorExit(id: string, attempt: number, exit: ExecutorExit): void;
  addExecutorRestart(id: string, attempt: number): void;
  /**
   * An attempt goes on where `point` says. The first `epochs` reports of the newest earlier attempt
   * that has some are its own from now on, with the revisions that they have; the others of that
   * attempt are forgotten, because it trains those epochs again. INTERNAL when it has some already.
   */
  resumeAttempt(id: string, attempt: number, point: ResumePoint, epochs: number): void;
  /** How many reports the newest earlier attempt has that has some. Throws JOB_NOT_FOUND. */
  epochsBefore(id: string, attempt: number): number;
  /** Scales that followed all epochs that ever ended, where a job's locality adapts. */
  scalesOf(id: string): readonly FollowingScale[];
  /**
   * Epochs that ended, in order; each takes a revision. Repeating a stored report changes nothing.
   * A report with the same number and another content, one that leaves a gap, or one of a closed
   * attempt is refused with INTERNAL, and none is stored.
   */
  recordEpochs(id: string, attempt: number, reports: readonly EpochReport[]): void;
  /** Reports of an attempt from epoch `first` on, at most `limit`. Throws JOB_NOT_FOUND. */
  epochs(id: string, attempt: number, first: number, limit: number): readonly StoredEpoch[];
  /** How many epochs of an attempt have ended. Throws JOB_NOT_FOUND. */
  epochCount(id: string, attempt: number): number;
  /** Where the epochs after `revision` begin. Throws JOB_NOT_FOUND. */
  epochPlaceAfter(id: string, revision: number): EpochPlace;
  /** The job at each of its revisions after `afterRevision`, oldest first, at most `limit`. */
  events(id: string, afterRevision: number, limit: number): readonly StoredJobEvent[];
}

export interface DatasetStore {
  /** Throws DATASET_EXISTS. */
  insertDataset(dataset: NewDataset): DatasetRecord;
  updateDataset(id: string, change: DatasetChange): DatasetRecord;
  getDataset(id: string): DatasetRecord | null;
  /** Records by ascending id; `afterId` is the last id of the page before. */
  listDatasets(query: DatasetQuery): readonly DatasetRecord[];
  countDatasets(): DatasetCounts;
}

export interface OperationStore {
  /** Throws REQUEST_ID_REUSED. */
  insertOperation(operation: NewOperation, request?: RequestKey): OperationRecord;
  /**
   * `progress` and `message` stay in memory until the operation ends: they are not worth a sync of
   * the disk. With `end` everything is stored; an operation that has ended changes no more
   * (INTERNAL).
   */
  updateOperation(id: string, change: OperationChange): OperationRecord;
  getOperation(id: string): OperationRecord | null;
  /** Operations that have not ended; at a daemon's start their work died with the last daemon. */
  unfinishedOperations(): readonly OperationRecord[];
}

/**
 * Deletes jobs, datasets and operations, and events behind a horizon. A job is
 * deleted in one transaction, which hides it from every other method and frees its id; its files
 * and rows go afterwards in slices, stage by stage, and whoever opens the store finds how far that
 * was. Every method takes a limit and does no more work than that.
 */
export interface RetentionStore {
  /**
   * Deletes an ended job: its last event, of the revision that is answered, says so. With `force` a
   * job that lives is noted, to be deleted once it has ended (null; the caller cancels it). Throws
   * JOB_NOT_FOUND, JOB_NOT_TERMINAL, REQUEST_ID_REUSED.
   */
  deleteJob(id: string, how: DeleteHow, request?: RequestKey): number | null;
  /** The first deletion of a job of this id after `afterRevision`. */
  deletionOf(id: string, afterRevision: number): StoredDeletion | null;
  /** Jobs that were noted for deletion and have ended since. */
  endedRemovals(limit: number): readonly Removal[];
  /** Jobs noted for deletion that live, or deleted jobs of which files, or rows, are left. */
  removalsAt(stage: 'WAITING' | 'FILES' | 'ROWS', limit: number): readonly Removal[];
  filesRemoved(removals: readonly Removal[]): void;
  /** Removes at most `limit` rows of a deleted job; answers how many. Fewer: none is left. */
  removeRows(removal: Removal, limit: number): number;

  /** Jobs that ended, in this state unless it is null, the first to end first, after `after`. */
  endedJobs(state: EndState | null, after: EndedCursor | null, limit: number): readonly EndedJob[];
  countEnded(state: EndState | null): number;

  /** Events up to this revision are gone; 0: none is. */
  compactedRevision(): number;
  /**
   * How far events could be compacted, looking at the first `limit` after `after` only. The newest
   * event always stays.
   */
  compactable(after: number, horizon: EventHorizon, limit: number): CompactableEvents;
  /** Removes the events up to `revision`, at most `limit`; says how many. Fewer: all are gone. */
  compactEvents(revision: number, limit: number): number;

  /** Ids of jobs that have not ended and name this dataset. */
  jobsUsing(dataset: string, limit: number): readonly string[];
  /** Throws DATASET_NOT_FOUND, REQUEST_ID_REUSED. */
  deleteDataset(id: string, request?: RequestKey): void;
  /** How many operations ended before that time, counting at most `limit`. */
  countOperations(endedBeforeMs: number, limit: number): number;
  /** Forgets at most `limit` operations that ended before that time; answers how many. */
  forgetOperations(endedBeforeMs: number, limit: number): number;
}

export interface DeleteHow {
  readonly force: boolean;
  readonly keepCheckpoint: boolean;
}

export interface StoredDeletion {
  readonly revision: number;
  readonly atMs: number;
  /** The job as it was at last, without attempts and epochs. */
  readonly job: JobRecord;
  readonly keepCheckpoint: boolean;
}

/** A job that is deleted, or will be when it has ended. */
export interface Removal {
  readonly seq: number;
  /** The id and uid that it had. */
  readonly id: string;
  readonly uid: string;
  readonly keepCheckpoint: boolean;
}

export type EndState = 'SUCCEEDED' | 'FAILED' | 'CANCELLED';

export interface EndedCursor {
  readonly endAtMs: number;
  readonly seq: number;
}

export interface EndedJob extends EndedCursor {
  readonly id: string;
  readonly uid: string;
  readonly state: JobState;
}

/** An event goes when it is older than that, or when there are more newer ones than that. */
export interface EventHorizon {
  readonly beforeMs: number;
  readonly keep: number;
}

export interface CompactableEvents {
  /** Newest revision that may go; `after` when none may. */
  readonly through: number;
  /** Number of events that were looked at: there may be more. */
  readonly events: number;
  readonly bytes: number;
}

export interface NewJob {
  readonly id: string;
  readonly uid: string;
  readonly spec: JobSpecInput;
  readonly effectiveSpec: JobSpec;
  readonly datasetDigest: string;
  readonly choices: JobChoices;
  readonly createdBy: string;
}

/** Left out: stays as it is. */
export interface JobChange {
  readonly state?: JobState;
  readonly phase?: JobPhase | null;
  readonly reason?: Reason;
  readonly message?: string;
  readonly startAtMs?: number | null;
  readonly endAtMs?: number | null;
  readonly nextAttemptAtMs?: number | null;
  readonly plan?: JobPlan | null;
  readonly result?: JobResult | null;
}

export interface JobQuery {
  readonly limit: number;
  /** The last job of the page before. */
  readonly after: { readonly createAtMs: number; readonly uid: string } | null;
  /** Empty: all. */
  readonly states: readonly JobState[];
}

export interface AttemptEnd {
  readonly reason: Reason;
  readonly message: string;
}

export interface StoredEpoch {
  readonly revision: number;
  readonly report: EpochReport;
}

/** An epoch that has ended, or the next one that will. */
export interface EpochPlace {
  readonly attempt: number;
  readonly epoch: number;
}

/** The job as it was at `revision`. */
export interface StoredJobEvent {
  readonly revision: number;
  readonly atMs: number;
  readonly job: JobRecord;
}

/** Identifies a call that may be repeated; stored together with the call's effect. */
export interface RequestKey {
  /** Name of the method, for example `CreateJob`. */
  readonly method: string;
  readonly requestId: string;
  /** SHA-256 of the canonical request without its request id, in hex. */
  readonly sha256: string;
}

export interface StoredRequest {
  readonly sha256: string;
  /** Name of what the call made or changed, for example `jobs/mine`. */
  readonly resource: string;
  /** The store's revision when the call was done. */
  readonly revision: number;
  readonly atMs: number;
}

export type NewDataset = Omit<DatasetRecord, 'createAtMs'>;

/** Left out: stays as it is. */
export type DatasetChange = Partial<Omit<DatasetRecord, 'id' | 'createAtMs'>>;

export interface DatasetQuery {
  readonly limit: number;
  readonly afterId: string | null;
}

export interface DatasetCounts {
  /** Every state has an entry. */
  readonly byState: Readonly<Record<DatasetState, number>>;
  readonly bytes: number;
}

export type NewOperation = Pick<OperationRecord, 'id' | 'kind' | 'target'> &
  Partial<Pick<OperationRecord, 'resource'>>;
/** Left out: stays as it is. */
export interface OperationChange {
  /** 0 to 1. */
  readonly progress?: number;
  readonly message?: string;
  readonly end?: OperationEnd;
}

export interface OperationEnd {
  /** Null when it succeeded. */
  readonly error: OperationFailure | null;
  readonly validation: OperationRecord['validation'];
}

export interface StoreSizes {
  readonly dbBytes: number;
  readonly walBytes: number;
}

export interface StoreOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Reads a large file after a stop that was not clean; without one it is read at open. */
  readonly pool?: Pool;
  /** The table of legal state changes: throws GnndError JOB_STATE_CONFLICT on any other. */
  readonly assertTransition: (from: JobState, to: JobState) => void;
  /** Told of every outermost writing transaction, also of those that failed. */
  readonly observe?: (observation: StoreObservation) => void;
  /** Told of every call that `replayOf` found to be a repeated one. */
  readonly onReplay?: (method: string) => void;
  /**
   * Called once, when the store has become unusable, from within the call that found out; the
   * daemon must end soon (exit code 74).
   */
  readonly onFatal?: (error: GnndError) => void;
  /**
   * Kept back on the disk beside the store for jobs that run, in a file of its own; a full disk
   * then refuses new jobs alone. 0, the default: nothing is.
   */
  readonly reserveBytes?: number;
  /** A larger file is checked by a thread, after the store is open. */
  readonly checkAtOpenMaxBytes?: number;
}

/** Purpose of a transaction; GROUP is one of `atomically`. */
export type StoreOp =
  | 'INSERT_JOB'
  | 'SET_INTENT'
  | 'TRANSITION'
  | 'ATTEMPT'
  | 'EPOCH'
  | 'DATASET'
  | 'OPERATION'
  | 'RETENTION'
  | 'META'
  | 'GROUP';

export type StoreErrorCode = 'BUSY' | 'FULL' | 'IOERR' | 'CORRUPT' | 'OTHER';

export interface StoreObservation {
  readonly op: StoreOp;
  /** Time from begin to durable commit. */
  readonly seconds: number;
  /** Null when it was committed, or refused by a rule rather than by the database. */
  readonly error: StoreErrorCode | null;
}

/** The jobs that a commit concerns, by their ids, or ALL for everybody who listens. */
export type Changed = ReadonlySet<string> | 'ALL';
