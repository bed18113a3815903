import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { GnndError } from '../../../src/base/errors.ts';
import { createLog } from '../../../src/base/log.ts';
import type { Seat } from '../../../src/devices/seat.ts';
import { Runner } from '../../../src/jobs/runner.ts';
import type { CoreAddon } from '../../../src/native/contract.ts';
import type { DataWitness } from '../../../src/prepare/data-witness.ts';
import type { Propagations } from '../../../src/prepare/propagations.ts';
import type { Topologies } from '../../../src/prepare/topologies.ts';
import type { JobResult } from '../../../src/records/job-record.ts';
import type { Store } from '../../../src/store/store.ts';
import type { AttemptEvent, AttemptInput } from '../../../src/supervisor/attempt-types.ts';
import { epochReport, newDataset, newJob, someResult } from '../../unit/store/job-values.ts';
import { openTestStore, temporaryFolder } from '../../unit/store/store-fixtures.ts';

/** A store that fails for a while under a job that trains: executors are played by the test. */

const made = vi.hoisted(() => [] as PlayedAttempt[]);

/** An attempt without processes: it notes what it is told and says what the test says. */
interface PlayedAttempt {
  readonly input: AttemptInput;
  readonly said: string[];
  readonly emit: (event: AttemptEvent) => void;
  onStop: () => void;
}

vi.mock('../../../src/supervisor/job-attempt.ts', async (original) => {
  class JobAttempt {
    readonly said: string[] = [];
    readonly input: AttemptInput;
    readonly emit: (event: AttemptEvent) => void;
    onStop = () => {};
    constructor(input: AttemptInput, { emit }: { emit: (event: AttemptEvent) => void }) {
      this.input = input;
      this.emit = emit;
      made.push(this);
    }
    prepare() {
      this.emit({ kind: 'phase', phase: 'LOADING_DATASET' });
    }
    calibrate() {
      this.said.push('calibrate');
    }
    launch({ executors }: { executors: readonly Seat[] }) {
      this.said.push(...executors.map(({ executor }) => executor));
      return { queueCapacity: 4, slotBytes: 1, parameterCount: 1, cache: cachePlan };
    }
    begin() {
      this.said.push('begin');
    }
    respawn({ executor }: Seat) {
      this.said.push(`respawn ${executor}`);
    }
    hold(holds: boolean) {
      this.said.push(`hold ${holds}`);
    }
    stop() {
      this.onStop();
      this.emit({ kind: 'stopped' });
    }
  }
  return { ...(await original<object>()), JobAttempt };
});

const cachePlan = {
  ...{
    policy: 'COMBINED',
    trainerRows: 0,
    standbyRows: 0,
    rowBytes: 4,
    reservedBytes: 0,
    rankMs: 0,
  },
  ...{ explanation: '', prefetch: false, prefetchExplanation: '' },
  ...{ pinnedRows: 0, pinnedExplanation: '', placement: null, favoured: '' },
} as const;

beforeEach(() => {
  vi.useFakeTimers();
  made.length = 0;
});
afterEach(() => {
  vi.useRealTimers();
});

interface Bench {
  readonly folder: string;
  readonly store: Store;
  readonly runner: Runner;
  /** While true every write is refused with STATE_DISK_FULL. */
  full: boolean;
  refusals: number;
  /** What health was told: whether the store fails. */
  readonly health: boolean[];
}

const writes: readonly (keyof Store)[] = [
  ...(['atomically', 'setMeta', 'transition', 'openAttempt', 'closeAttempt'] as const),
  ...(['addExecutorExit', 'addExecutorRestart', 'recordEpochs'] as const),
];

