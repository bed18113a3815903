import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { type RetentionLimits, unsetJobLimits } from '../../../src/config/retention-limits.ts';
import { createDeletion } from '../../../src/jobs/deletion.ts';
import { createRetention, type GarbageItem } from '../../../src/jobs/retention.ts';
import type { Runner } from '../../../src/jobs/runner.ts';
import type { CoreAddon } from '../../../src/native/contract.ts';
import type { DataWitness } from '../../../src/prepare/data-witness.ts';
import { Propagations } from '../../../src/prepare/propagations.ts';
import type { Store } from '../../../src/store/store.ts';
import { newJob, someResult } from '../store/job-values.ts';
import { openTestStore, temporaryFolder } from '../store/store-fixtures.ts';

const dayMs = 24 * 60 * 60_000;
const quiet = createLog({ level: 'error', write: () => {} });
const plenty: RetentionLimits = {
  jobsDays: null,
  jobsCount: null,
  eventsDays: 7,
  eventsCount: 100_000,
  jobLogsBytes: 2 ** 20,
  logsBytes: 2 ** 20,
  derivedBytes: 2 ** 20,
};

interface Attempt {
  readonly uid: string;
  readonly number: number;
  readonly datasetDigest: string;
}

/** A store on a clock that a test moves, and folders beside it. */
function workbench(limits: Partial<RetentionLimits> = {}) {
  const folder = temporaryFolder();
  const time = { ms: 1_700_000_000_000 };
  const clock = { wallMs: () => time.ms, monotonicMs: () => time.ms };
  const store = openTestStore(join(folder, 'store', 'gnnd.db'), { clock });
  const [jobsFolder, derivedFolder] = [join(folder, 'jobs'), join(folder, 'features')];
  for (const path of [jobsFolder, derivedFolder]) mkdirSync(path);
  const attempts = new Map<string, { readonly input: Attempt }>();
  const runner = { attempts, cancel: () => {}, onChange: () => () => {} } as unknown as Runner;
  const deletion = createDeletion({ store, runner, jobsFolder, log: quiet });
  const observed: GarbageItem[][] = [];
  const propagations = new Propagations({
    ...{ folder: join(folder, 'propagations'), clock, native: {} as CoreAddon, ended: () => {} },
    witness: {} as DataWitness,
  });
  const retention = createRetention({
    ...{ store, runner, deletion, jobsFolder, derivedFolder, clock, log: quiet },
    tasksLogFolder: join(folder, 'log'),
    propagations,
    limits: { ...plenty, ...limits },
    observe: (removed) => void observed.push([...removed]),
  });
  onTestFinished(() => retention.close());
  const file = (path: string, bytes: number, ageMs = 0) => {
    const full = join(folder, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, 'x'.repeat(bytes));
    const at = (time.ms - ageMs) / 1000;
    utimesSync(full, at, at);
    return full;
  };
  const live = (attempt: Partial<Attempt>) => {
    const input = { uid: 'uid-live', number: 1, datasetDigest: 'f'.repeat(64), ...attempt };
    attempts.set('live', { input });
  };
  return {
    folder,
    time,
    store,
    propagations,
    jobsFolder,
    retention,
    observed,
    file,
    live,
    attempts,
  };
}

type EndState = 'SUCCEEDED' | 'FAILED' | 'CANCELLED';

function endedJob(store: Store, id: string, state: EndState = 'SUCCEEDED'): void {
  store.insertJob(newJob(id));
  if (state !== 'SUCCEEDED') return void store.transition(id, { state });
  for (const step of ['PREPARING', 'RUNNING'] as const) store.transition(id, { state: step });
  store.transition(id, { state, result: someResult });
}

const names = (items: readonly GarbageItem[]) => items.map(({ name }) => name);

