import Sqlite from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import { GnndError } from '../../../src/base/errors.ts';
import type { Store } from '../../../src/store/store.ts';
import { epochReport, newDataset, newJob } from './job-values.ts';
import { crashImage, openTestStore, temporaryStorePath } from './store-fixtures.ts';

const keep = { force: false, keepCheckpoint: false } as const;
const noAge = { beforeMs: 0 } as const;

/** A job that failed after an attempt with epochs, an exit and a restart. */
function endedJob(store: Store, id: string, epochs = 3): void {
  store.atomically(() => {
    store.insertJob(newJob(id));
    const { number } = store.openAttempt(id);
    store.transition(id, { state: 'PREPARING' });
    store.addExecutorRestart(id, number);
    store.addExecutorExit(id, number, {
      ...{ role: 'SAMPLER', device: 'cpu:0', pid: 1, exitCode: 1, signal: null },
      ...{ reason: 'EXECUTOR_CRASHED', logTail: '' },
    });
    const reports = Array.from({ length: epochs }, (_, epoch) => epochReport(epoch));
    store.recordEpochs(id, number, reports);
    store.closeAttempt(id, number, { reason: 'INTERNAL', message: '' });
    store.transition(id, { state: 'FAILED', reason: 'INTERNAL' });
  });
}

function removeAll(store: Store): void {
  store.filesRemoved(store.removalsAt('FILES', 100));
  for (const removal of store.removalsAt('ROWS', 100)) store.removeRows(removal, 1000);
}

/** Number of rows by table of those that know jobs. */
function rowsByTable(path: string): Record<string, number> {
  const raw = new Sqlite(path, { readonly: true });
  onTestFinished(() => void raw.close());
  const tables = raw.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  const counts = tables.map((row) => {
    const name = String(Object(row).name);
    const columns = raw.prepare(`SELECT name FROM pragma_table_info('${name}')`).all();
    const isOfJobs = name === 'jobs' || columns.some((one) => Object(one).name === 'job_seq');
    const { n } = Object(raw.prepare(`SELECT count(*) AS n FROM ${name}`).get());
    return [name, isOfJobs ? Number(n) : 0] as const;
  });
  return Object.fromEntries(counts.filter(([, n]) => n > 0));
}

function revisionsOf(path: string): number[] {
  const raw = new Sqlite(path, { readonly: true });
  const rows = raw.prepare('SELECT revision FROM events ORDER BY revision').all();
  raw.close();
  return rows.map((row) => Number(Object(row).revision));
}

const reasonOf = (work: () => unknown) => {
  try {
    work();
  } catch (error) {
    return error instanceof GnndError ? error.reason : error;
  }
  return null;
};