function runnerOn(store: Store, folder: string, health: boolean[] = []): Runner {
  const nowMs = () => vi.getMockedSystemTime()?.getTime() ?? 0;
  const nothing = () => {};
  return new Runner({
    store,
    native: {} as CoreAddon,
    topologies: {} as Topologies,
    witness: {} as DataWitness,
    propagations: {} as Propagations,
    clock: { wallMs: nowMs, monotonicMs: nowMs },
    log: createLog({ level: 'error', write: nothing }),
    devices: ['cpu:0', 'cpu:1'].map((name) => ({ name, cores: [], node: null })),
    jobsFolder: join(folder, 'jobs'),
    cacheFolder: join(folder, 'cache'),
    random: () => 0.5,
    observe: {
      attemptStarted: nothing,
      attemptEnded: nothing,
      partEnded: nothing,
      executorStarted: nothing,
      executorExited: nothing,
      checkpointWritten: nothing,
      epochEnded: nothing,
      storeFailing: (isFailing) => void health.push(isFailing),
      transitioned: nothing,
    },
  });
}

function bench(): Bench {
  const folder = temporaryFolder();
  const real = openTestStore(join(folder, 'store', 'gnnd.db'));
  real.insertDataset(newDataset('cora'));
  const refused = () => {
    self.refusals += 1;
    throw new GnndError('STATE_DISK_FULL', 'no space left on the device');
  };
  const store = new Proxy(real, {
    get: (target, key) =>
      self.full && writes.includes(key as keyof Store) ? refused : Reflect.get(target, key),
  });
  const health: boolean[] = [];
  const runner = runnerOn(store, folder, health);
  const self: Bench = { folder, store, runner, health, full: false, refusals: 0 };
  runner.start();
  return self;
}

const timings = {
  samplerBatchNs: 1000,
  trainerBatchNs: 1000,
  standbyBatchNs: 1000,
  parts: {
    ...{ extractNs: 0, trainNs: 1000, standbyExtractNs: 0, standbyTrainNs: 1000, applyNs: 0 },
    prefetch: false,
  },
};

/** Brings the job to RUNNING; answers its attempt. */
function train({ runner, store }: Bench): PlayedAttempt {
  runner.submit([store.insertJob(newJob('a'))]);
  const attempt = made[0];
  if (attempt === undefined) throw new Error('no attempt was made');
  attempt.emit({ kind: 'prepared' });
  const epoch = { batches: 10, slots: 10 };
  attempt.emit({ kind: 'calibrated', timings, epoch, standbyRoom: [], samplerSets: [] });
  for (const executor of seatsOf(attempt)) attempt.emit({ kind: 'executorReady', executor });
  expect(attempt.said).toContain('begin');
  return attempt;
}

const epochsOf = ({ store }: Bench) =>
  store.epochs('a', 1, 0, 1000).map(({ report }) => report.epoch);

const seatsOf = ({ said }: PlayedAttempt) => said.filter((word) => word.includes('#'));

function epochEnded(epoch: number): AttemptEvent {
  return { kind: 'epochsEnded', reports: [epochReport(epoch)], timings };
}

function crash(executor: string): AttemptEvent {
  const [role, device] = ['TRAINER', 'cpu:1'] as const;
  const reason = 'EXECUTOR_CRASHED';
  const exit = { role, device, pid: 7, exitCode: 1, signal: null, reason, logTail: '' } as const;
  const outcome = { kind: 'CRASHED', reason, message: 'made to' } as const;
  return { kind: 'executorExited', executor, outcome, exit };
}

function resultIn(folder: string): JobResult {
  const checkpointDir = join(folder, 'checkpoint');
  mkdirSync(checkpointDir, { recursive: true });
  return { ...someResult, checkpointDir };
}

test('a disk that is full for a while fails no job: its records come later, in order', async () => {
  const b = bench();
  const attempt = train(b);
  attempt.emit(epochEnded(0));
  b.full = true;
  attempt.emit(epochEnded(1));
  attempt.emit({ kind: 'phase', phase: 'EVALUATING' });
  attempt.emit(crash(seatsOf(attempt).at(-1) ?? ''));
  attempt.emit(epochEnded(2));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(b.refusals).toBeGreaterThan(30);
  expect(b.runner.storeIsFailing).toBe(true);
  expect(attempt.said.at(-1)).toMatch(/^respawn /);
  expect(b.store.getJob('a')).toMatchObject({ state: 'RUNNING', phase: 'LOADING_DATASET' });

  b.full = false;
  await vi.advanceTimersByTimeAsync(1000);
  expect(b.runner.storeIsFailing).toBe(false);
  const job = b.store.getJob('a');
  expect(job).toMatchObject({ state: 'RUNNING', phase: 'EVALUATING' });
  expect(job?.attempts).toMatchObject([{ executorRestarts: 1, exits: [{ pid: 7 }] }]);
  expect(epochsOf(b)).toEqual([0, 1, 2]);
  expect(b.health).toEqual([true, false]);
  expect(made).toHaveLength(1);
});

