import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { GnndError } from '../../../src/base/errors.ts';
import { createLog } from '../../../src/base/log.ts';
import { Runner } from '../../../src/jobs/runner.ts';
import type { CoreAddon, NativeCode } from '../../../src/native/contract.ts';
import type { DataWitness } from '../../../src/prepare/data-witness.ts';
import type { Propagations } from '../../../src/prepare/propagations.ts';
import type { Topologies } from '../../../src/prepare/topologies.ts';
import type { JobState } from '../../../src/records/job-record.ts';
import type { Store } from '../../../src/store/store.ts';
import { newDataset, newJob } from '../store/job-values.ts';
import { openTestStore, temporaryFolder } from '../store/store-fixtures.ts';

/**
 * A store that refuses to write: what the runner decided is stored as soon as it takes it. And what
 * it makes of jobs that an earlier daemon left.
 */

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const nowMs = () => vi.getMockedSystemTime()?.getTime() ?? 0;

/** Every attempt fails in `prepare` with this native code. */
function failingNative(code: NativeCode): CoreAddon {
  const fail = () => {
    throw Object.assign(new Error('made to fail'), { code });
  };
  return new Proxy({} as CoreAddon, { get: () => fail });
}

interface Workbench {
  readonly store: Store;
  readonly runner: Runner;
  /** States in the order in which they were stored. */
  readonly stored: JobState[];
  /** States that are refused with STATE_DISK_FULL for now. */
  readonly refused: Set<JobState>;
  /** How often a refusal was met. */
  readonly refusals: () => number;
}

interface RunnerFacts {
  readonly folder: string;
  readonly code: NativeCode;
  readonly observed: () => void;
  readonly devices: readonly string[];
}

function runnerOn(store: Store, { folder, code, observed, devices }: RunnerFacts): Runner {
  return new Runner({
    store,
    topologies: {} as Topologies,
    witness: {} as DataWitness,
    propagations: {} as Propagations,
    native: failingNative(code),
    clock: { wallMs: nowMs, monotonicMs: nowMs },
    log: createLog({ level: 'error', write: () => {} }),
    devices: devices.map((name) => ({ name, cores: [], node: null })),
    jobsFolder: join(folder, 'jobs'),
    cacheFolder: join(folder, 'cache'),
    random: () => 0.5,
    observe: {
      attemptStarted: observed,
      attemptEnded: observed,
      partEnded: observed,
      executorStarted: observed,
      executorExited: observed,
      checkpointWritten: observed,
      epochEnded: observed,
      storeFailing: observed,
      transitioned: observed,
    },
  });
}

function workbench(code: NativeCode, observed: () => void = () => {}): Workbench {
  const folder = temporaryFolder();
  const real = openTestStore(join(folder, 'store', 'gnnd.db'));
  real.insertDataset(newDataset('cora'));
  const stored: JobState[] = [];
  const refused = new Set<JobState>();
  let refusals = 0;
  const transition: Store['transition'] = (id, change) => {
    if (change.state !== undefined && refused.has(change.state)) {
      refusals++;
      throw new GnndError('STATE_DISK_FULL', 'no space left on the device');
    }
    const job = real.transition(id, change);
    if (change.state !== undefined) stored.push(change.state);
    return job;
  };
  const store = new Proxy(real, {
    get: (target, key) => (key === 'transition' ? transition : Reflect.get(target, key)),
  });
  const runner = runnerOn(store, { folder, code, observed, devices: ['cpu:0', 'cpu:1'] });
  runner.start();
  return { store, runner, stored, refused, refusals: () => refusals };
}

test('an end that the store refuses is tried again until it is stored', async () => {
  const { store, runner, stored, refused, refusals } = workbench('SPEC_INVALID');
  refused.add('FAILED');
  runner.submit([store.insertJob(newJob('a'))]);
  await vi.advanceTimersByTimeAsync(3500);
  expect(refusals()).toBeGreaterThanOrEqual(3);
  expect(store.getJob('a')?.state).toBe('PREPARING');
  // The attempt was not closed either: both or none.
  expect(store.getJob('a')?.attempts[0]?.endAtMs).toBeNull();

  refused.clear();
  await vi.advanceTimersByTimeAsync(1000);
  expect(store.getJob('a')).toMatchObject({ state: 'FAILED', reason: 'SPEC_INVALID' });
  expect(store.getJob('a')?.attempts[0]?.endAtMs).not.toBeNull();
  expect(stored).toEqual(['PREPARING', 'FAILED']);
});