describe('a deleted job', () => {
  test('is in no answer, frees its id, and its deletion is the next revision', () => {
    const store = openTestStore(temporaryStorePath());
    endedJob(store, 'a');
    endedJob(store, 'b');
    const before = store.revision();
    const was = store.getJob('a');
    expect(store.deleteJob('a', keep)).toBe(before + 1);
    expect(store.revision()).toBe(before + 1);
    expect(store.getJob('a')).toBeNull();
    expect(store.getJobByUid('uid-a')).toBeNull();
    expect(reasonOf(() => store.events('a', 0, 10))).toBe('JOB_NOT_FOUND');
    const all = { limit: 10, after: null, states: [] };
    expect(store.listJobs(all).map(({ id }) => id)).toEqual(['b']);
    expect(store.nonTerminalJobs()).toEqual([]);
    expect(store.countJobs().FAILED).toBe(1);
    expect(store.endedJobs(null, null, 10).map(({ id }) => id)).toEqual(['b']);
    const deletion = store.deletionOf('a', 1);
    expect(deletion?.job).toEqual({ ...was, revision: before + 1, attempts: [] });
    expect(store.deletionOf('a', before + 1)).toBeNull();
    const again = { ...newJob('a'), uid: 'another' };
    expect(store.insertJob(again).revision).toBe(before + 2);
    expect(store.deletionOf('a', 1)?.job.uid).toBe('uid-a');
    expect(store.getJob('a')?.attempts).toEqual([]);
  });

  test('leaves no row in any table once its events are compacted', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    endedJob(store, 'a');
    store.setMeta('tally:uid-a', '{}');
    store.deleteJob('a', keep);
    removeAll(store);
    expect(rowsByTable(path)).toEqual({ jobs: 1, removals: 1, events: 4 });
    expect(store.getMeta('tally:uid-a')).toBeNull();
    store.insertJob(newJob('b'));
    store.compactEvents(store.revision(), 100);
    expect(rowsByTable(path)).toEqual({ jobs: 1, events: 1 });
    expect(store.deletionOf('a', 0)).toBeNull();
  });

  test('goes row by row, so many at a time', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    endedJob(store, 'a', 25);
    store.deleteJob('a', keep);
    store.filesRemoved(store.removalsAt('FILES', 1));
    const [removal] = store.removalsAt('ROWS', 1);
    if (removal === undefined) throw new Error('no removal');
    const rows = (counts: Record<string, number>) =>
      ['executor_exits', 'executor_restarts', 'epochs', 'scales', 'attempts']
        .map((table) => counts[table] ?? 0)
        .reduce((sum, n) => sum + n, 0);
    let left = rows(rowsByTable(path));
    expect(left).toBe(53);
    for (let slices = 0; left > 0; slices++) {
      expect(store.removeRows(removal, 10)).toBe(Math.min(10, left));
      expect(rows(rowsByTable(path))).toBe(Math.max(0, left - 10));
      left = Math.max(0, left - 10);
      expect(slices).toBeLessThan(6);
    }
    expect(store.removalsAt('ROWS', 1)).toEqual([]);
  });

  test('is refused while it lives; by force it is noted and found once it has ended', () => {
    const store = openTestStore(temporaryStorePath());
    store.insertJob(newJob('a'));
    expect(reasonOf(() => store.deleteJob('a', keep))).toBe('JOB_NOT_TERMINAL');
    expect(reasonOf(() => store.deleteJob('x', keep))).toBe('JOB_NOT_FOUND');
    expect(store.deleteJob('a', { force: true, keepCheckpoint: true })).toBeNull();
    expect(store.getJob('a')?.state).toBe('PENDING');
    expect(store.endedRemovals(10)).toEqual([]);
    store.transition('a', { state: 'CANCELLED' });
    expect(store.endedRemovals(10)).toMatchObject([
      { id: 'a', uid: 'uid-a', keepCheckpoint: true },
    ]);
  });

  test('of a request that is repeated is deleted once', () => {
    const store = openTestStore(temporaryStorePath());
    endedJob(store, 'a');
    const request = { method: 'DeleteJob', requestId: 'r', sha256: 's' };
    const revision = store.deleteJob('a', keep, request);
    expect(store.findRequest('DeleteJob', 'r')).toMatchObject({ resource: 'jobs/a', revision });
  });
});

test('a crash at every step leaves all of a job, or a deletion that goes on to its end', () => {
  const path = temporaryStorePath();
  const store = openTestStore(path);
  endedJob(store, 'a');
  endedJob(store, 'other');
  const images = [crashImage(path)];
  const steps: (() => void)[] = [
    () => store.deleteJob('a', keep),
    () => store.filesRemoved(store.removalsAt('FILES', 1)),
  ];
  for (let i = 0; i < 8; i++) {
    steps.push(() => {
      for (const removal of store.removalsAt('ROWS', 1)) store.removeRows(removal, 1);
    });
  }
  for (const step of steps) {
    step();
    images.push(crashImage(path));
  }
  const [untouched, ...begun] = images;
  expect(openTestStore(untouched ?? '').epochCount('a', 1)).toBe(3);
  for (const image of begun) {
    const after = openTestStore(image);
    expect(after.getJob('a')).toBeNull();
    removeAll(after);
    after.compactEvents(after.revision(), 100);
    after.insertJob({ ...newJob('a'), uid: 'new' });
    expect(after.epochCount('other', 1)).toBe(3);
    const { jobs, attempts, epochs } = rowsByTable(image);
    expect({ jobs: jobs ?? 0, attempts, epochs }).toEqual({ jobs: 3, attempts: 1, epochs: 3 });
    after.insertJob({ ...newJob('z'), uid: 'z' });
    after.compactEvents(after.revision(), 100);
    expect(rowsByTable(image)['removals']).toBeUndefined();
  }
});

