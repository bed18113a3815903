import type { Clock } from '../base/clock.ts';
import { GnndError } from '../base/errors.ts';
import type { JobEvent, Jobs } from '../jobs/jobs.ts';
import { type JobRecord, type JobState, terminalStates } from '../records/job-record.ts';
import { type EpochSlice, epochsPerPage, type WatchedJob } from './epoch-pages.ts';
import { createBell, pause, type Sleep } from './wait.ts';
import type { EpochsShown, WatchEvent } from './watch-event.ts';
import type { CurrentJob, WatchMessages } from './watch-messages.ts';

export interface WatchQuery {
  readonly id: string;
  /** Transitions and epochs after this one; 0 asks for the current state first. */
  readonly startRevision: number;
  readonly untilTerminal: boolean;
}

export interface WatchDeps {
  readonly jobs: Jobs;
  readonly messages: Pick<WatchMessages, 'current' | 'epochs'>;
  readonly clock: Clock;
  readonly sleep: Sleep;
}

/** Transitions read at once: what a slow reader can hold of the store's past. */
const eventsPageLimit = 100;
/** Progress, and epochs that do not fill a page, are told so often; some air for timers. */
const progressPeriodMs = 1000;
const earlyMs = 100;
const bookmarkPeriodMs = 10_000;

/**
 * A job's transitions and epochs from a revision on, in the order of their revisions, with progress
 * between them. The watch is a cursor and no queue: the next event is looked up when the reader
 * asks for it, so a reader that stalls costs nothing, misses no transition and no epoch, and finds
 * only the latest progress. Transitions wake it; for the rest it looks once a second while the job
 * runs.
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
  const { jobs } = deps;
  const bell = createBell();
  const unsubscribe = jobs.onChange(query.id, bell.ring);
  try {
    const startRevision = startCursor(jobs, query);
    const gone = startRevision === 0 ? null : deletionAfter(jobs, query.id, startRevision);
    if (gone !== null) {
      yield gone;
      return;
    }
    const watch = new Watch(deps, query);
    if (startRevision === 0) yield watch.snapshot();
    for (;;) {
      const rung = bell.next();
      const event = watch.next();
      if (event !== null) {
        yield event;
        if (watch.isOver) return;
        continue;
      }
      if (watch.isOver) return;
      if (signal.aborted) {
        yield watch.bookmark();
        throw signal.reason;
      }
      const due = watch.due();
      if (due === null) await pause(rung, watch.delayMs(), deps.sleep, signal);
      else yield due;
    }
  } finally {
    unsubscribe();
  }
}

/** Where a watch stands, and what comes next. */
class Watch {
  readonly #deps: WatchDeps;
  readonly #query: WatchQuery;
  readonly #epochs: EpochCursor;
  readonly #pacer: Pacer;
  /** Everything of the job up to here was told. */
  #cursor: number;
  /** Transitions that were read and not yet told. */
  #read: JobEvent[] = [];
  #isOver = false;

  constructor(deps: WatchDeps, query: WatchQuery) {
    this.#deps = deps;
    this.#query = query;
    this.#cursor = query.startRevision;
    this.#epochs = createEpochCursor(deps, query);
    this.#pacer = createPacer(deps.clock.monotonicMs());
  }

  /** Nothing comes after the event that was told last. */
  get isOver(): boolean {
    return this.#isOver;
  }

