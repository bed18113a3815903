import { join } from 'node:path';
import { setImmediate as yieldToLoop } from 'node:timers/promises';
import {
  type DerivedFile,
  type DerivedFolders,
  derivedBeyond,
  removeDerived,
} from '../artifacts/derived-files.ts';
import type { Clock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { filesBelow } from '../base/files.ts';
import type { Log } from '../base/log.ts';
import {
  type GarbageKind,
  operationsDays,
  type RetentionLimits,
  unsetJobLimits,
} from '../config/retention-limits.ts';
import type { EndedJob, Store } from '../store/store.ts';
import type { Deletion } from './deletion.ts';
import { type LogCut, LogFolder } from './log-limits.ts';
import { orphansBelow } from './orphans.ts';
import type { Runner } from './runner.ts';

/**
 * Keeps what the limits allow (docs/operating.md, decision 0025). Each round first finds what is
 * beyond them and then removes exactly that; a dry run is a round that stops in between. All of it
 * goes in slices between which the event loop turns.
 */
export interface Retention {
  /** Rounds wait for each other. */
  collect(how: { readonly dryRun: boolean }): Promise<readonly GarbageItem[]>;
  /** Folders of jobs that no record knows, which stay. */
  orphans(): Promise<readonly string[]>;
  /** Removes what is deleted already, and begins a round now and then. */
  start(): void;
  /** Resolves when it has stopped, within a slice. */
  close(): Promise<void>;
}

export interface GarbageItem {
  readonly kind: GarbageKind;
  /** `jobs/{id}`, a path, or what the records are. */
  readonly name: string;
  readonly bytes: number;
  /** The limit that this garbage exceeds. */
  readonly reason: string;
}

export interface RetentionOptions {
  readonly store: Store;
  readonly runner: Pick<Runner, 'attempts'>;
  readonly deletion: Deletion;
  readonly limits: RetentionLimits;
  readonly jobsFolder: string;
  /** Logs of what belongs to no job. */
  readonly tasksLogFolder: string;
  readonly derivedFolder: string;
  /** Folders of propagated features, which count as derived files do. */
  readonly propagations: DerivedFolders;
  readonly clock: Clock;
  readonly log: Log;
  /** Told of what was removed. */
  readonly observe: (removed: readonly GarbageItem[]) => void;
}

/** Most records that one look at the store, or one transaction, may take. */
export const retentionSlice = { jobs: 500, events: 1000, operations: 1000 } as const;

const periodMs = 60_000;
/** Between looks at logs that are written: a job writes beyond its limit for so long at most. */
const logLookMs = 250;
/** Logs of ended jobs do not grow: they are looked at every so many rounds. */
const roundsPerLook = 15;
const dayMs = 24 * 60 * 60_000;

interface Plan {
  readonly jobs: readonly { readonly job: EndedJob; readonly item: GarbageItem }[];
  readonly logs: readonly LogCut[];
  readonly derived: readonly DerivedFile[];
  readonly events: { readonly through: number; readonly item: GarbageItem | null };
  readonly operations: { readonly endedBeforeMs: number; readonly item: GarbageItem | null };
}

export function createRetention(options: RetentionOptions): Retention {
  const rounds = new Rounds(options);
  let timer: NodeJS.Timeout | null = null;
  let logTimer: NodeJS.Timeout | null = null;
  let number = 0;
  const round = async () => {
    number += 1;
    try {
      // What an earlier round could not remove is tried again.
      await options.deletion.settle();
      await rounds.collect({ dryRun: false, allLogs: number % roundsPerLook === 0 });
    } catch (error) {
      options.log.error('retention.failed', { error: messageOf(error) });
    }
    if (timer !== null) timer = setTimeout(round, periodMs).unref();
  };
  const orphans = () => orphansBelow(options.store, options.jobsFolder);
  const tellOrphans = async () => {
    const found = await orphans();
    if (found.length === 0) return;
    const remedy = 'gnnctl gc lists them; what is not wanted is removed by hand';
    options.log.warn('jobs.orphans', { count: found.length, folders: found.slice(0, 10), remedy });
  };
  return {
    collect: ({ dryRun }) => rounds.collect({ dryRun, allLogs: true }),
    orphans,
    start() {
      void options.deletion.settle();
      void tellOrphans().catch(() => {});
      timer ??= setTimeout(round, periodMs).unref();
      logTimer ??= setInterval(() => rounds.boundLogs(), logLookMs).unref();
    },
    async close() {
      if (timer !== null) clearTimeout(timer);
      if (logTimer !== null) clearInterval(logTimer);
      [timer, logTimer] = [null, null];
      await rounds.close();
      await options.deletion.close();
    },
  };
}

class Rounds {
  readonly #options: RetentionOptions;
  readonly #logs: LogFolder;
  #last: Promise<unknown> = Promise.resolve();
  #cutting: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: RetentionOptions) {
    this.#options = options;
    this.#logs = new LogFolder(options.jobsFolder, options.tasksLogFolder);
  }

  collect({
    dryRun,
    allLogs,
  }: {
    readonly dryRun: boolean;
    readonly allLogs: boolean;
  }): Promise<readonly GarbageItem[]> {
    const round = this.#last
      .catch(() => {})
      .then(async () => {
        const plan = await this.#plan(allLogs);
        const found = itemsOf(plan);
        if (dryRun || found.length === 0) return found;
        const stayed = await this.#apply(plan);
        const items = found.filter(({ name }) => !stayed.has(name));
        this.#options.observe(items);
        const bytes = items.reduce((sum, item) => sum + item.bytes, 0);
        this.#options.log.info('retention.removed', { items: items.length, bytes });
        return items;
      });
    this.#last = round;
    return round;
  }

  /** Cuts logs that grow beyond a job's limit while they are written. */
  boundLogs(): void {
    const { limits, log } = this.#options;
    const cuts = this.#logs.growing(limits, this.#liveAttempts());
    if (cuts.length === 0) return;
    // A round that removes for minutes is not waited for; one that cuts the same file cuts it once.
    const cutting = this.#cutting.then(async () => {
      for (const cut of cuts) await this.#logs.apply(cut);
    });
    this.#cutting = cutting.catch((error: unknown) => {
      log.error('retention.failed', { error: messageOf(error) });
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#last.catch(() => {});
    await this.#cutting;
  }

  async #plan(allLogs: boolean): Promise<Plan> {
    const { limits, derivedFolder, clock, propagations: folders } = this.#options;
    const nowMs = clock.wallMs();
    const jobs = await this.#jobsBeyond(nowMs);
    const gone = new Set(jobs.map(({ job }) => job.uid));
    return {
      jobs,
      logs: await this.#logs.plan(limits, { live: this.#liveAttempts(), gone, allLogs }),
      derived: await derivedBeyond(derivedFolder, {
        ...{ maxBytes: limits.derivedBytes, nowMs, inUse: this.#digestsInUse() },
        folders,
      }),
      events: await this.#eventsBeyond(nowMs),
      operations: this.#operationsBeyond(nowMs),
    };
  }

  /** Answers the names of what stayed, because somebody came in between. */
  async #apply(plan: Plan): Promise<ReadonlySet<string>> {
    const { store, deletion, propagations } = this.#options;
    const stayed = new Set<string>();
    await deletion.deleteAll(plan.jobs.map(({ job }) => job.id));
    for (const cut of plan.logs) {
      if (this.#closed || !(await this.#logs.apply(cut))) stayed.add(cut.path);
    }
    for (const { path } of plan.derived) {
      const isGone =
        !this.#closed &&
        (removeDerived(path, this.#digestsInUse()) || (await propagations.removeIdle(path)));
      if (!isGone) stayed.add(path);
      await yieldToLoop();
    }
    const { events, operations } = retentionSlice;
    while (!this.#closed && store.compactEvents(plan.events.through, events) === events) {
      await yieldToLoop();
    }
    if (plan.operations.item === null) return stayed;
    const { endedBeforeMs } = plan.operations;
    while (!this.#closed && store.forgetOperations(endedBeforeMs, operations) === operations) {
      await yieldToLoop();
    }
    return stayed;
  }

  /** Walks from the first job that ended to the first that stays: O(what goes). */
  async #jobsBeyond(nowMs: number): Promise<Plan['jobs']> {
    const { jobsDays, jobsCount } = this.#options.limits;
    const set = (limit: number | null) => limit ?? Number.POSITIVE_INFINITY;
    const unset = (limit: number | null, value: number) =>
      limit === null ? value : Number.POSITIVE_INFINITY;
    const asked = { days: set(jobsDays), count: set(jobsCount) };
    const withoutResult = {
      days: unset(jobsDays, unsetJobLimits.days),
      count: unset(jobsCount, unsetJobLimits.count),
    };
    const found = [
      ...(await this.#endedBeyond(null, asked, nowMs)),
      ...(await this.#endedBeyond('FAILED', withoutResult, nowMs)),
      ...(await this.#endedBeyond('CANCELLED', withoutResult, nowMs)),
    ];
    const once = new Map([...found].reverse().map((one) => [one.job.uid, one]));
    return [...once.values()].sort(
      (a, b) => a.job.endAtMs - b.job.endAtMs || a.job.seq - b.job.seq,
    );
  }

  async #endedBeyond(
    state: 'FAILED' | 'CANCELLED' | null,
    limits: { readonly days: number; readonly count: number },
    nowMs: number,
  ): Promise<Plan['jobs']> {
    const { store, jobsFolder } = this.#options;
    const beyond: { job: EndedJob; item: GarbageItem }[] = [];
    if (limits.days === Number.POSITIVE_INFINITY && limits.count === Number.POSITIVE_INFINITY) {
      return beyond;
    }
    let left = store.countEnded(state);
    for (let last: EndedJob | null = null; !this.#closed; ) {
      const page: readonly EndedJob[] = store.endedJobs(state, last, retentionSlice.jobs);
      for (const job of page) {
        const isOld = job.endAtMs < nowMs - limits.days * dayMs;
        if (!isOld && left <= limits.count) return beyond;
        left -= 1;
        const which = state === null ? 'ended' : `that ended ${state}`;
        const reason = isOld
          ? `jobs ${which} stay for ${limits.days} days (jobs_retain_days)`
          : `the last ${limits.count} jobs ${which} stay (jobs_retain_count)`;
        const files = await filesBelow(join(jobsFolder, job.uid));
        const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
        const item: GarbageItem = { kind: 'JOB', name: `jobs/${job.id}`, bytes, reason };
        beyond.push({ job, item });
      }
      if (page.length < retentionSlice.jobs) break;
      last = page.at(-1) ?? null;
      await yieldToLoop();
    }
    return beyond;
  }

  async #eventsBeyond(nowMs: number): Promise<Plan['events']> {
    const { store, limits } = this.#options;
    const horizon = { beforeMs: nowMs - limits.eventsDays * dayMs, keep: limits.eventsCount };
    let [through, events, bytes] = [store.compactedRevision(), 0, 0];
    for (;;) {
      const found = store.compactable(through, horizon, retentionSlice.events);
      events += found.events;
      bytes += found.bytes;
      const isMore = found.events === retentionSlice.events && !this.#closed;
      through = found.through;
      if (!isMore) break;
      await yieldToLoop();
    }
    const reason =
      `the newest ${limits.eventsCount} of the last ${limits.eventsDays} days stay ` +
      '(events_retain_count, events_retain_days)';
    const name = `${events} events, up to revision ${through}`;
    return { through, item: events === 0 ? null : { kind: 'EVENTS', name, bytes, reason } };
  }

  #operationsBeyond(nowMs: number): Plan['operations'] {
    const endedBeforeMs = nowMs - operationsDays * dayMs;
    const count = this.#options.store.countOperations(endedBeforeMs, retentionSlice.operations);
    const reason = `they ended more than ${operationsDays} days ago`;
    const more = count === retentionSlice.operations ? ' and more' : '';
    const name = `${count}${more} finished operations`;
    return {
      endedBeforeMs,
      item: count === 0 ? null : { kind: 'OPERATIONS', name, bytes: 0, reason },
    };
  }

  #liveAttempts(): ReadonlyMap<string, number> {
    const attempts = [...this.#options.runner.attempts.values()];
    return new Map(attempts.map(({ input }) => [input.uid, input.number]));
  }

  #digestsInUse(): ReadonlySet<string> {
    const attempts = [...this.#options.runner.attempts.values()];
    return new Set(attempts.map(({ input }) => input.datasetDigest));
  }
}

function itemsOf({ jobs, logs, derived, events, operations }: Plan): readonly GarbageItem[] {
  return [
    ...jobs.map(({ item }) => item),
    ...logs.map(({ path, bytes, reason }) => ({ kind: 'LOG' as const, name: path, bytes, reason })),
    ...derived.map(({ path, bytes, reason }) => ({
      ...{ kind: 'DERIVED_FILE' as const, name: path, bytes, reason },
    })),
    ...(events.item === null ? [] : [events.item]),
    ...(operations.item === null ? [] : [operations.item]),
  ];
}
