import type { Clock } from '../base/clock.ts';
import { GnndError } from '../base/errors.ts';
import { withSpecs } from '../spec/spec-codec.ts';
import { integer, object, oneOf, text } from './codec.ts';
import type { Database, Row, Statement } from './database.ts';
import type { EventTable } from './event-table.ts';
import { living } from './job-status.ts';
import { identityOf, statusOf } from './job-table.ts';
import type { MetaTable } from './meta-table.ts';
import type { RequestTable } from './request-table.ts';
import { jobState } from './shapes.ts';
import type {
  CompactableEvents,
  DeleteHow,
  EventHorizon,
  Removal,
  RequestKey,
  RetentionStore,
  StoredDeletion,
} from './store-types.ts';

/** SQL of what goes: see RetentionStore. */

export interface RetentionTableParts {
  readonly database: Database;
  readonly meta: MetaTable;
  readonly clock: Clock;
  readonly events: EventTable;
  readonly requests: RequestTable;
}

const compactedKey = 'compacted_revision';
const ended = "('SUCCEEDED', 'FAILED', 'CANCELLED')";

/**
 * WAITING until the job has ended, FILES and ROWS while those are left, HIDDEN while only its
 * events and its row are.
 */
const removalRow = object({
  job_seq: integer,
  job_id: text,
  job_uid: text,
  keep_checkpoint: integer,
  stage: oneOf(['WAITING', 'FILES', 'ROWS', 'HIDDEN']),
});

const eventRow = object({ revision: integer, at_ms: integer, bytes: integer });

const endedRow = object({
  seq: integer,
  id: text,
  uid: text,
  state: jobState,
  end_at_ms: integer,
});

export function retentionTable(parts: RetentionTableParts): RetentionStore {
  const { database, meta } = parts;
  const sql = statements(database);
  let compacted = Number(meta.get(compactedKey) ?? '0');
  const removals = (statement: Statement, ...cells: readonly (string | number)[]) =>
    database.all(statement, ...cells).map(removalOf);
  return {
    deleteJob: (id, how, request) =>
      database.write('RETENTION', 'ALL', () => deleteJob(parts, sql, { id, ...how }, request)),
    deletionOf: (id, afterRevision) => deletionOf(parts, sql, id, afterRevision),
    endedRemovals: (limit) => removals(sql.endedRemovals, limit),
    removalsAt: (stage, limit) => removals(sql.removalsAt, stage, limit),
    filesRemoved: (done) =>
      database.write('RETENTION', null, () => {
        for (const { seq } of done) database.run(sql.setStage, 'ROWS', seq);
      }),
    removeRows: (removal, limit) =>
      database.write('RETENTION', null, () => removeRows(database, sql, removal, limit)),
    endedJobs(state, after, limit) {
      const { endAtMs, seq } = after ?? { endAtMs: -1, seq: 0 };
      const rows =
        state === null
          ? database.all(sql.endedJobs, endAtMs, seq, limit)
          : database.all(sql.endedIn, state, endAtMs, seq, limit);
      return rows.map((row) => {
        const { end_at_ms: at, ...job } = endedRow(row, `job ${String(row['id'])}`);
        return { ...job, endAtMs: at };
      });
    },
    countEnded(state) {
      const states = state === null ? (['SUCCEEDED', 'FAILED', 'CANCELLED'] as const) : [state];
      return states
        .map((one) => integer(database.get(sql.countIn, one)?.['n'], 'jobs'))
        .reduce((sum, n) => sum + n, 0);
    },
    compactedRevision: () => compacted,
    compactable: (after, horizon, limit) => compactable(parts, sql, { after, horizon, limit }),
    compactEvents(revision, limit) {
      const oldest = database.all(sql.oldest, compacted, limit);
      const going = oldest.map(eventOf).filter((event) => event.revision <= revision);
      const through = going.at(-1)?.revision;
      if (through === undefined) return 0;
      const removed = database.write('RETENTION', null, () => {
        meta.set(compactedKey, String(through));
        const events = database.run(sql.compact, through);
        for (const row of database.all(sql.forgotten, through)) {
          database.run(sql.forgetRemoval, integer(row['job_seq'], 'removals'));
          database.run(sql.forgetJob, integer(row['job_seq'], 'removals'));
        }
        return events;
      });
      compacted = through;
      return removed;
    },
    jobsUsing: (dataset, limit) =>
      database.all(sql.jobsUsing, dataset, limit).map((row) => text(row['id'], 'jobs.id')),
    deleteDataset: (id, request) =>
      database.write('RETENTION', 'ALL', () => {
        const resource = `datasets/${id}`;
        if (database.run(sql.deleteDataset, id) === 0) {
          throw new GnndError('DATASET_NOT_FOUND', `there is no dataset ${id}`, { resource });
        }
        if (request === undefined) return;
        parts.requests.remember(request, resource, parts.events.revision());
      }),
    countOperations: (endedBeforeMs, limit) =>
      integer(database.get(sql.countOperations, endedBeforeMs, limit)?.['n'], 'operations'),
    forgetOperations: (endedBeforeMs, limit) =>
      database.write('RETENTION', null, () =>
        database.run(sql.forgetOperations, endedBeforeMs, limit),
      ),
  };
}

