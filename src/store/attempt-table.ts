import { GnndError } from '../base/errors.ts';
import type { Attempt, EpochReport, ExecutorExit } from '../spec/job-record.ts';
import { dictionary, float, fromJson, integer, nullable, object, text, toJson } from './codec.ts';
import type { Cell, Database, Row } from './database.ts';
import { executorTimes, reason, role } from './shapes.ts';
import type { AttemptEnd } from './store.ts';

/** Attempts of jobs: their executors' exits and restarts, and their epochs' reports. */
export interface AttemptTable {
  /** The newest attempts, oldest first, as an event of `revision` shows them. */
  list(jobSeq: number, revision: number): readonly Attempt[];
  epochs(jobSeq: number, attempt: number, revision: number): readonly EpochReport[];

  // Only inside a transaction; `revision` is the store's at that moment.
  open(jobSeq: number, atMs: number, revision: number): Attempt;
  close(jobSeq: number, number: number, end: AttemptEnd, atMs: number, revision: number): void;
  addExit(jobSeq: number, number: number, exit: ExecutorExit, revision: number): void;
  addRestart(jobSeq: number, number: number, atMs: number, revision: number): void;
  /** False when it was recorded before, with the same content. */
  recordEpoch(jobSeq: number, number: number, report: EpochReport, revision: number): boolean;
}

const attemptsShown = 20;

const attemptRow = object({
  number: integer,
  start_at_ms: integer,
  end_at_ms: nullable(integer),
  end_reason: reason,
  message: text,
  close_revision: nullable(integer),
});

const exitRow = object({
  role,
  device: text,
  pid: integer,
  exit_code: nullable(integer),
  signal: nullable(text),
  reason,
  log_tail: text,
});

const batchesByDevice = dictionary(integer);
const epochRow = object({
  epoch: integer,
  batches: integer,
  steps: integer,
  retries: integer,
  loss: float,
  train_accuracy: float,
  val_accuracy: float,
  test_accuracy: float,
  duration_ms: float,
  version: integer,
  parameters_sha256: text,
  ledger_digest: text,
  batches_by_device: fromJson(batchesByDevice),
  executor_times: fromJson(executorTimes),
});

export function attemptTable(database: Database): AttemptTable {
  const sql = statements(database);

  const restartsOf = (jobSeq: number, number: number, revision: number): number =>
    integer(database.get(sql.countRestarts, jobSeq, number, revision)?.['n'], 'executor_restarts');

  const attemptOf = (jobSeq: number, row: Row, revision: number): Attempt => {
    const stored = attemptRow(row, `attempts of job ${jobSeq}`);
    const hasEnded = stored.close_revision !== null && stored.close_revision < revision;
    return {
      number: stored.number,
      startAtMs: stored.start_at_ms,
      endAtMs: hasEnded ? stored.end_at_ms : null,
      endReason: hasEnded ? stored.end_reason : 'NONE',
      message: hasEnded ? stored.message : '',
      executorRestarts: restartsOf(jobSeq, stored.number, revision),
      exits: database.all(sql.selectExits, jobSeq, stored.number, revision).map(exitOf),
    };
  };

  const assertOpen = (jobSeq: number, number: number): void => {
    const row = database.get(sql.selectOne, jobSeq, number);
    if (row === null) throw refused(`there is no attempt ${number}`);
    if (row['close_revision'] !== null) throw refused(`attempt ${number} has ended`);
  };

  return {
    list(jobSeq, revision) {
      const rows = database.all(sql.selectNewest, jobSeq, revision, attemptsShown);
      return [...rows].reverse().map((row) => attemptOf(jobSeq, row, revision));
    },
    epochs(jobSeq, attempt, revision) {
      return database.all(sql.selectEpochs, jobSeq, attempt, revision).map(reportOf);
    },
    open(jobSeq, atMs, revision) {
      const newest = database.get(sql.selectNewest, jobSeq, Number.MAX_SAFE_INTEGER, 1);
      if (newest !== null && newest['close_revision'] === null) {
        throw refused(`attempt ${String(newest['number'])} has not ended`);
      }
      const number = newest === null ? 1 : integer(newest['number'], 'attempts.number') + 1;
      database.run(sql.insert, jobSeq, number, atMs, revision);
      return {
        number,
        startAtMs: atMs,
        endAtMs: null,
        endReason: 'NONE',
        message: '',
        executorRestarts: 0,
        exits: [],
      };
    },
    close(jobSeq, number, end, atMs, revision) {
      assertOpen(jobSeq, number);
      database.run(sql.close, atMs, end.reason, end.message, revision, jobSeq, number);
    },
    addExit(jobSeq, number, exit, revision) {
      if (database.get(sql.selectOne, jobSeq, number) === null) {
        throw refused(`there is no attempt ${number}`);
      }
      const { exitCode, signal, logTail } = exit;
      const process: Cell[] = [exit.role, exit.device, exit.pid, exitCode, signal];
      database.run(sql.insertExit, jobSeq, number, ...process, exit.reason, logTail, revision);
    },
    addRestart(jobSeq, number, atMs, revision) {
      assertOpen(jobSeq, number);
      database.run(sql.insertRestart, jobSeq, number, atMs, revision);
    },
    recordEpoch(jobSeq, number, report, revision) {
      const cells = epochCells(report);
      const known = database.get(sql.selectEpoch, jobSeq, number, report.epoch);
      if (known !== null) {
        if (JSON.stringify(epochCells(reportOf(known))) === JSON.stringify(cells)) return false;
        throw refused(`epoch ${report.epoch} was recorded with another content`);
      }
      assertOpen(jobSeq, number);
      const expected = integer(database.get(sql.countEpochs, jobSeq, number)?.['n'], 'epochs');
      if (report.epoch !== expected) {
        throw refused(`epoch ${report.epoch} came when epoch ${expected} was due`);
      }
      database.run(sql.insertEpoch, jobSeq, number, ...cells, revision);
      return true;
    },
  };
}

