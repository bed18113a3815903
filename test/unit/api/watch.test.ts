import { describe, expect, it } from 'vitest';
import { type WatchEvent, type WatchQuery, watchJob } from '../../../src/api/watch.ts';
import { GnndError } from '../../../src/base/errors.ts';
import {
  createFakeJobs,
  createVirtualTime,
  jobProgress,
  settled,
} from '../../support/api-fakes.ts';

/** A watch whose reader takes every event at once, or only when told. */
function watching(changes: Partial<WatchQuery> = {}) {
  const jobs = createFakeJobs();
  const time = createVirtualTime();
  const controller = new AbortController();
  const query = { id: 'mine', startRevision: 0, untilTerminal: false, ...changes };
  const deps = { jobs, clock: time.clock, sleep: time.sleep };
  const events = watchJob(deps, query, controller.signal);
  const seen: WatchEvent[] = [];
  let end: unknown = 'open';
  const readAll = async () => {
    try {
      for await (const event of events) seen.push(event);
      end = 'ok';
    } catch (error) {
      end = error;
    }
  };
  return { jobs, time, controller, events, seen, readAll, end: () => end };
}

const kinds = (events: readonly WatchEvent[]) => events.map((event) => event.kind);
const states = (events: readonly WatchEvent[]) =>
  events.map((event) => (event.kind === 'BOOKMARK' ? 'BOOKMARK' : event.job.state));

describe('a watch', () => {
  it('starts with the current state, then tells every transition once', async () => {
    const watch = watching();
    void watch.readAll();
    await settled();
    expect(kinds(watch.seen)).toEqual(['SNAPSHOT']);
    watch.jobs.transition('PREPARING');
    watch.jobs.transition('RUNNING');
    await settled();
    expect(kinds(watch.seen)).toEqual(['SNAPSHOT', 'CHANGED', 'CHANGED']);
    expect(states(watch.seen)).toEqual(['PENDING', 'PREPARING', 'RUNNING']);
    expect(watch.seen.map((event) => event.revision)).toEqual([1, 2, 3]);
  });

  it('resumes after a revision without a snapshot', async () => {
    const watch = watching({ startRevision: 2 });
    watch.jobs.transition('PREPARING');
    watch.jobs.transition('RUNNING');
    watch.jobs.transition('SUCCEEDED');
    void watch.readAll();
    await settled();
    expect(states(watch.seen)).toEqual(['RUNNING', 'SUCCEEDED']);
  });

  it('misses nothing however it is cut into pieces', async () => {
    const told: number[] = [];
    const { jobs } = watching();
    for (let index = 0; index < 250; index += 1) jobs.transition('RUNNING');
    jobs.transition('SUCCEEDED');
    const time = createVirtualTime();
    let startRevision = 1;
    for (let piece = 1; told.at(-1) !== 252; piece += 1) {
      const query = { id: 'mine', startRevision, untilTerminal: true };
      const deps = { jobs, clock: time.clock, sleep: time.sleep };
      let left = piece;
      for await (const event of watchJob(deps, query, new AbortController().signal)) {
        told.push(event.revision);
        startRevision = event.revision;
        left -= 1;
        if (left === 0) break;
      }
    }
    expect(told).toEqual(Array.from({ length: 251 }, (_, index) => index + 2));
    expect(jobs.listenerCount).toBe(0);
  });

  it('ends after the terminal transition when asked to', async () => {
    const watch = watching({ untilTerminal: true });
    void watch.readAll();
    watch.jobs.transition('FAILED');
    await settled();
    expect(watch.end()).toBe('ok');
    expect(watch.seen.at(-1)).toMatchObject({ job: { state: 'FAILED' } });
    expect(watch.jobs.listenerCount).toBe(0);
    expect(watch.time.sleeperCount).toBe(0);
  });

  it('ends at once when the job was terminal before its revision', async () => {
    const watch = watching({ untilTerminal: true, startRevision: 2 });
    watch.jobs.transition('SUCCEEDED');
    await watch.readAll();
    expect(watch.seen).toEqual([]);
    expect(watch.end()).toBe('ok');
  });

  it('goes on after the terminal transition when not asked to end', async () => {
    const watch = watching();
    void watch.readAll();
    watch.jobs.transition('CANCELLED');
    await settled();
    expect(watch.end()).toBe('open');
  });

  it('refuses a revision that does not exist yet', async () => {
    const watch = watching({ startRevision: 2 });
    await watch.readAll();
    expect(watch.end()).toMatchObject({
      reason: 'REVISION_IN_FUTURE',
      metadata: { currentRevision: '1' },
    });
    expect(watch.jobs.listenerCount).toBe(0);
  });

  it('refuses an unknown job', async () => {
    const watch = watching({ id: 'other' });
    await watch.readAll();
    expect(watch.end()).toMatchObject({ reason: 'JOB_NOT_FOUND' });
  });
});