test('the next attempt waits until the end of the one before is stored', async () => {
  const { store, runner, stored, refused, refusals } = workbench('INTERNAL');
  refused.add('PENDING');
  runner.submit([store.insertJob(newJob('a'))]);
  // Longer than the back-off: the scheduler has ordered the next attempt by now.
  await vi.advanceTimersByTimeAsync(20_000);
  expect(refusals()).toBeGreaterThanOrEqual(10);
  expect(stored).toEqual(['PREPARING']);
  expect(store.getJob('a')?.attempts).toHaveLength(1);

  refused.clear();
  await vi.advanceTimersByTimeAsync(1500);
  expect(stored.slice(0, 3)).toEqual(['PREPARING', 'PENDING', 'PREPARING']);
  expect(store.getJob('a')?.attempts).toHaveLength(2);
});

test('a job whose end is not stored yet keeps no other job from ending', async () => {
  const { store, runner, refused } = workbench('SPEC_INVALID');
  refused.add('FAILED');
  runner.submit([store.insertJob(newJob('a'))]);
  await vi.advanceTimersByTimeAsync(1500);
  runner.submit([store.insertJob(newJob('b'))]);
  await vi.advanceTimersByTimeAsync(1500);
  expect(store.getJob('b')?.state).toBe('PREPARING');
  refused.clear();
  await vi.advanceTimersByTimeAsync(1000);
  expect(store.getJob('a')?.state).toBe('FAILED');
  expect(store.getJob('b')?.state).toBe('FAILED');
});

test('an observer that throws changes nothing of what it observes', async () => {
  const { store, runner, stored } = workbench('SPEC_INVALID', () => {
    throw new Error('made to fail');
  });
  runner.submit([store.insertJob(newJob('a'))]);
  await vi.advanceTimersByTimeAsync(3500);
  expect(stored).toEqual(['PREPARING', 'FAILED']);
  expect(store.getJob('a')?.attempts).toHaveLength(1);
});

test('what jobs wait for is not written: a long queue costs a start no transition', () => {
  const { store, runner, stored } = workbench('INTERNAL');
  const jobs = Array.from({ length: 100 }, (_, index) => store.insertJob(newJob(`j${index}`)));
  const before = store.revision();
  runner.submit(jobs);
  // The first gets the devices and its phase; nothing is written about the others.
  expect(store.revision() - before).toBe(2);
  expect(stored).toEqual(['PREPARING']);
});

test('a job that takes the daemon along ends after three attempts, not after one', () => {
  const { store } = workbench('SPEC_INVALID');
  store.insertJob(newJob('a'));
  store.insertJob(newJob('b'));
  const daemonDies = () => {
    for (const id of ['a', 'b']) {
      if (store.getJob(id)?.state === 'FAILED') continue;
      store.openAttempt(id);
      store.transition(id, { state: 'PREPARING' });
    }
    // The next daemon on the same store finds the open attempts.
    // It has no device, so that nothing starts meanwhile.
    const facts = { folder: temporaryFolder(), observed: () => {}, devices: [] } as const;
    runnerOn(store, { ...facts, code: 'SPEC_INVALID' }).start();
  };
  daemonDies();
  expect(store.getJob('a')).toMatchObject({ state: 'PENDING', nextAttemptAtMs: null });
  daemonDies();
  const waits = ['a', 'b'].map((id) => store.getJob(id)?.nextAttemptAtMs);
  expect(waits).toEqual([null, nowMs() + 30_000]);
  daemonDies();
  for (const id of ['a', 'b']) {
    expect(store.getJob(id)).toMatchObject({
      state: 'FAILED',
      reason: 'RESTART_BUDGET_EXHAUSTED',
      message: expect.stringContaining("3 attempts in a row ended with the daemon's death"),
    });
    expect(store.getJob(id)?.attempts.map(({ endReason }) => endReason)).toEqual(
      Array(3).fill('DAEMON_RESTARTED'),
    );
  }
});