describe('compaction', () => {
  test('removes the oldest events by number, in slices, without a gap in what stays', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    for (let i = 0; i < 30; i++) store.insertJob(newJob(`j${i}`));
    const found = store.compactable(0, { ...noAge, keep: 10 }, 1000);
    expect(found).toMatchObject({ through: 20, events: 20 });
    expect(found.bytes).toBeGreaterThan(20);
    // It looks at no more than it is told to.
    expect(store.compactable(0, { ...noAge, keep: 10 }, 7)).toMatchObject({
      through: 7,
      events: 7,
    });
    expect(store.compactable(15, { ...noAge, keep: 10 }, 7)).toMatchObject({ through: 20 });
    expect(store.compactEvents(20, 15)).toBe(15);
    expect(store.compactedRevision()).toBe(15);
    expect(store.compactEvents(20, 15)).toBe(5);
    expect(store.compactEvents(20, 15)).toBe(0);
    expect(revisionsOf(path)).toEqual([21, 22, 23, 24, 25, 26, 27, 28, 29, 30]);
    expect(store.getJob('j0')?.revision).toBe(1);
    expect(openTestStore(crashImage(path)).compactedRevision()).toBe(20);
  });

  test('removes what is older than an age', () => {
    const store = openTestStore(temporaryStorePath());
    for (let i = 0; i < 10; i++) store.insertJob(newJob(`j${i}`));
    const events = Array.from({ length: 10 }, (_, i) => store.events(`j${i}`, 0, 1)[0]);
    const beforeMs = events[4]?.atMs ?? 0;
    expect(store.compactable(0, { beforeMs, keep: 100 }, 1000)).toMatchObject({ through: 4 });
    expect(store.compactable(0, { beforeMs: 0, keep: 100 }, 1000).events).toBe(0);
  });

  test('keeps the newest event, so that revisions go on where they were', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    for (let i = 0; i < 5; i++) store.insertJob(newJob(`j${i}`));
    store.compactEvents(1000, 1000);
    expect(revisionsOf(path)).toEqual([5]);
    store.close();
    const next = openTestStore(path);
    expect(next.revision()).toBe(5);
    expect(next.insertJob(newJob('more')).revision).toBe(6);
  });

  test('is the only way for an event to go', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    for (let i = 0; i < 5; i++) store.insertJob(newJob(`j${i}`));
    store.compactEvents(3, 100);
    store.close();
    const raw = new Sqlite(path);
    onTestFinished(() => void raw.close());
    expect(() => raw.exec('DELETE FROM events')).toThrow('append-only');
  });
});

test('ended jobs are told from the first to end, page by page, and by state', () => {
  const store = openTestStore(temporaryStorePath());
  for (let i = 0; i < 5; i++) endedJob(store, `f${i}`, 0);
  store.insertJob(newJob('c'));
  store.transition('c', { state: 'CANCELLED' });
  store.insertJob(newJob('live'));
  endedJob(store, 'deleted', 0);
  store.deleteJob('deleted', keep);
  const first = store.endedJobs(null, null, 4);
  const rest = store.endedJobs(null, first.at(-1) ?? null, 4);
  expect([...first, ...rest].map(({ id }) => id)).toEqual(['f0', 'f1', 'f2', 'f3', 'f4', 'c']);
  expect(store.endedJobs('FAILED', null, 9).map(({ id }) => id)).toHaveLength(5);
  const states = [null, 'SUCCEEDED', 'FAILED', 'CANCELLED'] as const;
  expect(states.map((state) => store.countEnded(state))).toEqual([6, 0, 5, 1]);
});

describe('a dataset', () => {
  test('is used by the jobs that have not ended, and goes with its request remembered', () => {
    const store = openTestStore(temporaryStorePath());
    store.insertDataset(newDataset('cora'));
    store.insertJob(newJob('a'));
    store.insertJob(newJob('b'));
    endedJob(store, 'c');
    expect(store.jobsUsing('cora', 10)).toEqual(['a', 'b']);
    expect(store.jobsUsing('cora', 1)).toEqual(['a']);
    expect(store.jobsUsing('other', 10)).toEqual([]);
    const request = { method: 'DeleteDataset', requestId: 'r', sha256: 's' };
    store.deleteDataset('cora', request);
    expect(store.getDataset('cora')).toBeNull();
    expect(store.findRequest('DeleteDataset', 'r')?.resource).toBe('datasets/cora');
    expect(reasonOf(() => store.deleteDataset('cora'))).toBe('DATASET_NOT_FOUND');
    expect(store.insertDataset(newDataset('cora')).id).toBe('cora');
  });
});

test('operations that ended long ago are forgotten, others stay', () => {
  const store = openTestStore(temporaryStorePath());
  const kind = 'ValidateDataset';
  for (const id of ['a', 'b', 'c']) store.insertOperation({ id, kind, target: 'cora' });
  const end = { error: null, validation: null };
  const first = store.updateOperation('a', { end });
  store.updateOperation('b', { end });
  const beforeMs = (first.endAtMs ?? 0) + 1;
  expect(store.countOperations(beforeMs, 10)).toBe(1);
  expect(store.forgetOperations(beforeMs, 10)).toBe(1);
  expect(['a', 'b', 'c'].map((id) => store.getOperation(id)?.done)).toEqual([
    undefined,
    true,
    false,
  ]);
});
