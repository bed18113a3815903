import type { JobRecord } from '../records/job-record.ts';
import { type Decoder, fromJson, integer, nullable, object, text, toJson } from './codec.ts';
import type { Database } from './database.ts';
import type { MetaTable } from './meta-table.ts';
import { intent, jobPlan, jobResult, jobState, phase, reason } from './shapes.ts';

/** Fields of a job that change from event to event. */
export type JobStatus = Pick<
  JobRecord,
  | 'intent'
  | 'state'
  | 'phase'
  | 'reason'
  | 'message'
  | 'startAtMs'
  | 'endAtMs'
  | 'nextAttemptAtMs'
  | 'plan'
  | 'result'
>;

export const jobStatus: Decoder<JobStatus> = object({
  intent,
  state: jobState,
  phase: nullable(phase),
  reason,
  message: text,
  startAtMs: nullable(integer),
  endAtMs: nullable(integer),
  nextAttemptAtMs: nullable(integer),
  plan: nullable(jobPlan),
  result: nullable(jobResult),
});

export interface StatusEvent {
  readonly revision: number;
  readonly atMs: number;
  readonly status: JobStatus;
}

export interface EventTable {
  /** Newest revision; 0 before the first. */
  revision(): number;
  /**
   * Only inside a transaction. Takes the next `count` revisions, for what is no event but has its
   * order; returns the first of them.
   */
  advance(count: number): number;
  /** Only inside a transaction. Returns the new revision. */
  append(jobSeq: number, atMs: number, status: JobStatus): number;
  after(jobSeq: number, revision: number, limit: number): readonly StatusEvent[];
}

const revisionKey = 'revision';

export function eventTable(database: Database, meta: MetaTable): EventTable {
  const insert = database.prepare('INSERT INTO events VALUES (?, ?, ?, ?)');
  const select = database.prepare(
    `SELECT revision, at_ms, status FROM events
     WHERE job_seq = ? AND revision > ? ORDER BY revision LIMIT ?`,
  );
  // Kept as a number of its own: it goes on when the newest events are gone.
  const revision = () => integer(Number(meta.get(revisionKey)), 'meta.revision');
  const advance = (count: number) => {
    const newest = revision();
    meta.set(revisionKey, String(newest + count));
    return newest + 1;
  };
  return {
    revision,
    advance,
    append(jobSeq, atMs, status) {
      const next = advance(1);
      database.run(insert, next, jobSeq, atMs, toJson(status, jobStatus, 'a job status'));
      return next;
    },
    after(jobSeq, afterRevision, limit) {
      return database.all(select, jobSeq, afterRevision, limit).map((row) => {
        const at = `event ${String(row['revision'])}`;
        return {
          revision: integer(row['revision'], at),
          atMs: integer(row['at_ms'], at),
          status: fromJson(jobStatus)(row['status'], at),
        };
      });
    },
  };
}