describe('progress', () => {
  it('is told once a second, the latest only', async () => {
    const watch = watching();
    void watch.readAll();
    watch.jobs.transition('RUNNING');
    for (let step = 0; step < 50; step += 1) {
      watch.jobs.setProgress(jobProgress({ version: step }));
      await watch.time.advance(100);
    }
    const told = watch.seen.flatMap((event) =>
      event.kind === 'PROGRESS' ? [event.progress?.version] : [],
    );
    expect(told.length).toBeGreaterThanOrEqual(4);
    expect(told.length).toBeLessThanOrEqual(6);
    expect(told.at(-1)).toBeGreaterThanOrEqual(39);
    const revisions = watch.seen.map((event) => event.revision);
    expect(revisions).toEqual([...revisions].sort((left, right) => left - right));
  });

  it('that did not change is not told again', async () => {
    const watch = watching();
    watch.jobs.setProgress(jobProgress());
    void watch.readAll();
    for (let step = 0; step < 5; step += 1) {
      watch.jobs.setProgress(jobProgress());
      await watch.time.advance(1000);
    }
    expect(kinds(watch.seen)).toEqual(['SNAPSHOT']);
  });

  it('goes with the latest transition and not with older ones', async () => {
    const watch = watching({ startRevision: 1 });
    watch.jobs.transition('PREPARING');
    watch.jobs.transition('RUNNING');
    watch.jobs.setProgress(jobProgress());
    void watch.readAll();
    await settled();
    expect(watch.seen).toMatchObject([{ progress: null }, { progress: { epoch: 1 } }]);
  });
});

describe('bookmarks', () => {
  it('come every 10 seconds of silence with the newest revision of all jobs', async () => {
    const watch = watching();
    void watch.readAll();
    await settled();
    watch.jobs.otherJobChanges();
    watch.jobs.otherJobChanges();
    await watch.time.advance(9_999);
    expect(kinds(watch.seen)).toEqual(['SNAPSHOT']);
    await watch.time.advance(1);
    await watch.time.advance(10_000);
    expect(watch.seen.slice(1)).toEqual([
      { kind: 'BOOKMARK', revision: 3 },
      { kind: 'BOOKMARK', revision: 3 },
    ]);
  });

  it('are the last word when the server stops', async () => {
    const watch = watching();
    void watch.readAll();
    await settled();
    watch.jobs.otherJobChanges();
    const reason = new GnndError('DAEMON_STOPPING', 'stopping');
    watch.controller.abort(reason);
    await settled();
    expect(watch.seen.at(-1)).toEqual({ kind: 'BOOKMARK', revision: 2 });
    expect(watch.end()).toBe(reason);
    expect(watch.jobs.listenerCount).toBe(0);
    expect(watch.time.sleeperCount).toBe(0);
  });
});

describe('a reader that stalls', () => {
  it('costs no reads while it stalls and misses no transition afterwards', async () => {
    const watch = watching();
    await watch.events.next();
    for (let index = 0; index < 1000; index += 1) watch.jobs.transition('RUNNING');
    await settled();
    expect(watch.jobs.eventReads).toBe(0);
    watch.jobs.transition('SUCCEEDED');
    const revisions: number[] = [];
    for await (const event of watch.events) {
      revisions.push(event.revision);
      if (event.kind !== 'BOOKMARK' && event.job.state === 'SUCCEEDED') break;
    }
    expect(revisions).toEqual(Array.from({ length: 1001 }, (_, index) => index + 2));
    // 11 pages of at most 100 events.
    expect(watch.jobs.eventReads).toBe(11);
  });

  it('leaves no listener behind when it goes away', async () => {
    const watch = watching();
    await watch.events.next();
    expect(watch.jobs.listenerCount).toBe(1);
    await watch.events.return();
    expect(watch.jobs.listenerCount).toBe(0);
  });
});

describe('a watch of a job that is deleted', () => {
  it('ends with its deletion', async () => {
    const watch = watching();
    void watch.readAll();
    await settled();
    watch.jobs.transition('CANCELLED');
    watch.jobs.remove();
    await settled();
    expect(kinds(watch.seen)).toEqual(['SNAPSHOT', 'DELETED']);
    expect(watch.seen.at(-1)?.revision).toBe(3);
    expect(watch.end()).toBe('ok');
    expect(watch.jobs.listenerCount).toBe(0);
  });

  it('that comes back after the deletion is told of it; a new one finds no job', async () => {
    const watch = watching({ startRevision: 1 });
    watch.jobs.transition('CANCELLED');
    watch.jobs.remove();
    void watch.readAll();
    await settled();
    expect(kinds(watch.seen)).toEqual(['DELETED']);
    const late = watching();
    late.jobs.remove();
    void late.readAll();
    await settled();
    expect(late.end()).toMatchObject({ reason: 'JOB_NOT_FOUND' });
  });
});

describe('a watch whose past was compacted', () => {
  it('is refused at its start, with the revision from which it could go on', async () => {
    const watch = watching({ startRevision: 1 });
    for (let i = 0; i < 5; i++) watch.jobs.transition('RUNNING');
    watch.jobs.compact(4);
    void watch.readAll();
    await settled();
    expect(watch.end()).toMatchObject({
      reason: 'REVISION_COMPACTED',
      metadata: { compactRevision: '4', currentRevision: '6' },
    });
    const enough = watching({ startRevision: 4 });
    for (let i = 0; i < 5; i++) enough.jobs.transition('RUNNING');
    enough.jobs.compact(4);
    void enough.readAll();
    await settled();
    expect(enough.seen.map(({ revision }) => revision)).toEqual([5, 6]);
  });

  it('is refused while a slow reader falls behind', async () => {
    const watch = watching();
    await watch.events.next();
    for (let i = 0; i < 5; i++) watch.jobs.transition('RUNNING');
    watch.jobs.compact(3);
    await expect(watch.events.next()).rejects.toMatchObject({ reason: 'REVISION_COMPACTED' });
  });
});
