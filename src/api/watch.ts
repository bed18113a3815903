import type { Clock } from '../base/clock.ts';
import { GnndError } from '../base/errors.ts';
import type { Jobs } from '../jobs/jobs.ts';
import {
  type JobProgress,
  type JobRecord,
  type JobState,
  terminalStates,
} from '../spec/job-record.ts';
import { createBell, pause, type Sleep } from './wait.ts';

/** One event of a watch, before it becomes a message. */
export type WatchEvent =
  | {
      readonly kind: 'SNAPSHOT' | 'CHANGED' | 'PROGRESS' | 'DELETED';
      readonly revision: number;
      readonly job: JobRecord;
      readonly progress: JobProgress | null;
    }
  | { readonly kind: 'BOOKMARK'; readonly revision: number };

export interface WatchQuery {
  readonly id: string;
  /** Transitions after this one; 0 asks for the current state first. */
  readonly startRevision: number;
  readonly untilTerminal: boolean;
}

export interface WatchDeps {
  readonly jobs: Jobs;
  readonly clock: Clock;
  readonly sleep: Sleep;
}

/** Transitions read at once: what a slow reader can hold of the store's past. */
const eventsPageLimit = 100;
const progressPeriodMs = 1000;
const bookmarkPeriodMs = 10_000;

/**
 * A job's transitions from a revision on, with progress between them. The watch is a cursor and no
 * queue: the next event is looked up when the reader asks for it, so a reader that stalls costs
 * nothing, misses no transition, and finds only the latest progress.
 *
 * Ends after the job's deletion, and after the terminal transition when that was asked for; throws
 * the signal's reason once it aborts, after a last bookmark when the server stops. Throws
 * JOB_NOT_FOUND, REVISION_IN_FUTURE, REVISION_COMPACTED.
 */
export async function* watchJob(
  deps: WatchDeps,
  query: WatchQuery,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent, void, void> {
  const { jobs, clock, sleep } = deps;
  const bell = createBell();
  const unsubscribe = jobs.onChange(bell.ring);
  try {
    let cursor = startCursor(jobs, query);
    const pacer = createPacer(clock.monotonicMs());
    if (query.startRevision === 0) {
      cursor = jobs.revision();
      const progress = jobs.progress(query.id);
      pacer.sent('SNAPSHOT', clock.monotonicMs(), progress);
      yield { kind: 'SNAPSHOT', revision: cursor, job: jobs.get(query.id), progress };
    }
    for (;;) {
      const rung = bell.next();
      const newest = jobs.revision();
      requireKept(jobs, query.id, cursor);
      const deletion = newest > cursor ? jobs.deletion(query.id, cursor) : null;
      if (deletion !== null) {
        yield { kind: 'DELETED', revision: deletion.revision, job: deletion.job, progress: null };
        return;
      }
      const page = newest > cursor ? jobs.events(query.id, cursor, eventsPageLimit) : [];
      for (const event of page) {
        cursor = event.revision;
        const progress = isLatest(jobs, query.id, event.revision) ? jobs.progress(query.id) : null;
        pacer.sent('CHANGED', clock.monotonicMs(), progress);
        yield { kind: 'CHANGED', revision: cursor, job: event.job, progress };
        if (query.untilTerminal && isTerminal(event.job.state)) return;
      }
      if (page.length > 0) continue;
      // Nothing of this job lies between the cursor and the newest revision, so skip to that.
      cursor = Math.max(cursor, newest);
      const job = jobs.get(query.id);
      if (query.untilTerminal && isTerminal(job.state)) return;
      if (signal.aborted) {
        yield { kind: 'BOOKMARK', revision: cursor };
        throw signal.reason;
      }
      const nowMs = clock.monotonicMs();
      const progress = jobs.progress(query.id);
      const due = pacer.due(nowMs, progress);
      if (due === null) {
        await pause(rung, pacer.delayMs(nowMs, progress), sleep, signal);
        continue;
      }
      pacer.sent(due, nowMs, progress);
      if (due === 'BOOKMARK') yield { kind: due, revision: cursor };
      else yield { kind: due, revision: cursor, job, progress };
    }
  } finally {
    unsubscribe();
  }
}

function startCursor(jobs: Jobs, query: WatchQuery): number {
  const current = jobs.revision();
  const { id, startRevision } = query;
  // One who comes back learns that the job was deleted meanwhile.
  const isDeleted = startRevision > 0 && jobs.deletion(id, startRevision) !== null;
  if (!isDeleted) jobs.get(id);
  if (startRevision > 0) requireKept(jobs, id, startRevision);
  if (query.startRevision <= current) return query.startRevision;
  throw new GnndError(
    'REVISION_IN_FUTURE',
    `start_revision ${query.startRevision} is newer than the newest revision, ${current}`,
    { resource: `jobs/${query.id}`, metadata: { currentRevision: String(current) } },
  );
}

/** Throws REVISION_COMPACTED when transitions after `cursor` may be gone. */
function requireKept(jobs: Jobs, id: string, cursor: number): void {
  const compacted = jobs.compactedRevision();
  if (cursor >= compacted) return;
  throw new GnndError(
    'REVISION_COMPACTED',
    `the transitions after revision ${cursor} are not kept any longer, those after ${compacted} ` +
      'are; start again at 0, with the current state',
    {
      resource: `jobs/${id}`,
      metadata: {
        compactRevision: String(compacted),
        currentRevision: String(jobs.revision()),
      },
    },
  );
}

function isTerminal(state: JobState): boolean {
  return terminalStates.has(state);
}

/** Progress belongs to what the job is now, not to what it was at an older transition. */
function isLatest(jobs: Jobs, id: string, revision: number): boolean {
  return jobs.get(id).revision === revision;
}

/** Decides what is due between transitions: new progress once a second, else a bookmark. */
interface Pacer {
  sent(kind: WatchEvent['kind'], nowMs: number, progress: JobProgress | null): void;
  due(nowMs: number, progress: JobProgress | null): 'PROGRESS' | 'BOOKMARK' | null;
  /** Until something is due, if nothing changes. */
  delayMs(nowMs: number, progress: JobProgress | null): number;
}

function createPacer(startMs: number): Pacer {
  let sentAtMs = startMs;
  let progressAtMs = Number.NEGATIVE_INFINITY;
  let progressText = '';
  const isNew = (progress: JobProgress | null) =>
    progress !== null && JSON.stringify(progress) !== progressText;
  return {
    sent(kind, nowMs, progress) {
      sentAtMs = nowMs;
      if (kind === 'BOOKMARK' || progress === null) return;
      progressAtMs = nowMs;
      progressText = JSON.stringify(progress);
    },
    due(nowMs, progress) {
      if (nowMs - progressAtMs >= progressPeriodMs && isNew(progress)) return 'PROGRESS';
      return nowMs - sentAtMs >= bookmarkPeriodMs ? 'BOOKMARK' : null;
    },
    delayMs(nowMs, progress) {
      const bookmarkAtMs = sentAtMs + bookmarkPeriodMs;
      const dueAtMs = isNew(progress)
        ? Math.min(progressAtMs + progressPeriodMs, bookmarkAtMs)
        : bookmarkAtMs;
      return Math.max(0, dueAtMs - nowMs);
    },
  };
}
