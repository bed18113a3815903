import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { GnndError } from '../../../src/base/errors.ts';
import { createJobs, type Jobs } from '../../../src/jobs/jobs.ts';
import type { Runner } from '../../../src/jobs/runner.ts';
import type { CoreAddon } from '../../../src/native/contract.ts';
import { initialState } from '../../../src/scheduler/scheduler.ts';
import type { Store } from '../../../src/store/store.ts';
import { noThreads } from '../../support/pools.ts';
import { newDataset, newJob } from '../store/job-values.ts';
import { countingClock, openTestStore, temporaryFolder } from '../store/store-fixtures.ts';

interface Bench {
  readonly store: Store;
  readonly jobs: Jobs;
  readonly jobsFolder: string;
  /** What the runner was told to cancel. */
  readonly cancelled: string[];
  /** Methods of calls that were found to be repeated. */
  readonly replays: string[];
}

function bench(): Bench {
  const folder = temporaryFolder();
  const replays: string[] = [];
  const store = openTestStore(join(folder, 'store', 'gnnd.db'), {
    onReplay: (method) => replays.push(method),
  });
  store.insertDataset(newDataset('cora'));
  const cancelled: string[] = [];
  const runner = {
    onQueueChange: () => () => {},
    state: initialState,
    cancel: (id: string) => cancelled.push(id),
  } as unknown as Runner;
  const jobsFolder = join(folder, 'jobs');
  const jobs = createJobs({
    store,
    runner,
    native: {} as CoreAddon,
    clock: countingClock(),
    host: {
      deviceNames: ['cpu:0'],
      deviceCores: [1],
      matrixLibrary: 'ONEDNN' as const,
      deviceBudgets: new Map(),
      pluginsDir: '',
    },
    pool: noThreads,
    hostBytes: 2 ** 35,
    jobsFolder,
    sourcesDir: '',
    maxQueued: 10,
  });
  return { store, jobs, jobsFolder, cancelled, replays };
}

function reasonOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof GnndError) return error.reason;
    throw error;
  }
  return 'nothing was thrown';
}

test('a cancel that is repeated with its request id has no second effect', () => {
  const { store, jobs, cancelled, replays } = bench();
  store.insertJob(newJob('a'));
  store.insertJob(newJob('b'));
  const first = jobs.cancel('a', 'r-1');
  expect(jobs.cancel('a', 'r-1')).toEqual(first);
  // It ended in between: still an answer and no JOB_STATE_CONFLICT.
  store.transition('a', { state: 'CANCELLED', reason: 'USER_CANCELLED' });
  expect(jobs.cancel('a', 'r-1')).toMatchObject({ state: 'CANCELLED' });
  expect(cancelled).toEqual(['a']);
  expect(replays).toEqual(['CancelJob', 'CancelJob']);
  expect(reasonOf(() => jobs.cancel('b', 'r-1'))).toBe('REQUEST_ID_REUSED');
  expect(store.getJob('b')?.intent).toBe('RUN');
});

test('a cancel that came first is still an answer after the job succeeded', () => {
  const { store, jobs } = bench();
  store.insertJob(newJob('a'));
  jobs.cancel('a', 'r-1');
  for (const state of ['PREPARING', 'RUNNING', 'SUCCEEDED'] as const) {
    store.transition('a', { state });
  }
  expect(jobs.cancel('a', 'r-1').state).toBe('SUCCEEDED');
});

test('logs are those of everything an attempt started, in the order of its stages', () => {
  const { store, jobs, jobsFolder } = bench();
  const { uid } = store.insertJob(newJob('a'));
  store.openAttempt('a');
  const folder = join(jobsFolder, uid, 'attempts', '1', 'log');
  mkdirSync(folder, { recursive: true });
  const names = ['trainer_cpu_1_1', 'sampler_cpu_10_2', 'trial-standby_cpu_0_1', 'rank', 'probe'];
  for (const name of names) writeFileSync(join(folder, `${name}.log`), `${name}\n`);
  writeFileSync(join(folder, 'core.123'), '');
  expect(jobs.logs('a', 0).map(({ path: _, ...log }) => log)).toEqual([
    { log: 'probe', role: null, device: '' },
    { log: 'rank', role: null, device: '' },
    { log: 'trial-standby@cpu:0#1', role: 'STANDBY', device: 'cpu:0' },
    { log: 'sampler@cpu:10#2', role: 'SAMPLER', device: 'cpu:10' },
    { log: 'trainer@cpu:1#1', role: 'TRAINER', device: 'cpu:1' },
  ]);
  expect(jobs.logs('a', 7)).toEqual([]);
});