  snapshot(): WatchEvent {
    const { jobs } = this.#deps;
    this.#cursor = jobs.revision();
    const now = this.#now();
    const last = this.#epochs.takeLast();
    this.#sent(now);
    const numEpochs = this.#epochs.numEpochs();
    return { kind: 'SNAPSHOT', revision: this.#cursor, ...now, numEpochs, ...last };
  }

  /** The next transition or epochs, a deletion; null when there is nothing new. */
  next(): WatchEvent | null {
    const { jobs } = this.#deps;
    const { id, untilTerminal } = this.#query;
    const newest = jobs.revision();
    requireKept(jobs, id, this.#cursor);
    if (newest <= this.#cursor) {
      this.#isOver = untilTerminal && isTerminal(this.#now().job.state);
      return null;
    }
    const deleted = deletionAfter(jobs, id, this.#cursor);
    if (deleted !== null) {
      this.#isOver = true;
      return deleted;
    }
    if (this.#read.length === 0) this.#read = [...jobs.events(id, this.#cursor, eventsPageLimit)];
    const event = this.#read[0];
    const slice = this.#epochs.peek(this.#cursor, event?.revision ?? Number.POSITIVE_INFINITY);
    if (slice !== null) {
      const isDue = event !== undefined || slice.endsPage;
      return isDue || this.#pacer.epochsAreDue(this.#nowMs()) ? this.#tellEpochs(slice) : null;
    }
    if (event !== undefined) return this.#tellTransition(event);
    // Nothing of this job lies between the cursor and the newest revision, so skip to that.
    this.#cursor = newest;
    this.#isOver = untilTerminal && isTerminal(this.#now().job.state);
    return null;
  }

  /** Progress or a bookmark, if it is time for one. */
  due(): WatchEvent | null {
    const now = this.#now();
    const due = this.#pacer.due(this.#nowMs(), now);
    if (due === null) return null;
    if (due === 'BOOKMARK') return this.bookmark();
    this.#sent(now);
    return { kind: due, revision: this.#cursor, ...now };
  }

  bookmark(): WatchEvent {
    this.#sent('BOOKMARK');
    return { kind: 'BOOKMARK', revision: this.#cursor };
  }

  /** Until something may be due, if no transition comes. */
  delayMs(): number {
    return this.#pacer.delayMs(this.#nowMs(), this.#now().job.state);
  }

  #tellEpochs(slice: EpochSlice): WatchEvent {
    this.#cursor = slice.revision;
    this.#sent(slice.endsPage ? 'PAGE' : 'SOME_EPOCHS');
    return this.#epochs.step(slice);
  }

  #tellTransition({ revision, job }: JobEvent): WatchEvent {
    this.#read.shift();
    this.#cursor = revision;
    this.#epochs.enter(job);
    const shown = latestOr(this.#now(), { job, numEpochs: this.#epochs.numEpochs() });
    this.#sent(shown);
    this.#isOver = this.#query.untilTerminal && isTerminal(job.state);
    return { kind: 'CHANGED', revision, ...shown };
  }

  #now(): CurrentJob {
    return this.#deps.messages.current(this.#query.id);
  }

  #nowMs(): number {
    return this.#deps.clock.monotonicMs();
  }

  #sent(what: Parameters<Pacer['sent']>[1]): void {
    this.#pacer.sent(this.#nowMs(), what);
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

function deletionAfter(jobs: Jobs, id: string, cursor: number): WatchEvent | null {
  const deletion = jobs.deletion(id, cursor);
  if (deletion === null) return null;
  const { revision, job } = deletion;
  return { kind: 'DELETED', revision, job, numEpochs: 0, progress: null };
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

/**
 * Progress, and what a job waits for, belong to what it is now and not to what it was at an older
 * transition.
 */
function latestOr(now: CurrentJob, then: Omit<CurrentJob, 'progress'>): CurrentJob {
  return now.job.revision === then.job.revision
    ? { ...now, numEpochs: then.numEpochs }
    : { ...then, progress: null };
}

/** Where a watch stands among the epochs. */
interface EpochCursor {
  /** The last page's worth of the current attempt. */
  takeLast(): Pick<EpochsShown, 'attempt' | 'epochs'>;
  /** The next ones that are older than `before`; all those up to the revision `told` were told. */
  peek(told: number, before: number): EpochSlice | null;
  step(slice: EpochSlice): Extract<WatchEvent, { readonly kind: 'EPOCHS' }>;
  /** A transition may have begun another attempt. */
  enter(job: JobRecord): void;
  numEpochs(): number;
}

function createEpochCursor({ jobs, messages }: WatchDeps, query: WatchQuery): EpochCursor {
  const { id, startRevision } = query;
  const job = jobs.get(id);
  let at: WatchedJob = { id, uid: job.uid, attempt: job.attempts.at(-1)?.number ?? 0 };
  let next = 0;
  if (startRevision > 0) {
    const place = jobs.epochPlaceAfter(id, startRevision);
    at = { ...at, attempt: place.attempt };
    next = place.epoch;
  }
  const sliceBefore = (before: number) => messages.epochs.slice(at, next, before);
  const step: EpochCursor['step'] = (slice) => {
    next += slice.count;
    return { kind: 'EPOCHS', revision: slice.revision, attempt: at.attempt, epochs: [slice] };
  };
  return {
    takeLast() {
      next = Math.max(0, jobs.epochCount(job) - epochsPerPage);
      const epochs: EpochSlice[] = [];
      for (let slice = sliceBefore(Infinity); slice !== null; slice = sliceBefore(Infinity)) {
        epochs.push(slice);
        step(slice);
      }
      return { attempt: at.attempt, epochs };
    },
    peek(told, before) {
      if (next === 0 && at.attempt > 1) {
        // An attempt that goes on has epochs of another from the start, which were told as that's.
        const place = jobs.epochPlaceAfter(id, told);
        if (place.attempt === at.attempt) next = place.epoch;
      }
      return sliceBefore(before);
    },
    step,
    enter({ attempts }) {
      const attempt = attempts.at(-1)?.number ?? 0;
      if (attempt <= at.attempt) return;
      at = { ...at, attempt };
      next = 0;
    },
    numEpochs: () => next,
  };
}

/** Decides what is due between transitions: news once a second, else a bookmark. */
interface Pacer {
  sent(nowMs: number, what: CurrentJob | 'PAGE' | 'SOME_EPOCHS' | 'BOOKMARK'): void;
  /** Epochs that do not fill a page. */
  epochsAreDue(nowMs: number): boolean;
  due(nowMs: number, now: CurrentJob): 'PROGRESS' | 'BOOKMARK' | null;
  /** Until something may be due, if no transition comes. */
  delayMs(nowMs: number, state: JobState): number;
}

/**
 * Looks fall on whole seconds after the watch's own start, so that many watches of one job do not
 * look all at once.
 */
function createPacer(startMs: number): Pacer {
  let sentAtMs = startMs;
  let newsAtMs = Number.NEGATIVE_INFINITY;
  let epochsAtMs = Number.NEGATIVE_INFINITY;
  let told = '';
  const isDue = (lastMs: number, nowMs: number) => nowMs - lastMs >= progressPeriodMs - earlyMs;
  return {
    sent(nowMs, what) {
      sentAtMs = nowMs;
      if (what === 'SOME_EPOCHS') epochsAtMs = nowMs;
      if (typeof what === 'string') return;
      newsAtMs = nowMs;
      told = newsOf(what);
    },
    epochsAreDue: (nowMs) => isDue(epochsAtMs, nowMs),
    due(nowMs, now) {
      const news = isDue(newsAtMs, nowMs) ? newsOf(now) : '';
      if (news !== '' && news !== told) return 'PROGRESS';
      return nowMs - sentAtMs >= bookmarkPeriodMs ? 'BOOKMARK' : null;
    },
    delayMs(nowMs, state) {
      const bookmarkMs = sentAtMs + bookmarkPeriodMs - nowMs;
      const toNextSecondMs = progressPeriodMs - ((nowMs - startMs) % progressPeriodMs);
      return Math.max(0, isTerminal(state) ? bookmarkMs : Math.min(bookmarkMs, toNextSecondMs));
    },
  };
}

/** What PROGRESS tells, as text; empty for nothing. */
function newsOf({ job, progress }: CurrentJob): string {
  if (job.state === 'PENDING') return `${job.reason} ${job.message}`;
  return progress === null ? '' : JSON.stringify(progress);
}