type Statements = ReturnType<typeof statements>;

function statements(database: Database) {
  return { ...removalStatements(database), ...otherStatements(database) };
}

function removalStatements(database: Database) {
  const limited = (table: string, key: string) =>
    database.prepare(
      `DELETE FROM ${table} WHERE job_seq = ? AND (${key}) IN
         (SELECT ${key} FROM ${table} WHERE job_seq = ? LIMIT ?)`,
    );
  return {
    byId: database.prepare('SELECT * FROM jobs WHERE id = ?'),
    note: database.prepare(
      `INSERT INTO removals (job_seq, job_id, job_uid, keep_checkpoint, stage, revision)
       VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET keep_checkpoint = excluded.keep_checkpoint,
         stage = excluded.stage, revision = excluded.revision`,
    ),
    // The ids of jobs have no '#': nobody can ask for this one.
    hide: database.prepare(
      `UPDATE jobs SET id = '#' || seq, uid = '#' || seq, state = 'DELETED', end_at_ms = NULL,
         plan = NULL, result = NULL, revision = ? WHERE seq = ?`,
    ),
    endedRemovals: database.prepare(
      `SELECT removals.* FROM removals JOIN jobs ON seq = job_seq
       WHERE stage = 'WAITING' AND state IN ${ended} LIMIT ?`,
    ),
    removalsAt: database.prepare('SELECT * FROM removals WHERE stage = ? LIMIT ?'),
    setStage: database.prepare('UPDATE removals SET stage = ? WHERE job_seq = ?'),
    deletion: database.prepare(
      `SELECT removals.revision AS deleted_at, removals.*, jobs.* FROM removals
       JOIN jobs ON seq = job_seq
       WHERE job_id = ? AND removals.revision > ? ORDER BY removals.revision LIMIT 1`,
    ),
    // Tables in the order in which rows of one may be deleted before those of the next.
    rows: [
      limited('executor_exits', 'seq'),
      limited('executor_restarts', 'seq'),
      limited('epochs', 'attempt, epoch'),
      limited('scales', 'epoch'),
      limited('attempts', 'number'),
    ],
    forgetTally: database.prepare('DELETE FROM meta WHERE key = ?'),
  };
}

function otherStatements(database: Database) {
  return {
    endedJobs: database.prepare(
      `SELECT seq, id, uid, state, end_at_ms FROM jobs
       WHERE (end_at_ms, seq) > (?, ?) ORDER BY end_at_ms, seq LIMIT ?`,
    ),
    endedIn: database.prepare(
      `SELECT seq, id, uid, state, end_at_ms FROM jobs
       WHERE state = ? AND (end_at_ms, seq) > (?, ?) ORDER BY end_at_ms, seq LIMIT ?`,
    ),
    countIn: database.prepare('SELECT count(*) AS n FROM jobs WHERE state = ?'),
    oldest: database.prepare(
      `SELECT revision, at_ms, length(status) AS bytes FROM events
       WHERE revision > ? AND revision < (SELECT max(revision) FROM events)
       ORDER BY revision LIMIT ?`,
    ),
    compact: database.prepare('DELETE FROM events WHERE revision <= ?'),
    forgotten: database.prepare(
      "SELECT job_seq FROM removals WHERE stage = 'HIDDEN' AND revision <= ?",
    ),
    forgetRemoval: database.prepare('DELETE FROM removals WHERE job_seq = ?'),
    forgetJob: database.prepare('DELETE FROM jobs WHERE seq = ?'),
    jobsUsing: database.prepare(
      `SELECT id FROM jobs WHERE state IN ${living}
       AND dataset = ? ORDER BY seq LIMIT ?`,
    ),
    deleteDataset: database.prepare('DELETE FROM datasets WHERE id = ?'),
    countOperations: database.prepare(
      `SELECT count(*) AS n FROM
         (SELECT 1 FROM operations WHERE done = 1 AND end_at_ms < ? LIMIT ?)`,
    ),
    forgetOperations: database.prepare(
      `DELETE FROM operations WHERE id IN
         (SELECT id FROM operations WHERE done = 1 AND end_at_ms < ? LIMIT ?)`,
    ),
  };
}

