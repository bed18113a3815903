import { GnndError } from '../base/errors.ts';
import type { Database } from './database.ts';

/** The store was made by another version of gnnd, which this one does not read. */
export class StoreOfAnotherVersion extends GnndError {
  /** `found` says what it has and what this gnnd has, for example `schema 2; this one reads 1`. */
  constructor(path: string, found: string) {
    super(
      'STORE_CORRUPT',
      `${path} was made by another version of gnnd (${found}): start that version, or start this ` +
        'one with an empty state directory',
    );
    this.name = 'StoreOfAnotherVersion';
  }
}

/** "gnnd", so that no other program's database is taken for a store. */
const applicationId = 0x676e6e64;

/** SQLite's `user_version` of a store. It changes with the schema below. */
export const schemaVersion = 1;

const schema = `
  CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE jobs (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    uid TEXT NOT NULL UNIQUE,
    created_by TEXT NOT NULL,
    dataset TEXT NOT NULL,
    spec BLOB NOT NULL,
    effective_spec BLOB NOT NULL,
    dataset_digest TEXT NOT NULL,
    choices TEXT NOT NULL,
    create_at_ms INTEGER NOT NULL,
    intent TEXT NOT NULL,
    state TEXT NOT NULL,
    phase TEXT,
    reason TEXT NOT NULL,
    message TEXT NOT NULL,
    start_at_ms INTEGER,
    end_at_ms INTEGER,
    next_attempt_at_ms INTEGER,
    plan TEXT,
    result TEXT,
    revision INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX jobs_by_age ON jobs (create_at_ms, uid);
  CREATE INDEX jobs_by_state ON jobs (state, create_at_ms, uid);
  CREATE INDEX jobs_by_end ON jobs (end_at_ms);
  CREATE INDEX jobs_by_state_and_end ON jobs (state, end_at_ms);

  -- Attempts and what happens in them carry the store's revision at that moment: an event of a
  -- later revision shows them, one of that revision or an earlier one does not.
  CREATE TABLE attempts (
    job_seq INTEGER NOT NULL REFERENCES jobs (seq),
    number INTEGER NOT NULL,
    start_at_ms INTEGER NOT NULL,
    end_at_ms INTEGER,
    end_reason TEXT NOT NULL,
    message TEXT NOT NULL,
    open_revision INTEGER NOT NULL,
    close_revision INTEGER,
    resumed TEXT,
    resume_revision INTEGER,
    PRIMARY KEY (job_seq, number)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE executor_exits (
    seq INTEGER PRIMARY KEY,
    job_seq INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    role TEXT NOT NULL,
    device TEXT NOT NULL,
    pid INTEGER NOT NULL,
    exit_code INTEGER,
    signal TEXT,
    reason TEXT NOT NULL,
    log_tail TEXT NOT NULL,
    revision INTEGER NOT NULL,
    FOREIGN KEY (job_seq, attempt) REFERENCES attempts (job_seq, number)
  ) STRICT;
  CREATE INDEX executor_exits_by_attempt ON executor_exits (job_seq, attempt);

  CREATE TABLE executor_restarts (
    seq INTEGER PRIMARY KEY,
    job_seq INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    FOREIGN KEY (job_seq, attempt) REFERENCES attempts (job_seq, number)
  ) STRICT;
  CREATE INDEX executor_restarts_by_attempt ON executor_restarts (job_seq, attempt);

  -- NULL in a REAL column stands for NaN: not measured.
  CREATE TABLE epochs (
    job_seq INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    batches INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    retries INTEGER NOT NULL,
    loss REAL,
    train_accuracy REAL,
    val_accuracy REAL,
    duration_ms REAL,
    version INTEGER NOT NULL,
    parameters_sha256 TEXT NOT NULL,
    ledger_digest TEXT NOT NULL,
    batches_by_device TEXT NOT NULL,
    executor_times TEXT NOT NULL,
    work TEXT NOT NULL,
    val_metrics TEXT NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (job_seq, attempt, epoch),
    FOREIGN KEY (job_seq, attempt) REFERENCES attempts (job_seq, number)
  ) STRICT, WITHOUT ROWID;

  -- The scales by which epochs were followed, also those of epochs that are trained again and
  -- whose reports are forgotten.
  CREATE TABLE scales (
    job_seq INTEGER NOT NULL REFERENCES jobs (seq),
    epoch INTEGER NOT NULL,
    next TEXT NOT NULL,
    PRIMARY KEY (job_seq, epoch)
  ) STRICT, WITHOUT ROWID;

  -- Append-only; the oldest go, and only those that were declared as compacted first. Revisions are
  -- store-wide: meta counts them, because epochs have revisions, too.
  INSERT INTO meta VALUES ('revision', '0'), ('compacted_revision', '0');
  CREATE TABLE events (
    revision INTEGER PRIMARY KEY,
    job_seq INTEGER NOT NULL REFERENCES jobs (seq),
    at_ms INTEGER NOT NULL,
    status TEXT NOT NULL
  ) STRICT;
  CREATE INDEX events_by_job ON events (job_seq, revision);
  CREATE TRIGGER events_stay_as_they_are BEFORE UPDATE ON events
  BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
  CREATE TRIGGER events_stay BEFORE DELETE ON events
  WHEN OLD.revision > (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'compacted_revision')
  BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

  -- A deleted job's row stays, in state DELETED and under no id that a user could ask for, as long
  -- as its events do; removals says how far its removal is.
  CREATE TABLE removals (
    job_seq INTEGER PRIMARY KEY REFERENCES jobs (seq),
    job_id TEXT NOT NULL,
    job_uid TEXT NOT NULL,
    keep_checkpoint INTEGER NOT NULL,
    stage TEXT NOT NULL,
    revision INTEGER
  ) STRICT;
  CREATE INDEX removals_by_id ON removals (job_id, revision);
  CREATE INDEX removals_by_stage ON removals (stage);

  CREATE TABLE requests (
    method TEXT NOT NULL,
    request_id TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    resource TEXT NOT NULL,
    revision INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (method, request_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX requests_by_age ON requests (at_ms);

  CREATE TABLE datasets (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    message TEXT NOT NULL,
    digest TEXT NOT NULL,
    path TEXT NOT NULL,
    num_nodes INTEGER NOT NULL,
    num_edges INTEGER NOT NULL,
    num_features INTEGER NOT NULL,
    num_classes INTEGER NOT NULL,
    num_train INTEGER NOT NULL,
    num_val INTEGER NOT NULL,
    num_test INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    create_at_ms INTEGER NOT NULL,
    feature_dtype TEXT NOT NULL,
    task TEXT NOT NULL,
    schema TEXT
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE operations (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    done INTEGER NOT NULL,
    progress REAL NOT NULL,
    message TEXT NOT NULL,
    create_at_ms INTEGER NOT NULL,
    end_at_ms INTEGER,
    error TEXT,
    validation TEXT,
    resource TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
`;

