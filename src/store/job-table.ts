import type { Clock } from '../base/clock.ts';
import { GnndError } from '../base/errors.ts';
import type { JobRecord, JobState } from '../records/job-record.ts';
import { encodeSpec, withSpecs } from '../spec/spec-codec.ts';
import { type AttemptTable, attemptTable } from './attempt-table.ts';
import { blob, fromJson, integer, nullable, object, text, toJson } from './codec.ts';
import { type Cell, type Database, isUniqueViolation, type Row } from './database.ts';
import { type EpochTable, epochTable } from './epoch-table.ts';
import { type EventTable, type JobStatus, jobStatus } from './event-table.ts';
import { changedIntent, changedStatus, living, reopenedStatus } from './job-status.ts';
import type { RequestTable } from './request-table.ts';
import { jobChoices, jobPlan, jobResult, jobState } from './shapes.ts';
import type { JobStore, NewJob, RequestKey } from './store-types.ts';

export interface JobTableParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly events: EventTable;
  readonly requests: RequestTable;
  readonly assertTransition: (from: JobState, to: JobState) => void;
}

/** Fields of a job that never change, with the number by which other tables know it. */
export interface Identity {
  readonly seq: number;
  readonly record: Pick<
    JobRecord,
    'id' | 'uid' | 'encoded' | 'datasetDigest' | 'choices' | 'createdBy' | 'createAtMs'
  >;
}

/** A revision above all others, which shows the job as it is now. */
const now = Number.MAX_SAFE_INTEGER;

const identityRow = object({
  seq: integer,
  id: text,
  uid: text,
  spec: blob,
  effective_spec: blob,
  dataset_digest: text,
  choices: text,
  created_by: text,
  create_at_ms: integer,
});

const freshStatus: JobStatus = {
  intent: 'RUN',
  state: 'PENDING',
  phase: null,
  reason: 'NONE',
  message: '',
  startAtMs: null,
  endAtMs: null,
  nextAttemptAtMs: null,
  plan: null,
  result: null,
};

export function jobTable(parts: JobTableParts): JobStore {
  const { database, clock, events, requests } = parts;
  const sql = statements(database);
  const attempts = attemptTable(database);
  const epochs = epochTable(database, attempts);

  const recordOf = (row: Row): JobRecord =>
    assembled(attempts, identityOf(row), statusOf(row), revisionOf(row), now);

  const needRow = (id: string, statement = sql.byId): Row => {
    const row = database.get(statement, id);
    if (row !== null) return row;
    throw new GnndError('JOB_NOT_FOUND', `there is no job ${id}`, { resource: `jobs/${id}` });
  };

  /** The number alone: what is written many times does not decode a spec each time. */
  const needSeq = (id: string): number => integer(needRow(id, sql.seqById)['seq'], 'jobs.seq');

  const remember = (request: RequestKey | undefined, job: JobRecord): JobRecord => {
    if (request !== undefined) requests.remember(request, `jobs/${job.id}`, events.revision());
    return job;
  };

  /** Stores the status and its event; returns the job at the new revision. */
  const advance = (row: Row, status: JobStatus): JobRecord => {
    const identity = identityOf(row);
    const revision = events.append(identity.seq, clock.wallMs(), status);
    database.run(sql.update, ...statusCells(status), revision, identity.seq);
    return assembled(attempts, identity, status, revision, now);
  };

  /** A status that stays the very same is no event. */
  const change = (
    op: 'SET_INTENT' | 'TRANSITION',
    id: string,
    next: (status: JobStatus, row: Row) => JobStatus,
    request?: RequestKey,
  ): JobRecord =>
    database.write(op, { job: id }, () => {
      const row = needRow(id);
      const status = statusOf(row);
      const after = next(status, row);
      return remember(request, after === status ? recordOf(row) : advance(row, after));
    });

  return {
    insertJob: (job, request) =>
      database.write('INSERT_JOB', { job: job.id }, () => {
        insertRow(database, sql, job, clock.wallMs());
        return remember(request, advance(needRow(job.id), freshStatus));
      }),
    getJob: (id) => optional(database.get(sql.byId, id), recordOf),
    getJobByUid: (uid) => optional(database.get(sql.byUid, uid), recordOf),
    listJobs({ limit, after, states }) {
      const before = [after?.createAtMs ?? Number.MAX_SAFE_INTEGER, after?.uid ?? ''];
      if (states.length === 0) return database.all(sql.list, ...before, limit).map(recordOf);
      // A page of each state by its index, and of those the newest: no other job is read.
      return [...new Set(states)]
        .flatMap((state) => database.all(sql.listState, state, ...before, limit))
        .sort((left, right) => newestFirst(left, right))
        .slice(0, limit)
        .map(recordOf);
    },
    nonTerminalJobs: () => database.all(sql.live).map(recordOf),
    countJobs: () => counted(database.all(sql.count)),
    setIntent: (id, wanted, request) =>
      change('SET_INTENT', id, (status) => changedIntent(status, wanted), request),
    reopenJob: (id, message, request) =>
      change(
        'SET_INTENT',
        id,
        (status, row) => {
          requireKept(database, sql, row);
          return reopenedStatus(status, message);
        },
        request,
      ),
    transition: (id, wanted) =>
      change('TRANSITION', id, (status) =>
        changedStatus(status, wanted, clock.wallMs(), parts.assertTransition),
      ),
    ...attemptMethods({ database, clock, events, attempts, epochs, needSeq }),
    events(id, afterRevision, limit) {
      const found = events.after(needSeq(id), afterRevision, limit);
      if (found.length === 0) return [];
      const identity = identityOf(needRow(id));
      return found.map(({ revision, atMs, status }) => ({
        revision,
        atMs,
        job: assembled(attempts, identity, status, revision, revision),
      }));
    },
  };
}