test('a job that ends while the disk is full has succeeded as soon as there is room', async () => {
  const b = bench();
  const attempt = train(b);
  b.full = true;
  for (const epoch of [0, 1, 2]) attempt.emit(epochEnded(epoch));
  const result = resultIn(b.folder);
  attempt.emit({ kind: 'completed', result, checkpointMs: 5 });
  await vi.advanceTimersByTimeAsync(600_000);
  expect(b.store.getJob('a')?.state).toBe('RUNNING');
  b.full = false;
  await vi.advanceTimersByTimeAsync(1000);
  const job = b.store.getJob('a');
  expect(job).toMatchObject({ state: 'SUCCEEDED', reason: 'COMPLETED', result });
  expect(epochsOf(b)).toEqual([0, 1, 2]);
  expect(made).toHaveLength(1);
});

test('a job is held, not ended, when too much of it waits for the store', async () => {
  const b = bench();
  const attempt = train(b);
  b.full = true;
  for (let epoch = 0; epoch < 99; epoch++) attempt.emit(epochEnded(epoch));
  expect(attempt.said).not.toContain('hold true');
  attempt.emit(epochEnded(99));
  expect(attempt.said.at(-1)).toBe('hold true');
  b.full = false;
  await vi.advanceTimersByTimeAsync(1000);
  expect(attempt.said.at(-1)).toBe('hold false');
  expect(epochsOf(b)).toHaveLength(100);
});

test('a job that cannot be begun while the disk is full begins when there is room', async () => {
  const b = bench();
  const job = b.store.insertJob(newJob('a'));
  b.full = true;
  b.runner.submit([job]);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(made).toHaveLength(0);
  b.full = false;
  await vi.advanceTimersByTimeAsync(1000);
  expect(made).toHaveLength(1);
  expect(b.store.getJob('a')).toMatchObject({ state: 'PREPARING', phase: 'LOADING_DATASET' });
});

test('success is stored before an executor is stopped', () => {
  const b = bench();
  const attempt = train(b);
  let stored: JobResult | null = null;
  attempt.onStop = () => {
    stored = b.store.getJob('a')?.result ?? null;
  };
  const result = resultIn(b.folder);
  attempt.emit({ kind: 'completed', result, checkpointMs: 5 });
  expect(stored).toEqual(result);
  expect(b.store.getJob('a')?.state).toBe('SUCCEEDED');
});

test('a daemon that dies while it stops a finished job trains nothing again', () => {
  const b = bench();
  const attempt = train(b);
  attempt.onStop = () => {
    throw new Error('the daemon dies here');
  };
  const result = resultIn(b.folder);
  expect(() => attempt.emit({ kind: 'completed', result, checkpointMs: 5 })).not.toThrow();
  expect(b.store.getJob('a')?.state).toBe('RUNNING');
  runnerOn(b.store, b.folder).start();
  const job = b.store.getJob('a');
  expect(job).toMatchObject({ state: 'SUCCEEDED', reason: 'COMPLETED', result });
  expect(job?.attempts).toMatchObject([{ endReason: 'COMPLETED' }]);
  expect(made).toHaveLength(1);
});

test('without its checkpoint a finished job starts again', () => {
  const b = bench();
  const attempt = train(b);
  attempt.onStop = () => {
    throw new Error('the daemon dies here');
  };
  const result = { ...someResult, checkpointDir: join(b.folder, 'gone') };
  attempt.emit({ kind: 'completed', result, checkpointMs: 5 });
  runnerOn(b.store, b.folder).start();
  expect(made).toHaveLength(2);
  expect(b.store.getJob('a')).toMatchObject({ state: 'PREPARING', result: null });
});
