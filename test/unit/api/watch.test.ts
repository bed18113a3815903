import { fromBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { WatchJobResponseSchema } from '../../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { type WatchQuery, watchJob } from '../../../src/api/watch.ts';
import type { WatchEvent } from '../../../src/api/watch-event.ts';
import { createWatchMessages } from '../../../src/api/watch-messages.ts';
import { GnndError } from '../../../src/base/errors.ts';
import type { Attempt } from '../../../src/records/job-record.ts';
import {
  createFakeJobs,
  createVirtualTime,
  jobProgress,
  settled,
} from '../../support/api-fakes.ts';

/** A watch whose reader takes every event at once, or only when told. */
function watching(changes: Partial<WatchQuery> = {}, jobs = createFakeJobs()) {
  const time = createVirtualTime();
  const controller = new AbortController();
  const query = { id: 'mine', startRevision: 0, untilTerminal: false, ...changes };
  const messages = createWatchMessages(jobs);
  const deps = { jobs, messages, clock: time.clock, sleep: time.sleep };
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
  return { jobs, messages, time, controller, events, seen, readAll, end: () => end };
}

const kinds = (events: readonly WatchEvent[]) => events.map((event) => event.kind);
const states = (events: readonly WatchEvent[]) =>
  events.map((event) => ('job' in event ? event.job.state : event.kind));

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
      const messages = createWatchMessages(jobs);
      const deps = { jobs, messages, clock: time.clock, sleep: time.sleep };
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
      if ('job' in event && event.job.state === 'SUCCEEDED') break;
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

/** The epochs that a watch told, in its order. */
const epochsOf = (events: readonly WatchEvent[]) =>
  events.flatMap((event) =>
    'epochs' in event
      ? event.epochs.flatMap(({ bytes }) =>
          fromBinary(WatchJobResponseSchema, bytes).epochs.map(({ epoch }) => epoch),
        )
      : [],
  );
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

const attempt = (number: number): Attempt => ({
  number,
  startAtMs: 0,
  endAtMs: null,
  endReason: 'NONE',
  message: '',
  executorRestarts: 0,
  resumed: null,
  exits: [],
});

describe('epochs', () => {
  it('are all told, also beyond 1,000, and before the transition that follows them', async () => {
    const watch = watching({ untilTerminal: true });
    watch.jobs.transition('RUNNING', { attempts: [attempt(1)] });
    void watch.readAll();
    await settled();
    for (let step = 0; step < 30; step += 1) {
      watch.jobs.endEpochs(101);
      watch.jobs.setProgress(jobProgress({ version: step }));
      await watch.time.advance(1000);
    }
    watch.jobs.endEpochs(7);
    watch.jobs.transition('SUCCEEDED');
    await settled();
    expect(watch.end()).toBe('ok');
    expect(epochsOf(watch.seen)).toEqual(upTo(30 * 101 + 7));
    const revisions = watch.seen.map((event) => event.revision);
    expect(revisions).toEqual([...revisions].sort((left, right) => left - right));
    expect(watch.seen.at(-1)).toMatchObject({ kind: 'CHANGED', numEpochs: 30 * 101 + 7 });
  });

  it('begin with the last 100 and continue after any revision', async () => {
    const watch = watching();
    watch.jobs.transition('RUNNING', { attempts: [attempt(1)] });
    watch.jobs.endEpochs(250);
    void watch.readAll();
    await settled();
    expect(watch.seen).toHaveLength(1);
    expect(epochsOf(watch.seen)).toEqual(upTo(250).slice(150));

    for (const seen of [0, 1, 99, 100, 137, 249, 250]) {
      const query = { id: 'mine', startRevision: 2 + seen, untilTerminal: true };
      const deps = { ...watch, clock: watch.time.clock, sleep: watch.time.sleep };
      const again: WatchEvent[] = [];
      const events = watchJob(deps, query, new AbortController().signal);
      while (epochsOf(again).length < 250 - seen) {
        const { value } = await events.next();
        if (value !== undefined) again.push(value);
      }
      expect(epochsOf(again)).toEqual(upTo(250).slice(seen));
    }
  });

  it('of another attempt begin anew', async () => {
    const watch = watching();
    watch.jobs.transition('RUNNING', { attempts: [attempt(1)] });
    void watch.readAll();
    watch.jobs.endEpochs(3);
    watch.jobs.transition('PENDING');
    watch.jobs.transition('PREPARING', { attempts: [attempt(1), attempt(2)] });
    await settled();
    watch.jobs.endEpochs(2);
    await watch.time.advance(1000);
    expect(epochsOf(watch.seen)).toEqual([0, 1, 2, 0, 1]);
    expect(watch.seen.at(-1)).toMatchObject({ kind: 'EPOCHS', attempt: 2 });
  });

  it('that an attempt took over are not told again, to nobody who was told', async () => {
    const resumed = { epochs: 3, batches: 0, image: 'epoch-3', otherBuild: false };
    const watch = watching();
    watch.jobs.transition('RUNNING', { attempts: [attempt(1)] });
    void watch.readAll();
    watch.jobs.endEpochs(4);
    watch.jobs.transition('PENDING');
    watch.jobs.transition('PREPARING', { attempts: [attempt(1), attempt(2)] });
    await settled();
    const seen = watch.seen.at(-1)?.revision ?? 0;
    watch.jobs.takeOverEpochs(3);
    const attempts = [attempt(1), { ...attempt(2), resumed }];
    watch.jobs.transition('PREPARING', { attempts });
    await settled();
    expect(watch.seen.at(-1)).toMatchObject({ kind: 'CHANGED', numEpochs: 3 });
    watch.jobs.endEpochs(2);
    await watch.time.advance(1000);
    // The fourth was trained again.
    expect(epochsOf(watch.seen)).toEqual([0, 1, 2, 3, 3, 4]);
    const revisions = watch.seen.map(({ revision }) => revision);
    expect(revisions).toEqual([...revisions].sort((left, right) => left - right));
    for (const [startRevision, epochs] of [
      [seen, [3, 4]],
      [1, [0, 1, 2, 3, 4]],
    ] as const) {
      const back = watching({ startRevision }, watch.jobs);
      void back.readAll();
      await settled();
      await back.time.advance(1000);
      expect(epochsOf(back.seen)).toEqual(epochs);
    }
  });
});

describe('many watches of one job', () => {
  it('read and encode it once, in small responses', async () => {
    const jobs = createFakeJobs();
    jobs.transition('RUNNING', { attempts: [attempt(1)] });
    const time = createVirtualTime();
    const messages = createWatchMessages(jobs);
    const watches = 20;
    const controller = new AbortController();
    const bytes: number[] = [];
    let told = 0;
    for (let watch = 0; watch < watches; watch += 1) {
      const query = { id: 'mine', startRevision: 0, untilTerminal: false };
      const deps = { jobs, messages, clock: time.clock, sleep: time.sleep };
      const read = async () => {
        for await (const event of watchJob(deps, query, controller.signal)) {
          bytes.push(messages.encode(event).length);
          told += epochsOf([event]).length;
        }
      };
      read().catch(() => {});
    }
    await settled();
    const [jobReads, epochsRead] = [jobs.jobReads, jobs.epochsRead];
    const seconds = 5;
    for (let second = 0; second < seconds; second += 1) {
      jobs.endEpochs(400);
      jobs.setProgress(jobProgress({ version: second }));
      await time.advance(1000);
    }
    expect(told).toBe(watches * seconds * 400);
    // Once each, not once a watch; the job at most once for each look that it took at itself.
    expect(jobs.epochsRead - epochsRead).toBe(seconds * 400);
    expect(jobs.jobReads - jobReads).toBeLessThanOrEqual(seconds);
    expect(Math.max(...bytes)).toBeLessThan(64 * 1024);
  });

  it('of a job that waits hear what for, without a transition', async () => {
    const watch = watching();
    void watch.readAll();
    await settled();
    watch.jobs.transition('PENDING', { message: '3 ahead, first other' });
    await watch.time.advance(1000);
    const revision = watch.jobs.revision();
    watch.jobs.waitsFor('2 ahead, first another');
    await watch.time.advance(1000);
    expect(watch.seen.at(-1)).toMatchObject({
      kind: 'PROGRESS',
      revision,
      job: { message: '2 ahead, first another' },
    });
  });
});