describe('ended jobs', () => {
  test('with a result stay for ever unless a limit is set; others for 90 days', async () => {
    const { store, time, retention } = workbench();
    for (const state of ['SUCCEEDED', 'FAILED', 'CANCELLED'] as const) {
      endedJob(store, state.toLowerCase(), state);
    }
    time.ms += unsetJobLimits.days * dayMs;
    endedJob(store, 'new', 'FAILED');
    const jobsFound = async () =>
      (await retention.collect({ dryRun: true })).filter(({ kind }) => kind === 'JOB');
    expect(await jobsFound()).toEqual([]);
    time.ms += dayMs;
    const jobs = await jobsFound();
    expect(names(jobs)).toEqual(['jobs/failed', 'jobs/cancelled']);
    expect(jobs[0]?.reason).toBe('jobs that ended FAILED stay for 90 days (jobs_retain_days)');
  });

  test('beyond an age or a number go, the first to end first, with their folders', async () => {
    const { store, time, retention, file } = workbench({ jobsDays: 10, jobsCount: 3 });
    for (let i = 0; i < 6; i++) {
      endedJob(store, `j${i}`);
      file(`jobs/uid-j${i}/checkpoint/model.safetensors`, 100 + i);
      time.ms += dayMs;
    }
    store.insertJob(newJob('waiting'));
    const found = await retention.collect({ dryRun: true });
    expect(names(found)).toEqual(['jobs/j0', 'jobs/j1', 'jobs/j2']);
    expect(found.map(({ bytes }) => bytes)).toEqual([100, 101, 102]);
    expect(found[0]?.reason).toBe('the last 3 jobs ended stay (jobs_retain_count)');
    time.ms += 6.5 * dayMs;
    const old = (await retention.collect({ dryRun: true })).filter(({ kind }) => kind === 'JOB');
    expect(names(old)).toEqual(['jobs/j0', 'jobs/j1', 'jobs/j2']);
    time.ms += dayMs;
    const older = (await retention.collect({ dryRun: true })).filter(({ kind }) => kind === 'JOB');
    expect(names(older)).toEqual(['jobs/j0', 'jobs/j1', 'jobs/j2', 'jobs/j3']);
    expect(older[3]?.reason).toBe('jobs ended stay for 10 days (jobs_retain_days)');
  });
});

test('a dry run removes nothing; a round removes exactly what it said', async () => {
  const bench = workbench({ jobsCount: 1, eventsCount: 5, logsBytes: 100, derivedBytes: 1000 });
  const { store, time, retention, observed, file } = bench;
  for (const id of ['a', 'b', 'c']) {
    endedJob(store, id);
    time.ms += 1000;
  }
  const kind = 'ValidateDataset';
  store.insertOperation({ id: 'op', kind, target: 'cora' });
  store.updateOperation('op', { end: { error: null, validation: null } });
  time.ms += 8 * dayMs;
  store.insertJob(newJob('waiting'));
  const jobFile = file('jobs/uid-a/checkpoint/model.safetensors', 10);
  const oldLog = file('jobs/uid-c/attempts/1/log/trainer.log', 90, 1000);
  const newLog = file('jobs/uid-c/attempts/2/log/trainer.log', 90);
  const old = file(`features/${'a'.repeat(32)}-standardized.npy`, 600, dayMs);
  const recent = file(`features/${'b'.repeat(32)}-standardized.npy`, 600, 1000);
  const revision = store.revision();
  const said = await retention.collect({ dryRun: true });
  expect(said.map((item) => [item.kind, item.name, item.bytes > 0])).toEqual([
    ['JOB', 'jobs/a', true],
    ['JOB', 'jobs/b', false],
    ['LOG', oldLog, true],
    ['DERIVED_FILE', old, true],
    ['EVENTS', `${revision - 1} events, up to revision ${revision - 1}`, true],
    ['OPERATIONS', '1 finished operations', false],
  ]);
  expect([jobFile, oldLog, newLog, old, recent].every((path) => existsSync(path))).toBe(true);
  expect([store.revision(), store.compactedRevision()]).toEqual([revision, 0]);
  expect(store.getOperation('op')).not.toBeNull();
  expect(store.getJob('a')).not.toBeNull();
  expect(observed).toEqual([]);

  expect(await retention.collect({ dryRun: false })).toEqual(said);
  expect(observed).toEqual([said]);
  expect([jobFile, oldLog, old].some((path) => existsSync(path))).toBe(false);
  expect([newLog, recent].every((path) => existsSync(path))).toBe(true);
  expect(['a', 'b', 'c'].map((id) => store.getJob(id) !== null)).toEqual([false, false, true]);
  expect(store.compactedRevision()).toBe(revision - 1);
  expect(store.getOperation('op')).toBeNull();
});