interface AttemptParts extends Pick<JobTableParts, 'database' | 'clock' | 'events'> {
  readonly attempts: AttemptTable;
  readonly epochs: EpochTable;
  readonly needSeq: (id: string) => number;
}

/** Methods that write and read attempts and their epochs. */
function attemptMethods({ database, clock, events, attempts, epochs, needSeq }: AttemptParts) {
  /** Something about an attempt, in a transaction of its own, which is news with the next event. */
  const inAttempt = <T>(
    op: 'ATTEMPT' | 'EPOCH',
    id: string,
    work: (jobSeq: number, revision: number) => T,
  ): T => database.write(op, null, () => work(needSeq(id), events.revision()));
  return {
    openAttempt: (id) =>
      inAttempt('ATTEMPT', id, (seq, revision) => attempts.open(seq, clock.wallMs(), revision)),
    closeAttempt: (id, attempt, end) =>
      inAttempt('ATTEMPT', id, (seq, revision) =>
        attempts.close(seq, attempt, end, clock.wallMs(), revision),
      ),
    addExecutorExit: (id, attempt, exit) =>
      inAttempt('ATTEMPT', id, (seq, revision) => attempts.addExit(seq, attempt, exit, revision)),
    addExecutorRestart: (id, attempt) =>
      inAttempt('ATTEMPT', id, (seq, revision) =>
        attempts.addRestart(seq, attempt, clock.wallMs(), revision),
      ),
    resumeAttempt: (id, attempt, point, taken) =>
      inAttempt('ATTEMPT', id, (seq, revision) => {
        attempts.resume(seq, attempt, point, revision);
        epochs.takeOver(seq, attempt, taken);
      }),
    epochsBefore: (id, attempt) => epochs.countBefore(needSeq(id), attempt),
    scalesOf: (id) => epochs.scales(needSeq(id)),
    recordEpochs: (id, attempt, reports) =>
      inAttempt('EPOCH', id, (seq) => epochs.record(seq, attempt, reports, events.advance)),
    epochs: (id, attempt, first, limit) => epochs.list(needSeq(id), attempt, first, limit),
    epochCount: (id, attempt) => epochs.count(needSeq(id), attempt),
    epochPlaceAfter: (id, revision) => epochs.placeAfter(needSeq(id), revision),
  } satisfies Partial<JobStore>;
}

function statements(database: Database) {
  return {
    byId: database.prepare('SELECT * FROM jobs WHERE id = ?'),
    seqById: database.prepare('SELECT seq FROM jobs WHERE id = ?'),
    byUid: database.prepare('SELECT * FROM jobs WHERE uid = ?'),
    insert: database.prepare(
      `INSERT INTO jobs (id, uid, spec, effective_spec, dataset, dataset_digest, choices,
         created_by,
         create_at_ms, intent, state, reason, message, revision)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'RUN', 'PENDING', 'NONE', '', 0)`,
    ),
    update: database.prepare(
      `UPDATE jobs SET intent = ?, state = ?, phase = ?, reason = ?, message = ?,
         start_at_ms = ?, end_at_ms = ?, next_attempt_at_ms = ?, plan = ?, result = ?,
         revision = ?
       WHERE seq = ?`,
    ),
    list: database.prepare(
      `SELECT * FROM jobs WHERE (create_at_ms, uid) < (?, ?) AND state <> 'DELETED'
       ORDER BY create_at_ms DESC, uid DESC LIMIT ?`,
    ),
    listState: database.prepare(
      `SELECT * FROM jobs WHERE state = ? AND (create_at_ms, uid) < (?, ?)
       ORDER BY create_at_ms DESC, uid DESC LIMIT ?`,
    ),
    live: database.prepare(
      `SELECT * FROM jobs WHERE state IN ${living}
       ORDER BY create_at_ms, uid`,
    ),
    removal: database.prepare('SELECT 1 FROM removals WHERE job_seq = ?'),
    count: database.prepare(
      "SELECT state, count(*) AS n FROM jobs WHERE state <> 'DELETED' GROUP BY state",
    ),
  };
}

