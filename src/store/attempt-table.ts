import { GnndError } from '../base/errors.ts';
import type { Attempt, ExecutorExit, ResumePoint } from '../records/job-record.ts';
import { fromJson, integer, nullable, object, text, toJson } from './codec.ts';
import type { Cell, Database, Row } from './database.ts';
import { reason, resumePoint, role } from './shapes.ts';
import type { AttemptEnd } from './store-types.ts';

/** Attempts of jobs: their executors' exits and restarts. */
export interface AttemptTable {
  /** The newest attempts, oldest first, as an event of `revision` shows them. */
  list(jobSeq: number, revision: number): readonly Attempt[];
  /** Number of the newest; 0 before the first. */
  newest(jobSeq: number): number;
  /** Throws INTERNAL unless the attempt is there and has not ended. */
  assertOpen(jobSeq: number, number: number): void;

  // Only inside a transaction; `revision` is the store's at that moment.
  open(jobSeq: number, atMs: number, revision: number): Attempt;
  close(jobSeq: number, number: number, end: AttemptEnd, atMs: number, revision: number): void;
  resume(jobSeq: number, number: number, point: ResumePoint, revision: number): void;
  addExit(jobSeq: number, number: number, exit: ExecutorExit, revision: number): void;
  addRestart(jobSeq: number, number: number, atMs: number, revision: number): void;
}

const attemptsShown = 20;
/** Number of the newest exits of each attempt that are shown. */
const exitsShown = 20;

const attemptRow = object({
  number: integer,
  start_at_ms: integer,
  end_at_ms: nullable(integer),
  end_reason: reason,
  message: text,
  close_revision: nullable(integer),
  resumed: nullable(fromJson(resumePoint)),
  resume_revision: nullable(integer),
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

export function attemptTable(database: Database): AttemptTable {
  const sql = statements(database);

  const restartsOf = (jobSeq: number, number: number, revision: number): number =>
    integer(database.get(sql.countRestarts, jobSeq, number, revision)?.['n'], 'executor_restarts');

  const attemptOf = (jobSeq: number, row: Row, revision: number): Attempt => {
    const stored = attemptRow(row, `attempts of job ${jobSeq}`);
    const hasEnded = stored.close_revision !== null && stored.close_revision < revision;
    const hasResumed = stored.resume_revision !== null && stored.resume_revision < revision;
    return {
      number: stored.number,
      startAtMs: stored.start_at_ms,
      endAtMs: hasEnded ? stored.end_at_ms : null,
      endReason: hasEnded ? stored.end_reason : 'NONE',
      message: hasEnded ? stored.message : '',
      executorRestarts: restartsOf(jobSeq, stored.number, revision),
      exits: database
        .all(sql.selectExits, jobSeq, stored.number, revision, exitsShown)
        .map(exitOf)
        .reverse(),
      resumed: hasResumed ? stored.resumed : null,
    };
  };

  const assertOpen = (jobSeq: number, number: number): void => {
    const row = database.get(sql.selectOne, jobSeq, number);
    if (row === null) throw refused(`there is no attempt ${number}`);
    if (row['close_revision'] !== null) throw refused(`attempt ${number} has ended`);
  };

  return {
    assertOpen,
    newest: (jobSeq) =>
      integer(database.get(sql.newestNumber, jobSeq)?.['n'] ?? 0, 'attempts.number'),
    list(jobSeq, revision) {
      const rows = database.all(sql.selectNewest, jobSeq, revision, attemptsShown);
      return [...rows].reverse().map((row) => attemptOf(jobSeq, row, revision));
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
        resumed: null,
      };
    },
    close(jobSeq, number, end, atMs, revision) {
      assertOpen(jobSeq, number);
      database.run(sql.close, atMs, end.reason, end.message, revision, jobSeq, number);
    },
    resume(jobSeq, number, point, revision) {
      assertOpen(jobSeq, number);
      database.run(sql.resume, toJson(point, resumePoint, 'a resume'), revision, jobSeq, number);
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
  };
}

function statements(database: Database) {
  return {
    selectNewest: database.prepare(
      `SELECT * FROM attempts WHERE job_seq = ? AND open_revision < ?
       ORDER BY number DESC LIMIT ?`,
    ),
    newestNumber: database.prepare('SELECT max(number) AS n FROM attempts WHERE job_seq = ?'),
    selectOne: database.prepare('SELECT * FROM attempts WHERE job_seq = ? AND number = ?'),
    insert: database.prepare(
      `INSERT INTO attempts (job_seq, number, start_at_ms, end_reason, message, open_revision)
       VALUES (?, ?, ?, 'NONE', '', ?)`,
    ),
    resume: database.prepare(
      'UPDATE attempts SET resumed = ?, resume_revision = ? WHERE job_seq = ? AND number = ?',
    ),
    close: database.prepare(
      `UPDATE attempts SET end_at_ms = ?, end_reason = ?, message = ?, close_revision = ?
       WHERE job_seq = ? AND number = ?`,
    ),
    selectExits: database.prepare(
      `SELECT * FROM executor_exits
       WHERE job_seq = ? AND attempt = ? AND revision < ? ORDER BY seq DESC LIMIT ?`,
    ),
    insertExit: database.prepare(
      'INSERT INTO executor_exits VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    ),
    countRestarts: database.prepare(
      `SELECT count(*) AS n FROM executor_restarts
       WHERE job_seq = ? AND attempt = ? AND revision < ?`,
    ),
    insertRestart: database.prepare('INSERT INTO executor_restarts VALUES (NULL, ?, ?, ?, ?)'),
  };
}

function exitOf(row: Row): ExecutorExit {
  const { exit_code: exitCode, log_tail: logTail, ...rest } = exitRow(row, 'executor_exits');
  return { ...rest, exitCode, logTail };
}

export function refused(why: string): GnndError {
  return new GnndError('INTERNAL', `the store refuses the record: ${why}`);
}
