import { rmSync } from 'node:fs';
import { GnndError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Database } from './database.ts';
import { specsToBytes } from './spec-form.ts';

/** The store was written by a newer gnnd; going on could destroy what this one does not know. */
export class SchemaTooNew extends GnndError {
  readonly found: number;
  readonly supported: number;

  constructor(
    path: string,
    found: number,
    supported: number,
    what = `schema version ${found}, this gnnd knows versions up to ${supported}`,
  ) {
    super('STORE_CORRUPT', `${path} has ${what}: start the gnnd that wrote it, or a newer one`, {
      metadata: { found: String(found), supported: String(supported) },
    });
    this.name = 'SchemaTooNew';
    this.found = found;
    this.supported = supported;
  }
}

/** "gnnd", so that no other program's database is taken for a store. */
const applicationId = 0x676e6e64;

/** SQL, or what SQL cannot do; in a transaction of the migration. */
export type Migration = string | ((database: Database) => void);

/**
 * The n-th entry leads from version n to n + 1 (`PRAGMA user_version`). Append only: what has been
 * released never changes.
 */
export const migrations: readonly Migration[] = [
  `
  CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE jobs (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    uid TEXT NOT NULL UNIQUE,
    spec TEXT NOT NULL,
    effective_spec TEXT NOT NULL,
    dataset_digest TEXT NOT NULL,
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
  CREATE INDEX jobs_by_state ON jobs (state);

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
    test_accuracy REAL,
    duration_ms REAL,
    version INTEGER NOT NULL,
    parameters_sha256 TEXT NOT NULL,
    ledger_digest TEXT NOT NULL,
    batches_by_device TEXT NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (job_seq, attempt, epoch),
    FOREIGN KEY (job_seq, attempt) REFERENCES attempts (job_seq, number)
  ) STRICT, WITHOUT ROWID;

  -- Append-only. The revision is store-wide and has no gap.
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
  BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

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
    create_at_ms INTEGER NOT NULL
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
    validation TEXT
  ) STRICT, WITHOUT ROWID;
  `,
  "ALTER TABLE datasets ADD COLUMN feature_dtype TEXT NOT NULL DEFAULT 'float32'",
  // What specs, plans and results of version 2 could not say, and what held all the same.
  `
  ALTER TABLE epochs ADD COLUMN executor_times TEXT NOT NULL DEFAULT '[]';

  DROP TRIGGER events_stay_as_they_are;
  UPDATE events SET status = json_set(status,
    '$.plan.cache.prefetch', json('false'),
    '$.plan.cache.prefetchExplanation', '',
    '$.result.epochs', (SELECT json_extract(effective_spec, '$.training.epochs')
                        FROM jobs WHERE seq = job_seq));
  CREATE TRIGGER events_stay_as_they_are BEFORE UPDATE ON events
  BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

  UPDATE jobs SET
    plan = json_set(plan,
      '$.cache.prefetch', json('false'),
      '$.cache.prefetchExplanation', ''),
    result = json_set(result,
      '$.epochs', json_extract(effective_spec, '$.training.epochs')),
    effective_spec = json_set(effective_spec,
      '$.model.script', json('{"path":"","sha256":""}'),
      '$.sampling.plugin', json('{"path":"","sha256":"","options":"","weights":false}'),
      '$.cache.prefetch', 'AUTO',
      '$.training.earlyStop', json('{"patienceEpochs":0,"minDelta":0}'),
      '$.training.determinism', 'STRICT');
  `,
  // Jobs of version 3 were evaluated exactly, after every epoch.
  `
  UPDATE jobs SET effective_spec = json_set(effective_spec, '$.evaluation',
    json('{"everyEpochs":1,"method":"EXACT","fanouts":[],"maxBytes":8589934592}'));
  `,
  // A deleted job's row stays, in state DELETED and under no id that a user could ask for, as long
  // as its events do; `removals` says how far its removal is.
  `
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
  CREATE INDEX jobs_by_end ON jobs (end_at_ms);

  -- Events go from the oldest on, and only what was declared as compacted first.
  INSERT INTO meta VALUES ('compacted_revision', '0');
  DROP TRIGGER events_stay;
  CREATE TRIGGER events_stay BEFORE DELETE ON events
  WHEN OLD.revision > (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'compacted_revision')
  BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
  `,
  'CREATE INDEX jobs_by_state_and_end ON jobs (state, end_at_ms)',
  // Revisions are counted apart, because epochs have one, too; lists by state page by an index.
  `
  INSERT INTO meta SELECT 'revision', CAST(coalesce(max(revision), 0) AS TEXT) FROM events;
  DROP INDEX jobs_by_state;
  CREATE INDEX jobs_by_state ON jobs (state, create_at_ms, uid);
  `,
  // Jobs of earlier versions were not compensated.
  `
  UPDATE jobs SET effective_spec =
    json_set(effective_spec, '$.training.stalenessCompensation', 'NONE');
  `,
  // Specs are proto bytes; fields that come later need no migration (spec-words.ts).
  specsToBytes,
  // Plans of version 9 predicted the split alone.
  `
  DROP TRIGGER events_stay_as_they_are;
  UPDATE events SET status = json_set(status, '$.plan.ways', json('[]'));
  CREATE TRIGGER events_stay_as_they_are BEFORE UPDATE ON events
  BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
  UPDATE jobs SET plan = json_set(plan, '$.ways', json('[]'));
  `,
  "ALTER TABLE operations ADD COLUMN resource TEXT NOT NULL DEFAULT ''",
  // Attempts of earlier versions began at the beginning.
  `
  ALTER TABLE attempts ADD COLUMN resumed TEXT;
  ALTER TABLE attempts ADD COLUMN resume_revision INTEGER;
  `,
  "ALTER TABLE jobs ADD COLUMN created_by TEXT NOT NULL DEFAULT ''",
  // What batches of earlier epochs took was not summed, and nobody was favoured.
  `
  ALTER TABLE epochs ADD COLUMN work TEXT NOT NULL
    DEFAULT '{"extractNs":0,"trainNs":0,"scale":1,"next":null}';
  `,
  // Of epochs that are trained again, too, whose reports are forgotten.
  `
  CREATE TABLE scales (
    job_seq INTEGER NOT NULL REFERENCES jobs (seq),
    epoch INTEGER NOT NULL,
    next TEXT NOT NULL,
    PRIMARY KEY (job_seq, epoch)
  ) STRICT, WITHOUT ROWID;
  INSERT OR REPLACE INTO scales (job_seq, epoch, next)
    SELECT job_seq, epoch, json_extract(work, '$.next') FROM epochs
    WHERE json_extract(work, '$.next') IS NOT NULL ORDER BY attempt;
  `,
  "ALTER TABLE datasets ADD COLUMN task TEXT NOT NULL DEFAULT 'CLASSIFICATION'",
  // Of epochs of earlier versions accuracy alone is known (epoch-table.ts).
  "ALTER TABLE epochs ADD COLUMN val_metrics TEXT NOT NULL DEFAULT '[]'",
];