describe('logs', () => {
  test('of a job go from the oldest file on; its last one keeps its end', async () => {
    const { retention, file } = workbench({ jobLogsBytes: 1000 });
    const logs = [3, 2, 1].map((age) =>
      file(`jobs/uid-a/attempts/${4 - age}/log/trainer.log`, 400, age * 1000),
    );
    const huge = file('jobs/uid-b/attempts/1/log/trainer.log', 0);
    for (let i = 0; i < 300; i++) appendFileSync(huge, `line ${i}\n`);
    const found = await retention.collect({ dryRun: true });
    expect(names(found)).toEqual([logs[0], huge]);
    await retention.collect({ dryRun: false });
    expect(logs.map((path) => existsSync(path))).toEqual([false, true, true]);
    const lines = readFileSync(huge, 'utf8').split('\n');
    expect(lines[0]).toMatch(/^\[gnnd removed the first \d+ bytes of this log\]$/);
    expect(lines.at(-2)).toBe('line 299');
    expect(lines[1]).toMatch(/^line \d+$/);
    expect(statSync(huge).size).toBeLessThan(600);
    expect(names(await retention.collect({ dryRun: true }))).toEqual([]);
  });

  test('of executors that run are cut in place, and what they write next follows', async () => {
    const { retention, file, live, folder } = workbench({ jobLogsBytes: 1000, logsBytes: 100 });
    const path = join(folder, 'jobs/uid-live/attempts/2/log/trainer.log');
    const ended = file('jobs/uid-live/attempts/1/log/trainer.log', 300, 1000);
    mkdirSync(dirname(path), { recursive: true });
    // The supervisor opens an executor's log in the same way.
    const executor = openSync(path, 'a');
    onTestFinished(() => closeSync(executor));
    live({ number: 2 });
    for (let i = 0; i < 200; i++) writeSync(executor, `line ${i}\n`);
    await retention.collect({ dryRun: false });
    expect(existsSync(ended)).toBe(false);
    writeSync(executor, 'after\n');
    const text = readFileSync(path, 'utf8');
    expect(text.length).toBeLessThan(600);
    expect(text.startsWith('[gnnd removed')).toBe(true);
    expect(text.endsWith('line 199\nafter\n')).toBe(true);
    // The limit of all logs does not reach who still writes.
    expect(names(await retention.collect({ dryRun: true }))).toEqual([]);
  });

  test('of executors that run are cut soon after they grew, not by the minute', async () => {
    const { retention, live, folder, file } = workbench({ jobLogsBytes: 1000 });
    const logs = ['jobs/uid-live/attempts/2/log/trainer.log', 'log/import.log'];
    for (const log of logs) mkdirSync(dirname(join(folder, log)), { recursive: true });
    const small = file('jobs/uid-live/attempts/2/log/sampler.log', 100);
    live({ number: 2 });
    retention.start();
    for (const log of logs) {
      const path = join(folder, log);
      const executor = openSync(path, 'a');
      onTestFinished(() => closeSync(executor));
      for (const again of ['first', 'second']) {
        writeSync(executor, `${again} ${'x'.repeat(5000)}\n`);
        writeSync(executor, `${again} end\n`);
        const isCut = () => /^\[gnnd removed[^x]* end\n$/.test(readFileSync(path, 'utf8'));
        await expect.poll(isCut, { timeout: 10_000 }).toBe(true);
        writeSync(executor, 'after\n');
        expect(readFileSync(path, 'utf8').endsWith(`${again} end\nafter\n`)).toBe(true);
      }
    }
    expect(readFileSync(small, 'utf8')).toBe('x'.repeat(100));
  });

  test('of exports are cut, too', async () => {
    const { retention, file } = workbench({ jobLogsBytes: 1000 });
    const path = file('log/export.log', 5000, dayMs);
    await retention.collect({ dryRun: false });
    expect(statSync(path).size).toBeLessThan(600);
  });

  test('that came with a later attempt are seen', async () => {
    const { retention, file } = workbench({ jobLogsBytes: 1000 });
    file('jobs/uid-a/attempts/1/log/trainer.log', 900, 1000);
    expect(await retention.collect({ dryRun: true })).toEqual([]);
    file('jobs/uid-a/attempts/2/log/trainer.log', 900);
    expect(await retention.collect({ dryRun: true })).toHaveLength(1);
  });
});

describe('derived files', () => {
  const digest = (letter: string) => letter.repeat(32);
  test('go by least use, but not those of a job that runs, nor what is not ours', async () => {
    const { retention, file, live } = workbench({ derivedBytes: 1000 });
    const hour = 60 * 60_000;
    const used = file(`features/${digest('a')}-standardized.npy`, 500, 5 * hour);
    const oldest = file(`features/${digest('b')}-1-order.npy`, 500, 4 * hour);
    const middle = file(`features/${digest('c')}-1-order.npy`, 500, 3 * hour);
    const newest = file(`features/${digest('d')}-1-order.npy`, 500, 2 * hour);
    const foreign = file('features/notes.npy', 500, 9 * hour);
    const now = file(`features/${digest('e')}-1-order.npy`, 500, 1000);
    live({ datasetDigest: digest('a') + digest('0') });
    await retention.collect({ dryRun: false });
    const left = [used, foreign, now, oldest, middle, newest].map((path) => existsSync(path));
    expect(left).toEqual([true, true, true, false, false, false]);
  });

  test('propagated features count, go as a whole, and not while they are held', async () => {
    const { folder, retention, propagations, file } = workbench({ derivedBytes: 1100 });
    const propagated = (letter: string, hours: number) => {
      const age = hours * 60 * 60_000;
      file(`propagations/${digest(letter)}/rows/hop0.npy`, 300, age);
      file(`propagations/${digest(letter)}/rows/op0-hop1.npy`, 200, age);
      return join(folder, 'propagations', digest(letter));
    };
    const [held, old, recent] = [propagated('a', 9), propagated('b', 5), propagated('c', 2)];
    // Used since it was made: the manifest's time says so.
    const used = propagated('d', 8);
    file(`propagations/${digest('d')}/propagation.json`, 10, 60 * 60_000);
    const order = file(`features/${digest('e')}-1-order.npy`, 400, 3 * 60 * 60_000);
    const release = propagations.hold(digest('a'));
    const found = await retention.collect({ dryRun: true });
    expect(found).toMatchObject([
      { kind: 'DERIVED_FILE', name: old, bytes: 500 },
      { kind: 'DERIVED_FILE', name: order, bytes: 400 },
      { kind: 'DERIVED_FILE', name: recent, bytes: 500 },
    ]);
    expect(await retention.collect({ dryRun: false })).toHaveLength(3);
    const exist = () => [held, old, order, recent, used].map((path) => existsSync(path));
    expect(exist()).toEqual([true, false, false, false, true]);
    expect(readdirSync(join(folder, 'propagations')).sort()).toEqual([digest('a'), digest('d')]);
    release();
    file(`features/${digest('f')}-1-order.npy`, 300, 60 * 60_000);
    expect(names(await retention.collect({ dryRun: false }))).toEqual([held]);
    expect(exist()).toEqual([false, false, false, false, true]);
  });

  test('that a job begins to use after the look stay, and are not said to be gone', async () => {
    const bench = workbench({ derivedBytes: 100 });
    const { retention, file, live, observed, store } = bench;
    const path = file(`features/${digest('a')}-standardized.npy`, 500, dayMs);
    const other = file(`features/${digest('b')}-standardized.npy`, 500, dayMs);
    const compact = store.compactable;
    // The plan is ready when events have been looked at: then an attempt begins.
    store.compactable = (...given) => {
      live({ datasetDigest: digest('a') + digest('0') });
      return compact(...given);
    };
    const removed = await retention.collect({ dryRun: false });
    expect(names(removed)).toEqual([other]);
    expect(observed).toEqual([removed]);
    expect([existsSync(path), existsSync(other)]).toEqual([true, false]);
  });
});

test('a round walks the ended jobs that go, not all, and 500 at a time', async () => {
  const { store, retention, time } = workbench({ jobsDays: 10 });
  const looks: number[] = [];
  const endedJobs = store.endedJobs;
  store.endedJobs = (...given) => {
    const page = endedJobs(...given);
    looks.push(page.length);
    return page;
  };
  const addJobs = (prefix: string) =>
    store.atomically(() => {
      for (let i = 0; i < 1200; i++) {
        store.insertJob(newJob(`${prefix}${i}`));
        store.transition(`${prefix}${i}`, { state: 'CANCELLED' });
      }
    });
  addJobs('old');
  time.ms += 11 * dayMs;
  addJobs('new');
  let turns = 0;
  let isOver = false;
  const turn = () => {
    turns += 1;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const found = await retention.collect({ dryRun: true });
  isOver = true;
  expect(found.filter(({ kind }) => kind === 'JOB')).toHaveLength(1200);
  // Three pages to the first that stays; then those without a result: no FAILED ones, and a page
  // of CANCELLED ones, the first of which stays.
  expect(looks).toEqual([500, 500, 500, 0, 500]);
  expect(turns).toBeGreaterThan(2);
}, 30_000);

describe('folders of jobs that no record knows', () => {
  test('are told and stay; what a deletion keeps or leaves is none of them', async () => {
    const { store, file, retention, jobsFolder } = workbench();
    endedJob(store, 'mine');
    file(`jobs/${store.getJob('mine')?.uid}/attempts/1/log/a.log`, 10);
    file('jobs/lost/attempts/1/log/a.log', 10);
    file('jobs/lost/checkpoint/last.safetensors', 10);
    file('jobs/images-only/images/1.image', 10);
    file('jobs/kept/checkpoint/last.safetensors', 10);
    file('jobs/half.tmp-1/attempts/1/log/a.log', 10);
    file('jobs/a file', 10);
    const expected = ['images-only', 'lost'].map((name) => join(jobsFolder, name));
    expect([...(await retention.orphans())].sort()).toEqual(expected);
    await retention.collect({ dryRun: false });
    expect([...(await retention.orphans())].sort()).toEqual(expected);
    store.deleteJob('mine', { force: false, keepCheckpoint: false });
    expect(await retention.orphans()).toHaveLength(2);
  });
});
