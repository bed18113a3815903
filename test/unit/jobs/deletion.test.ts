import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { createDeletion, type DeleteJob, deletionSlice } from '../../../src/jobs/deletion.ts';
import type { Runner } from '../../../src/jobs/runner.ts';
import type { Store } from '../../../src/store/store.ts';
import { newJob, someResult } from '../store/job-values.ts';
import { crashImage, openTestStore, temporaryFolder } from '../store/store-fixtures.ts';

const quiet = createLog({ level: 'error', write: () => {} });

function asked(id: string, changes: Partial<DeleteJob> = {}): DeleteJob {
  return {
    ...{ id, force: false, keepCheckpoint: false, allowMissing: false, requestId: null },
    ...changes,
  };
}

/** A store with a folder of jobs; `cancel` ends a job at once. */
function workbench(folder = temporaryFolder(), path = join(folder, 'store', 'gnnd.db')) {
  const store = openTestStore(path);
  const jobsFolder = join(folder, 'jobs');
  mkdirSync(jobsFolder, { recursive: true });
  const attempts = new Map<string, { input: { uid: string } }>();
  const runner = {
    attempts,
    cancel: (id: string) => {
      if (!attempts.has(id)) store.transition(id, { state: 'CANCELLED' });
    },
    onChange: () => () => {},
  } as unknown as Runner;
  return { folder, path, store, jobsFolder, attempts, runner };
}

type Bench = ReturnType<typeof workbench>;

function deletionOf({ store, runner, jobsFolder }: Bench, through: Store = store) {
  const deletion = createDeletion({ store: through, runner, jobsFolder, log: quiet });
  onTestFinished(() => deletion.close());
  return deletion;
}

function addFiles({ jobsFolder }: Bench, uid: string): void {
  for (const name of ['attempts/1/log/a.log', 'checkpoint/model.safetensors']) {
    const path = join(jobsFolder, uid, name);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, 'x');
  }
}

function endedJobs(bench: Bench, ids: readonly string[], withFiles = true): void {
  bench.store.atomically(() => {
    for (const id of ids) {
      bench.store.insertJob(newJob(id));
      for (const state of ['PREPARING', 'RUNNING'] as const) bench.store.transition(id, { state });
      bench.store.transition(id, { state: 'SUCCEEDED', result: someResult });
    }
  });
  if (withFiles) for (const id of ids) addFiles(bench, `uid-${id}`);
}

/** Ids of so many more jobs like `id`, each with an attempt and its epoch. */
function copiesOf({ path }: Bench, id: string, count: number): string[] {
  const raw = new Sqlite(path);
  const columns = raw.prepare("SELECT name FROM pragma_table_info('jobs')").all();
  const others = columns
    .map((row) => String(Object(row).name))
    .filter((name) => !['seq', 'id', 'uid'].includes(name))
    .join(', ');
  raw.exec(`
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
    INSERT INTO jobs (id, uid, ${others}) SELECT 'copy' || i, 'uid' || i, ${others}
    FROM n JOIN jobs WHERE id = '${id}';
    INSERT INTO attempts SELECT seq, 1, 0, 0, 'NONE', '', 0, 0, NULL, NULL
    FROM jobs WHERE id LIKE 'copy%';
    INSERT INTO executor_restarts SELECT NULL, seq, 1, 0, 0 FROM jobs WHERE id LIKE 'copy%';
  `);
  raw.close();
  return Array.from({ length: count }, (_, i) => `copy${i + 1}`);
}