/**
 * Whether the database is empty: a store has yet to be made in it. Changes nothing. Throws
 * StoreOfAnotherVersion, and STORE_CORRUPT for a database of another program.
 */
export function isEmptyDatabase(database: Database, path: string): boolean {
  const version = Number(database.pragma('user_version'));
  const owner = Number(database.pragma('application_id'));
  if (owner === applicationId) {
    if (version === schemaVersion) return false;
    throw new StoreOfAnotherVersion(path, `schema ${version}; this one reads ${schemaVersion}`);
  }
  const tables = database.get(database.prepare('SELECT count(*) AS n FROM sqlite_schema'));
  if (owner === 0 && version === 0 && tables?.['n'] === 0) return true;
  throw new GnndError('STORE_CORRUPT', `${path} is a database, but not a store of gnnd`);
}

/** Makes the tables of a store in an empty database. Only inside a transaction. */
export function makeTables(database: Database): void {
  database.execute(schema);
  database.pragma(`application_id = ${applicationId}`);
  database.pragma(`user_version = ${schemaVersion}`);
}

/** Reads the whole file. Throws STORE_CORRUPT with what is wrong and what can be done. */
export function quickCheck(database: Database, path: string): void {
  const problems = problemsOf(database);
  if (problems.length === 0) return;
  throw new GnndError(
    'STORE_CORRUPT',
    `${path} is damaged: ${problems.join('; ')}. Restore it from a copy, or save what can be ` +
      `read: sqlite3 ${path} .recover | sqlite3 ${path}.recovered`,
  );
}

function problemsOf(database: Database): readonly string[] {
  try {
    const rows = database.all(database.prepare('PRAGMA quick_check(10)'));
    return rows.map((row) => String(row['quick_check'])).filter((line) => line !== 'ok');
  } catch (error) {
    // Damage can be such that not even the check gets through.
    if (error instanceof GnndError && error.reason === 'STORE_CORRUPT') return [error.message];
    throw error;
  }
}