/** Deletes a job within a transaction. */
function deleteJob(
  { database, clock, events, requests }: RetentionTableParts,
  sql: Statements,
  { id, force, keepCheckpoint }: DeleteHow & { readonly id: string },
  request: RequestKey | undefined,
): number | null {
  const resource = `jobs/${id}`;
  const row = database.get(sql.byId, id);
  if (row === null) throw new GnndError('JOB_NOT_FOUND', `there is no job ${id}`, { resource });
  const status = statusOf(row);
  const isLive = !['SUCCEEDED', 'FAILED', 'CANCELLED'].includes(status.state);
  if (isLive && !force) {
    const message = `job ${id} is ${status.state}: cancel it first, or delete it by force`;
    throw new GnndError('JOB_NOT_TERMINAL', message, { resource });
  }
  const { seq, record } = identityOf(row);
  const revision = isLive ? null : events.append(seq, clock.wallMs(), status);
  const stage = isLive ? 'WAITING' : 'FILES';
  database.run(sql.note, seq, id, record.uid, keepCheckpoint ? 1 : 0, stage, revision);
  if (revision !== null) database.run(sql.hide, revision, seq);
  if (request !== undefined) requests.remember(request, resource, events.revision());
  return revision;
}

function deletionOf(
  { database, events }: RetentionTableParts,
  sql: Statements,
  id: string,
  afterRevision: number,
): StoredDeletion | null {
  const row = database.get(sql.deletion, id, afterRevision);
  if (row === null) return null;
  const { seq, record } = identityOf(row);
  const revision = integer(row['deleted_at'], `removal of job ${id}`);
  const event = events.after(seq, revision - 1, 1)[0];
  if (event === undefined) return null;
  const { job_id: was, job_uid: uid, keep_checkpoint: kept } = removalRow(row, `removal of ${id}`);
  const shown = { ...record, id: was, uid, ...event.status, revision, attempts: [] };
  const job = withSpecs(shown, record.encoded);
  return { revision, atMs: event.atMs, job, keepCheckpoint: kept !== 0 };
}

function removeRows(
  database: Database,
  sql: Statements,
  { seq, uid }: Removal,
  limit: number,
): number {
  let removed = 0;
  for (const statement of sql.rows) {
    removed += database.run(statement, seq, seq, limit - removed);
    if (removed >= limit) return removed;
  }
  database.run(sql.forgetTally, `user:tally:${uid}`);
  database.run(sql.setStage, 'HIDDEN', seq);
  return removed;
}

function compactable(
  { database, events }: RetentionTableParts,
  sql: Statements,
  asked: { readonly after: number; readonly horizon: EventHorizon; readonly limit: number },
): CompactableEvents {
  const { after, horizon, limit } = asked;
  const newest = events.revision();
  const oldest = database.all(sql.oldest, after, limit).map(eventOf);
  const isKept = ({ revision, at_ms: atMs }: ReturnType<typeof eventOf>) =>
    atMs >= horizon.beforeMs && revision > newest - horizon.keep;
  const firstKept = oldest.findIndex(isKept);
  const going = firstKept < 0 ? oldest : oldest.slice(0, firstKept);
  return {
    through: going.at(-1)?.revision ?? after,
    events: going.length,
    bytes: going.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}

function eventOf(row: Row) {
  return eventRow(row, `event ${String(row['revision'])}`);
}

function removalOf(row: Row): Removal {
  const stored = removalRow(row, `removal ${String(row['job_seq'])}`);
  return {
    seq: stored.job_seq,
    id: stored.job_id,
    uid: stored.job_uid,
    keepCheckpoint: stored.keep_checkpoint !== 0,
  };
}