function statements(database: Database) {
  return {
    selectNewest: database.prepare(
      `SELECT * FROM attempts WHERE job_seq = ? AND open_revision < ?
       ORDER BY number DESC LIMIT ?`,
    ),
    selectOne: database.prepare('SELECT * FROM attempts WHERE job_seq = ? AND number = ?'),
    insert: database.prepare("INSERT INTO attempts VALUES (?, ?, ?, NULL, 'NONE', '', ?, NULL)"),
    close: database.prepare(
      `UPDATE attempts SET end_at_ms = ?, end_reason = ?, message = ?, close_revision = ?
       WHERE job_seq = ? AND number = ?`,
    ),
    selectExits: database.prepare(
      `SELECT * FROM executor_exits
       WHERE job_seq = ? AND attempt = ? AND revision < ? ORDER BY seq`,
    ),
    insertExit: database.prepare(
      'INSERT INTO executor_exits VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    ),
    countRestarts: database.prepare(
      `SELECT count(*) AS n FROM executor_restarts
       WHERE job_seq = ? AND attempt = ? AND revision < ?`,
    ),
    insertRestart: database.prepare('INSERT INTO executor_restarts VALUES (NULL, ?, ?, ?, ?)'),
    selectEpochs: database.prepare(
      'SELECT * FROM epochs WHERE job_seq = ? AND attempt = ? AND revision < ? ORDER BY epoch',
    ),
    selectEpoch: database.prepare(
      'SELECT * FROM epochs WHERE job_seq = ? AND attempt = ? AND epoch = ?',
    ),
    countEpochs: database.prepare(
      'SELECT count(*) AS n FROM epochs WHERE job_seq = ? AND attempt = ?',
    ),
    insertEpoch: database.prepare(
      `INSERT INTO epochs (job_seq, attempt, epoch, batches, steps, retries, loss, train_accuracy,
         val_accuracy, test_accuracy, duration_ms, version, parameters_sha256, ledger_digest,
         batches_by_device, executor_times, revision)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
  };
}

/** In the order of the columns. */
function epochCells(report: EpochReport): Cell[] {
  const { parametersSha256, ledgerDigest } = report;
  return [
    ...[report.epoch, report.batches, report.steps, report.retries],
    // SQLite has no NaN: it stores NULL.
    ...[report.loss, report.trainAccuracy, report.valAccuracy, report.testAccuracy].map(nanAsNull),
    ...[nanAsNull(report.durationMs), report.version, parametersSha256, ledgerDigest],
    toJson(sortedByKey(report.batchesByDevice), batchesByDevice, 'batches by device'),
    toJson(report.executorTimes, executorTimes, 'executor times'),
  ];
}

function nanAsNull(value: number): number | null {
  return Number.isNaN(value) ? null : value;
}

function sortedByKey(counts: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function reportOf(row: Row): EpochReport {
  const stored = epochRow(row, `epoch ${String(row['epoch'])} of job ${String(row['job_seq'])}`);
  return {
    epoch: stored.epoch,
    batches: stored.batches,
    steps: stored.steps,
    retries: stored.retries,
    loss: stored.loss,
    trainAccuracy: stored.train_accuracy,
    valAccuracy: stored.val_accuracy,
    testAccuracy: stored.test_accuracy,
    durationMs: stored.duration_ms,
    version: stored.version,
    parametersSha256: stored.parameters_sha256,
    ledgerDigest: stored.ledger_digest,
    batchesByDevice: stored.batches_by_device,
    executorTimes: stored.executor_times,
  };
}

function exitOf(row: Row): ExecutorExit {
  const { exit_code: exitCode, log_tail: logTail, ...rest } = exitRow(row, 'executor_exits');
  return { ...rest, exitCode, logTail };
}

function refused(why: string): GnndError {
  return new GnndError('INTERNAL', `the store refuses the record: ${why}`);
}
