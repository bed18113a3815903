import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import Sqlite from 'better-sqlite3';
import type { Clock } from '../base/clock.ts';
import { GnndError, messageOf } from '../base/errors.ts';
import type { DiskReserve } from './disk-reserve.ts';
import type {
  Changed,
  StoreErrorCode,
  StoreObservation,
  StoreOp,
  StoreSizes,
} from './store-types.ts';

/** A value that a column takes or gives. */
export type Cell = string | number | Uint8Array | null;
export type Row = Readonly<Record<string, unknown>>;
export type Statement = Sqlite.Statement<Cell[], Row>;

/** How long a statement may wait for another connection: nobody but a person's shell is one. */
const busyTimeoutMs = 2_000;
/** A damaged log can lose only commits that are newer than this. */
const checkpointEveryMs = 5_000;
const journalSizeMaxBytes = 64 * 1024 * 1024;

export interface DatabaseOptions {
  readonly clock: Clock;
  readonly observe: (observation: StoreObservation) => void;
  readonly onFatal: (error: GnndError) => void;
  /** Given up on a full disk for all but new jobs; none: a full disk refuses all. */
  readonly reserve?: DiskReserve;
}

/**
 * One SQLite connection: transactions, and errors in our words. After an I/O error or corruption
 * it refuses everything: what the failed sync left on the disk is unknown, and a second sync that
 * succeeds would hide the loss.
 */
export class Database {
  readonly #path: string;
  readonly #connection: Sqlite.Database;
  readonly #inode: bigint;
  readonly #options: DatabaseOptions;
  readonly #commitListeners = new Set<(changed: Changed) => void>();
  #fatal: GnndError | null = null;
  /** Job ids that the open transaction changed; an id of a rolled-back part does no harm. */
  #changed = new Set<string>();
  #changedAll = false;
  /** Whether the open transaction has a new job in it. */
  #hasNewJob = false;
  /** Whether anything was logged since the last checkpoint. */
  #hasLogged = false;
  readonly #timer: NodeJS.Timeout;