export interface SchemaOptions {
  readonly path: string;
  readonly log: Log;
  readonly steps?: readonly Migration[];
}

/**
 * Brings the database to the newest schema, in one transaction; before it changes one that holds
 * data it leaves a copy at `<path>.before-v<n>`. Throws like `schemaVersion`.
 */
export function migrate(database: Database, options: SchemaOptions): void {
  const steps = options.steps ?? migrations;
  const found = schemaVersion(database, options.path, steps.length);
  if (found === steps.length) return;
  if (found > 0) backUp(database, `${options.path}.before-v${steps.length}`);
  database.write('META', null, () => {
    for (const step of steps.slice(found)) {
      if (typeof step === 'string') database.execute(step);
      else step(database);
    }
    database.pragma(`application_id = ${applicationId}`);
    database.pragma(`user_version = ${steps.length}`);
  });
  options.log.info('store.migrated', { from: found, to: steps.length });
}

/**
 * 0 for a new database. Changes nothing. Throws SchemaTooNew, and STORE_CORRUPT for a database that
 * is not ours.
 */
export function schemaVersion(
  database: Database,
  path: string,
  supported = migrations.length,
): number {
  const version = Number(database.pragma('user_version'));
  const owner = Number(database.pragma('application_id'));
  if (owner === applicationId) {
    if (version > supported) throw new SchemaTooNew(path, version, supported);
    return version;
  }
  const tables = database.get(database.prepare('SELECT count(*) AS n FROM sqlite_schema'));
  if (owner === 0 && version === 0 && tables?.['n'] === 0) return 0;
  throw new GnndError('STORE_CORRUPT', `${path} is a database, but not a store of gnnd`);
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

/** A copy of all that is committed. */
export function backUp(database: Database, target: string): void {
  // One that is left of a migration that failed would stop VACUUM INTO.
  rmSync(target, { force: true });
  database.execute(`VACUUM INTO '${target.replaceAll("'", "''")}'`);
}