describe('deleting a job', () => {
  test('removes its folder and its rows, and nothing of another job', async () => {
    const bench = workbench();
    endedJobs(bench, ['a', 'b']);
    const deletion = deletionOf(bench);
    expect(deletion.delete(asked('a'))).toEqual({ isPending: false, keptCheckpoint: null });
    await deletion.settle();
    expect(readdirSync(bench.jobsFolder)).toEqual(['uid-b']);
    expect(bench.store.removalsAt('FILES', 1)).toEqual([]);
    expect(bench.store.removalsAt('ROWS', 1)).toEqual([]);
  });

  test('can leave the checkpoints, and says where', async () => {
    const bench = workbench();
    endedJobs(bench, ['a']);
    const deletion = deletionOf(bench);
    const kept = join(bench.jobsFolder, 'uid-a', 'checkpoint');
    expect(deletion.delete(asked('a', { keepCheckpoint: true })).keptCheckpoint).toBe(kept);
    await deletion.settle();
    expect(readdirSync(join(bench.jobsFolder, 'uid-a'))).toEqual(['checkpoint']);
    expect(existsSync(join(kept, 'model.safetensors'))).toBe(true);
  });

  test('twice with one request id has one effect, also when the id has a new job', async () => {
    const bench = workbench();
    endedJobs(bench, ['a']);
    const deletion = deletionOf(bench);
    const request = asked('a', { requestId: 'r' });
    const first = deletion.delete(request);
    bench.store.insertJob({ ...newJob('a'), uid: 'new' });
    expect(deletion.delete(request)).toEqual(first);
    expect(bench.store.getJob('a')?.uid).toBe('new');
    const other = { ...request, force: true };
    expect(() => deletion.delete(other)).toThrow('was already used');
  });

  test('that is not there is an error unless that is allowed', () => {
    const deletion = deletionOf(workbench());
    expect(() => deletion.delete(asked('a'))).toThrow('there is no job a');
    expect(deletion.delete(asked('a', { allowMissing: true })).isPending).toBe(false);
  });

  test('by force cancels it, and deletes it when its executors have ended', async () => {
    const bench = workbench();
    const { store, attempts } = bench;
    store.insertJob(newJob('a'));
    addFiles(bench, 'uid-a');
    attempts.set('a', { input: { uid: 'uid-a' } });
    const deletion = deletionOf(bench);
    expect(() => deletion.delete(asked('a'))).toThrow('cancel it first');
    expect(deletion.delete(asked('a', { force: true })).isPending).toBe(true);
    await deletion.settle();
    expect(store.getJob('a')?.intent).toBe('CANCEL');
    store.transition('a', { state: 'CANCELLED' });
    await deletion.settle();
    expect(store.getJob('a')).toBeNull();
    // An executor that is being reaped still has its log.
    expect(readdirSync(bench.jobsFolder)).toEqual(['uid-a']);
    attempts.clear();
    await deletion.settle();
    expect(readdirSync(bench.jobsFolder)).toEqual([]);
  });
});

test('a deletion in which a daemon died, at any point, is ended by the next', async () => {
  const before = workbench();
  endedJobs(before, ['a', 'b'], false);
  const image = (work: () => void) => {
    work();
    return crashImage(before.path);
  };
  before.store.insertJob(newJob('c'));
  const points = [
    image(() => before.store.deleteJob('a', { force: false, keepCheckpoint: false })),
    image(() => before.store.deleteJob('c', { force: true, keepCheckpoint: false })),
    image(() => before.store.transition('c', { state: 'CANCELLED' })),
    image(() => before.store.filesRemoved(before.store.removalsAt('FILES', 1))),
  ];
  for (const [number, path] of points.entries()) {
    const bench = workbench(temporaryFolder(), path);
    // At the last point no files are left.
    for (const id of number < 3 ? ['a', 'b', 'c'] : ['b', 'c']) addFiles(bench, `uid-${id}`);
    const deletion = deletionOf(bench);
    await deletion.settle();
    const isLive = bench.store.getJob('c') !== null;
    expect(isLive).toBe(number < 2);
    expect(readdirSync(bench.jobsFolder)).toEqual(isLive ? ['uid-b', 'uid-c'] : ['uid-b']);
    expect(bench.store.getJob('a')).toBeNull();
    expect(bench.store.getJob('b')?.state).toBe('SUCCEEDED');
    await deletion.close();
  }
});

test('2,000 ended jobs go in slices, between which the event loop turns', async () => {
  const bench = workbench();
  endedJobs(bench, ['j0'], false);
  const ids = copiesOf(bench, 'j0', 2000);
  let sinceTurn = { jobs: 0, rows: 0, writes: 0 };
  const most = { jobs: 0, rows: 0, writes: 0 };
  let turns = 0;
  const counted = new Proxy(bench.store, {
    get: (store, key: keyof Store) => {
      if (key === 'deleteJob') {
        return (...given: Parameters<Store['deleteJob']>) => {
          sinceTurn.jobs += 1;
          return store.deleteJob(...given);
        };
      }
      if (key === 'removeRows') {
        return (...given: Parameters<Store['removeRows']>) => {
          sinceTurn.writes += 1;
          const rows = store.removeRows(...given);
          sinceTurn.rows += rows;
          return rows;
        };
      }
      return Reflect.get(store, key);
    },
  });
  let isOver = false;
  const turn = () => {
    turns += 1;
    for (const key of ['jobs', 'rows', 'writes'] as const) {
      most[key] = Math.max(most[key], sinceTurn[key]);
    }
    sinceTurn = { jobs: 0, rows: 0, writes: 0 };
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const deletion = deletionOf(bench, counted);
  await deletion.deleteAll(ids);
  isOver = true;
  expect(bench.store.countJobs().SUCCEEDED).toBe(1);
  expect(bench.store.removalsAt('FILES', 1)).toEqual([]);
  expect(bench.store.removalsAt('ROWS', 1)).toEqual([]);
  expect(most.jobs).toBe(deletionSlice.jobs);
  expect(most.writes).toBeLessThanOrEqual(deletionSlice.jobs);
  expect(most.rows).toBeLessThanOrEqual(deletionSlice.rows);
  expect(turns).toBeGreaterThan((2 * ids.length) / deletionSlice.jobs);
}, 60_000);