  /** Throws STORE_UNAVAILABLE or STORE_CORRUPT. */
  constructor(path: string, options: DatabaseOptions) {
    this.#path = path;
    this.#options = options;
    mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
    let connection: Sqlite.Database | null = null;
    try {
      connection = new Sqlite(path, { timeout: busyTimeoutMs });
      configure(connection);
    } catch (error) {
      connection?.close();
      throw ownError(error);
    }
    this.#connection = connection;
    this.#inode = statSync(path, { bigint: true }).ino;
    this.#timer = setInterval(() => {
      this.checkpoint();
      options.reserve?.restore();
    }, checkpointEveryMs);
    this.#timer.unref();
  }

  prepare(sql: string): Statement {
    return this.#translated(() => this.#connection.prepare<Cell[], Row>(sql));
  }

  all(statement: Statement, ...cells: readonly Cell[]): readonly Row[] {
    return this.#translated(() => statement.all(...cells));
  }

  get(statement: Statement, ...cells: readonly Cell[]): Row | null {
    return this.#translated(() => statement.get(...cells)) ?? null;
  }

  /** Number of rows changed. Only inside `write`. */
  run(statement: Statement, ...cells: readonly Cell[]): number {
    // A full disk ends the transaction under our feet; who caught that must not write on.
    if (!this.#connection.inTransaction) throw new Error('a store write outside a transaction');
    return this.#translated(() => statement.run(...cells)).changes;
  }

  /** Executes schema changes and pragmas. */
  execute(sql: string): void {
    this.#translated(() => this.#connection.exec(sql));
  }

  /** Changes the file's header: only for a file that is known to be ours. */
  useWriteAheadLog(): void {
    this.pragma('journal_mode = WAL');
  }

  pragma(source: string): unknown {
    return this.#translated(() => this.#connection.pragma(source, { simple: true }));
  }

  /**
   * Runs `work` in a transaction, or within the one that is open. `changes`: the job that commit
   * listeners should look at again, `ALL` where that is no single job, null for none. On a full
   * disk `work` may run twice: the second time with what was kept back.
   */
  write<T>(op: StoreOp, changes: { readonly job: string } | 'ALL' | null, work: () => T): T {
    if (op === 'INSERT_JOB') this.#requireRoom();
    if (this.#connection.inTransaction) {
      this.#hasNewJob ||= op === 'INSERT_JOB';
      // A savepoint: when `work` throws and the caller goes on, nothing of it stays.
      const result = this.#connection.transaction(work)();
      this.#note(changes);
      return result;
    }
    const result = this.#observed(op, () => {
      try {
        return this.#commit(op, changes, work);
      } catch (error) {
        if (errorCodeOf(error) !== 'FULL' || this.#hasNewJob) throw error;
        if (this.#options.reserve?.release() !== true) throw error;
        return this.#commit(op, changes, work);
      }
    });
    const changed = this.#changedAll ? 'ALL' : this.#changed;
    if (changed === 'ALL' || changed.size > 0) {
      for (const listener of this.#commitListeners) listener(changed);
    }
    return result;
  }

  #commit<T>(op: StoreOp, changes: { readonly job: string } | 'ALL' | null, work: () => T): T {
    this.#changed = new Set();
    this.#changedAll = false;
    this.#hasNewJob = op === 'INSERT_JOB';
    this.#note(changes);
    return this.#translated(() => {
      const done = this.#connection.transaction(work).immediate();
      this.#requireFile();
      this.#hasLogged = true;
      return done;
    });
  }

  /** Throws when only the room is left that is kept back for running jobs. */
  #requireRoom(): void {
    if (this.#options.reserve?.isReleased !== true) return;
    throw new GnndError(
      'STATE_DISK_FULL',
      'the disk of the state directory is full: what room is left is for jobs that run',
    );
  }

  #note(changes: { readonly job: string } | 'ALL' | null): void {
    if (changes === 'ALL') this.#changedAll = true;
    else if (changes !== null) this.#changed.add(changes.job);
  }

  /**
   * Moves what the log holds into the file, as far as no reader needs it: a log that is damaged
   * later loses so much less.
   */
  checkpoint(): void {
    if (!this.isUsable || !this.#hasLogged) return;
    try {
      this.pragma('wal_checkpoint(PASSIVE)');
      this.#hasLogged = false;
    } catch {
      // Later, or never: whoever writes next hears of it.
    }
  }

  /** SQLite writes on into a file without a name: nothing of that would be found again. */
  #requireFile(): void {
    const found = statSync(this.#path, { throwIfNoEntry: false, bigint: true });
    if (found?.ino === this.#inode) return;
    const what = found === undefined ? 'was removed' : 'was replaced';
    const message = `${this.#path} ${what} while it was in use: nothing more can be stored`;
    throw new StoreGone(message);
  }

  onCommit(listener: (changed: Changed) => void): () => void {
    this.#commitListeners.add(listener);
    return () => {
      this.#commitListeners.delete(listener);
    };
  }

  sizes(): StoreSizes {
    return {
      dbBytes: sizeOf(this.#path),
      walBytes: sizeOf(`${this.#path}-wal`),
    };
  }

  /** Idempotent. */
  close(): void {
    clearInterval(this.#timer);
    this.#connection.close();
  }

  get isOpen(): boolean {
    return this.#connection.open;
  }

  get isUsable(): boolean {
    return this.#connection.open && this.#fatal === null;
  }

  /** Refuses everything from now on, because of what somebody else found out. */
  fail(error: GnndError): void {
    if (this.#fatal !== null || !this.isOpen) return;
    this.#fatal = error;
    this.#options.onFatal(error);
  }

  #observed<T>(op: StoreOp, work: () => T): T {
    const startMs = this.#options.clock.monotonicMs();
    let error: StoreErrorCode | null = null;
    try {
      return work();
    } catch (thrown) {
      error = errorCodeOf(thrown);
      throw thrown;
    } finally {
      const seconds = (this.#options.clock.monotonicMs() - startMs) / 1000;
      this.#options.observe({ op, seconds, error });
    }
  }

  #translated<T>(work: () => T): T {
    if (this.#fatal !== null) throw this.#fatal;
    if (!this.#connection.open) throw new GnndError('STORE_UNAVAILABLE', 'the store is closed');
    try {
      return work();
    } catch (thrown) {
      const error = ownError(thrown);
      const code = errorCodeOf(thrown);
      const isFatal = code === 'IOERR' || code === 'CORRUPT';
      if (isFatal && this.#fatal === null && error instanceof GnndError) {
        this.#fatal = error;
        this.#options.onFatal(error);
      }
      throw error;
    }
  }
}

/** The file under the connection has gone. */
class StoreGone extends Error {}

function configure(connection: Sqlite.Database): void {
  // NORMAL would keep the file whole but could lose the last commits with the host's power.
  connection.pragma('synchronous = FULL');
  connection.pragma('foreign_keys = ON');
  connection.pragma('trusted_schema = OFF');
  connection.pragma('cell_size_check = ON');
  connection.pragma(`journal_size_limit = ${journalSizeMaxBytes}`);
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Code of an error of the database; null for errors of other origin. */
export function errorCodeOf(error: unknown): StoreErrorCode | null {
  if (error instanceof GnndError) return errorCodeOf(error.cause);
  if (error instanceof StoreGone) return 'IOERR';
  if (!(error instanceof Sqlite.SqliteError)) return null;
  if (/^SQLITE_(BUSY|LOCKED)/.test(error.code)) return 'BUSY';
  // The latter: no room for the index of the write-ahead log.
  if (error.code === 'SQLITE_FULL' || error.code === 'SQLITE_IOERR_SHMSIZE') return 'FULL';
  if (/^SQLITE_(IOERR|READONLY|CANTOPEN|PERM|AUTH)/.test(error.code)) return 'IOERR';
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(error.code)) return 'CORRUPT';
  return 'OTHER';
}

/** A database error in our words; anything else as it is. */
export function ownError(error: unknown): unknown {
  if (error instanceof GnndError) return error;
  switch (errorCodeOf(error)) {
    case 'FULL':
      return new GnndError('STATE_DISK_FULL', 'the disk of the state directory is full', {
        cause: error,
      });
    case 'BUSY':
    case 'IOERR':
      return new GnndError('STORE_UNAVAILABLE', `the store cannot be used: ${messageOf(error)}`, {
        cause: error,
      });
    case 'CORRUPT':
      return new GnndError('STORE_CORRUPT', `the store is damaged: ${messageOf(error)}`, {
        cause: error,
      });
    default:
      return error;
  }
}

/** Whether `error` says that a row with this key is there already. */
export function isUniqueViolation(error: unknown): boolean {
  return (
    error instanceof Sqlite.SqliteError &&
    (error.code === 'SQLITE_CONSTRAINT_UNIQUE' || error.code === 'SQLITE_CONSTRAINT_PRIMARYKEY')
  );
}