/** Throws JOB_NOT_FOUND when the job is noted for deletion. */
function requireKept(database: Database, sql: ReturnType<typeof statements>, row: Row): void {
  const { seq, record } = identityOf(row);
  if (database.get(sql.removal, seq) === null) return;
  const details = { resource: `jobs/${record.id}` };
  throw new GnndError('JOB_NOT_FOUND', `job ${record.id} is being deleted`, details);
}

function insertRow(
  database: Database,
  sql: ReturnType<typeof statements>,
  job: NewJob,
  nowMs: number,
): void {
  const { id, uid, spec, effectiveSpec, datasetDigest, choices, createdBy } = job;
  const specs = [encodeSpec(spec), encodeSpec(effectiveSpec)];
  const from = [
    effectiveSpec.dataset,
    datasetDigest,
    toJson(choices, jobChoices, 'choices'),
    createdBy,
  ];
  try {
    database.run(sql.insert, id, uid, ...specs, ...from, nowMs);
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw new GnndError(
      'JOB_EXISTS',
      `there is a job ${job.id} already; take another id, or gnnctl job delete ${job.id}`,
      {
        resource: `jobs/${job.id}`,
      },
    );
  }
}

function assembled(
  attempts: AttemptTable,
  { seq, record }: Identity,
  status: JobStatus,
  revision: number,
  shownAt: number,
): JobRecord {
  const shown = { ...record, ...status, revision, attempts: attempts.list(seq, shownAt) };
  return withSpecs(shown, record.encoded);
}

export function identityOf(row: Row): Identity {
  const at = `job ${String(row['id'])}`;
  const stored = identityRow(row, at);
  return {
    seq: stored.seq,
    record: {
      id: stored.id,
      uid: stored.uid,
      encoded: { spec: stored.spec, effectiveSpec: stored.effective_spec },
      datasetDigest: stored.dataset_digest,
      choices: jobChoices(parsed(stored.choices, at), at),
      createdBy: stored.created_by,
      createAtMs: stored.create_at_ms,
    },
  };
}

export function statusOf(row: Row): JobStatus {
  const at = `job ${String(row['id'])}`;
  return jobStatus(
    {
      intent: row['intent'],
      state: row['state'],
      phase: row['phase'],
      reason: row['reason'],
      message: row['message'],
      startAtMs: row['start_at_ms'],
      endAtMs: row['end_at_ms'],
      nextAttemptAtMs: row['next_attempt_at_ms'],
      plan: parsed(row['plan'], at),
      result: parsed(row['result'], at),
    },
    at,
  );
}

const parsed = nullable(fromJson((value) => value));

/** Cells of a job's status, in the order of the columns. */
function statusCells(status: JobStatus): Cell[] {
  const { plan, result } = status;
  return [
    ...[status.intent, status.state, status.phase, status.reason, status.message],
    ...[status.startAtMs, status.endAtMs, status.nextAttemptAtMs],
    plan === null ? null : toJson(plan, jobPlan, 'a plan'),
    result === null ? null : toJson(result, jobResult, 'a result'),
  ];
}

function newestFirst(left: Row, right: Row): number {
  const age = Number(right['create_at_ms']) - Number(left['create_at_ms']);
  if (age !== 0) return age;
  return String(left['uid']) < String(right['uid']) ? 1 : -1;
}

function revisionOf(row: Row): number {
  return integer(row['revision'], `job ${String(row['id'])}`);
}

function counted(rows: readonly Row[]): Readonly<Record<JobState, number>> {
  const counts = {
    PENDING: 0,
    PREPARING: 0,
    RUNNING: 0,
    CANCELLING: 0,
    SUCCEEDED: 0,
    FAILED: 0,
    CANCELLED: 0,
    SUSPENDING: 0,
    SUSPENDED: 0,
  };
  for (const row of rows) {
    counts[jobState(row['state'], 'jobs.state')] = integer(row['n'], 'jobs');
  }
  return counts;
}

function optional<T>(row: Row | null, decode: (row: Row) => T): T | null {
  return row === null ? null : decode(row);
}
