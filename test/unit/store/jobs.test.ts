import { describe, expect, test } from 'vitest';
import { GnndError } from '../../../src/base/errors.ts';
import type { Reason } from '../../../src/records/job-record.ts';
import type { JobChange, RequestKey, StoreObservation } from '../../../src/store/store.ts';
import { epochReport, newJob, somePlan, someResult, someSpec } from './job-values.ts';
import { openTestStore, temporaryStorePath } from './store-fixtures.ts';

function reasonOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof GnndError) return error.reason;
    throw error;
  }
  return 'no error';
}

const request: RequestKey = { method: 'CreateJob', requestId: 'r-1', sha256: 'aa' };

describe('jobs in the store', () => {
  test('a job is stored PENDING and read back as it was given, also by another daemon', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    const stored = store.insertJob(newJob('a'));
    expect(stored).toMatchObject({
      ...newJob('a'),
      state: 'PENDING',
      intent: 'RUN',
      phase: null,
      reason: 'NONE',
      revision: 1,
      attempts: [],
      plan: null,
      result: null,
    });
    store.close();
    const again = openTestStore(path);
    expect(again.getJob('a')).toEqual(stored);
    expect(again.getJobByUid('uid-a')).toEqual(stored);
    expect(again.getJob('b')).toBeNull();
  });

  test('a second job of the same name is refused and leaves no trace', () => {
    const store = openTestStore(temporaryStorePath());
    store.insertJob(newJob('a'));
    const again = { ...newJob('a'), uid: 'another' };
    expect(reasonOf(() => store.insertJob(again, request))).toBe('JOB_EXISTS');
    expect(store.revision()).toBe(1);
    expect(store.findRequest('CreateJob', 'r-1')).toBeNull();
  });

  test('each transition has the next revision, and its event shows the job as it was', () => {
    const store = openTestStore(temporaryStorePath());
    const shown = [
      store.insertJob(newJob('a')),
      store.transition('a', { reason: 'WAITING_FOR_DEVICES', message: 'waits for 2 devices' }),
    ];
    store.openAttempt('a');
    shown.push(store.transition('a', { state: 'PREPARING', phase: 'LOADING_DATASET' }));
    shown.push(store.transition('a', { phase: 'CALIBRATING' }));
    shown.push(store.transition('a', { state: 'RUNNING', phase: 'TRAINING', plan: somePlan }));
    store.recordEpochs('a', 1, [epochReport(0)]);
    store.addExecutorRestart('a', 1);
    store.recordEpochs('a', 1, [epochReport(1)]);
    shown.push(store.transition('a', { phase: 'FINALIZING' }));
    store.closeAttempt('a', 1, { reason: 'COMPLETED', message: '' });
    const end: JobChange = { state: 'SUCCEEDED', reason: 'COMPLETED', result: someResult };
    shown.push(store.transition('a', end));
    // Epochs have revisions, too, in the same order.
    expect(shown.map((job) => job.revision)).toEqual([1, 2, 3, 4, 5, 8, 9]);
    expect(store.epochs('a', 1, 0, 10).map(({ revision }) => revision)).toEqual([6, 7]);
    expect(store.events('a', 0, 100).map((event) => event.job)).toEqual(shown);
    expect(store.events('a', 2, 2).map((event) => event.revision)).toEqual([3, 4]);
    expect(shown.at(-1)).toMatchObject({ phase: null, endAtMs: expect.any(Number) });
    expect(store.getJob('a')).toEqual(shown.at(-1));
  });

  test('revisions of several jobs share one sequence without a gap', () => {
    const store = openTestStore(temporaryStorePath());
    for (const id of ['a', 'b', 'c']) store.insertJob(newJob(id));
    store.setIntent('b', 'CANCEL');
    store.transition('c', { message: 'waits' });
    const revisions = ['a', 'b', 'c'].flatMap((id) =>
      store.events(id, 0, 100).map((event) => event.revision),
    );
    expect(revisions.sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5]);
    expect(store.revision()).toBe(5);
  });

  test('a transition that the table forbids writes nothing', () => {
    const store = openTestStore(temporaryStorePath());
    const before = store.insertJob(newJob('a'));
    expect(reasonOf(() => store.transition('a', { state: 'RUNNING', message: 'x' }))).toBe(
      'JOB_STATE_CONFLICT',
    );
    expect(store.getJob('a')).toEqual(before);
    expect(store.events('a', 0, 10)).toHaveLength(1);
  });

  test('a job that has ended does not change any more', () => {
    const store = openTestStore(temporaryStorePath());
    store.insertJob(newJob('a'));
    const ended = store.transition('a', { state: 'CANCELLED', reason: 'USER_CANCELLED' });
    for (const change of [
      { state: 'PENDING' },
      { message: 'x' },
      { state: 'CANCELLED' },
    ] as const) {
      expect(reasonOf(() => store.transition('a', change))).toBe('JOB_STATE_CONFLICT');
    }
    expect(reasonOf(() => store.setIntent('a', 'CANCEL', request))).toBe('JOB_STATE_CONFLICT');
    expect(store.getJob('a')).toEqual(ended);
    expect(store.findRequest('CreateJob', 'r-1')).toBeNull();
  });

  test('fields that belong to a state go with it', () => {
    const store = openTestStore(temporaryStorePath());
    store.insertJob(newJob('a'));
    const preparing = store.transition('a', { state: 'PREPARING', phase: 'STARTING' });
    expect(preparing.startAtMs).not.toBeNull();
    const back: JobChange = { state: 'PENDING', reason: 'BACKOFF', nextAttemptAtMs: 5_000 };
    const pending = store.transition('a', back);
    expect(pending).toMatchObject({ phase: null, nextAttemptAtMs: 5_000 });
    const again = store.transition('a', { state: 'PREPARING' });
    expect(again).toMatchObject({ nextAttemptAtMs: null, startAtMs: preparing.startAtMs });
  });

  test('an intent changes the job once, and never back', () => {
    const store = openTestStore(temporaryStorePath());
    store.insertJob(newJob('a'));
    const cancelled = store.setIntent('a', 'CANCEL');
    expect(cancelled).toMatchObject({ intent: 'CANCEL', state: 'PENDING', revision: 2 });
    expect(store.setIntent('a', 'CANCEL')).toEqual(cancelled);
    expect(reasonOf(() => store.setIntent('a', 'RUN'))).toBe('JOB_STATE_CONFLICT');
    expect(reasonOf(() => store.setIntent('b', 'CANCEL'))).toBe('JOB_NOT_FOUND');
  });

  test('pages go from the newest to the oldest and meet every job once', () => {
    const store = openTestStore(temporaryStorePath(), {
      // Ties, so that the uid decides.
      clock: { wallMs: () => 7, monotonicMs: () => 0 },
    });
    const ids = ['a', 'b', 'c', 'd', 'e'];
    for (const id of ids) store.insertJob(newJob(id));
    store.transition('c', { state: 'FAILED', reason: 'PENDING_TIMEOUT' });
    const seen: string[] = [];
    let after = null;
    for (;;) {
      const page = store.listJobs({ limit: 2, after, states: [] });
      seen.push(...page.map((job) => job.id));
      const last = page.at(-1);
      if (last === undefined) break;
      after = { createAtMs: last.createAtMs, uid: last.uid };
    }
    expect(seen).toEqual(['e', 'd', 'c', 'b', 'a']);
    const failed = store.listJobs({ limit: 10, after: null, states: ['FAILED', 'RUNNING'] });
    expect(failed.map((job) => job.id)).toEqual(['c']);
    expect(store.nonTerminalJobs().map((job) => job.id)).toEqual(['a', 'b', 'd', 'e']);
    expect(store.countJobs()).toMatchObject({ PENDING: 4, FAILED: 1, RUNNING: 0 });
  });
});

describe('attempts in the store', () => {
  test('attempts count up, one at a time, and keep their exits and restarts', () => {
    const store = openTestStore(temporaryStorePath());
    store.insertJob(newJob('a'));
    expect(store.openAttempt('a').number).toBe(1);
    expect(reasonOf(() => store.openAttempt('a'))).toBe('INTERNAL');
    const exit = {
      role: 'TRAINER',
      device: 'cpu:1',
      pid: 4711,
      exitCode: null,
      signal: 'SIGKILL',
      reason: 'EXECUTOR_CRASHED',
      logTail: 'last words',
    } as const;
    store.addExecutorExit('a', 1, exit);
    store.addExecutorRestart('a', 1);
    const end = { reason: 'EXECUTOR_CRASHED' as Reason, message: 'the Trainer died' };
    store.closeAttempt('a', 1, end);
    expect(reasonOf(() => store.closeAttempt('a', 1, end))).toBe('INTERNAL');
    expect(reasonOf(() => store.addExecutorRestart('a', 1))).toBe('INTERNAL');
    expect(reasonOf(() => store.addExecutorExit('a', 2, exit))).toBe('INTERNAL');
    expect(store.openAttempt('a').number).toBe(2);
    expect(store.getJob('a')?.attempts).toEqual([
      {
        number: 1,
        startAtMs: expect.any(Number),
        endAtMs: expect.any(Number),
        endReason: 'EXECUTOR_CRASHED',
        message: 'the Trainer died',
        executorRestarts: 1,
        resumed: null,
        exits: [exit],
      },
      {
        number: 2,
        startAtMs: expect.any(Number),
        endAtMs: null,
        endReason: 'NONE',
        message: '',
        executorRestarts: 0,
        resumed: null,
        exits: [],
      },
    ]);
  });

  test('an epoch is recorded once: repeated it is nothing, changed or early it is refused', () => {
    const store = openTestStore(temporaryStorePath());
    store.insertJob(newJob('a'));
    store.openAttempt('a');
    store.recordEpochs('a', 1, [epochReport(0)]);
    store.recordEpochs('a', 1, [
      { ...epochReport(0), batchesByDevice: { 'cpu:1': 6, 'cpu:0': 4 } },
    ]);
    expect(reasonOf(() => store.recordEpochs('a', 1, [{ ...epochReport(0), loss: 9 }]))).toBe(
      'INTERNAL',
    );
    expect(reasonOf(() => store.recordEpochs('a', 1, [epochReport(2)]))).toBe('INTERNAL');
    expect(reasonOf(() => store.recordEpochs('a', 2, [epochReport(0)]))).toBe('INTERNAL');
    store.recordEpochs('a', 1, [epochReport(1)]);
    expect(store.epochs('a', 1, 0, 10).map(({ report }) => report)).toEqual([
      epochReport(0),
      epochReport(1),
    ]);
    store.closeAttempt('a', 1, { reason: 'DAEMON_RESTARTED', message: '' });
    expect(reasonOf(() => store.recordEpochs('a', 1, [epochReport(2)]))).toBe('INTERNAL');
    store.openAttempt('a');
    expect(store.epochs('a', 2, 0, 10)).toEqual([]);
    expect(store.epochCount('a', 1)).toBe(2);
  });

  test('numbers that JSON does not have survive', () => {
    const store = openTestStore(temporaryStorePath());
    store.insertJob(newJob('a'));
    store.openAttempt('a');
    const report = { ...epochReport(0), trainAccuracy: Number.NaN, loss: Number.POSITIVE_INFINITY };
    store.recordEpochs('a', 1, [report]);
    store.recordEpochs('a', 1, [report]);
    expect(store.epochs('a', 1, 0, 10).map((epoch) => epoch.report)).toEqual([report]);
    const plan = { ...somePlan, k: Number.POSITIVE_INFINITY };
    expect(store.transition('a', { plan }).plan).toEqual(plan);
    expect(store.getJob('a')?.plan).toEqual(plan);
  });

  test('what could not be read back is not written', () => {
    const store = openTestStore(temporaryStorePath());
    store.insertJob(newJob('a'));
    const broken = { ...somePlan, queueCapacity: 1.5 };
    expect(() => store.transition('a', { plan: broken })).toThrow(/cannot store .*queueCapacity/);
    expect(store.getJob('a')?.plan).toBeNull();
    const badSpec = { ...someSpec, priority: Number.NaN };
    expect(() => store.insertJob({ ...newJob('b'), effectiveSpec: badSpec })).toThrow(TypeError);
    expect(store.getJob('b')).toBeNull();
  });
});

describe('request ids in the store', () => {
  test('a request is remembered with its effect, also by the next daemon', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    store.insertJob(newJob('a'), request);
    store.setIntent('a', 'CANCEL', { method: 'CancelJob', requestId: 'r-1', sha256: 'bb' });
    store.close();
    const again = openTestStore(path);
    expect(again.findRequest('CreateJob', 'r-1')).toMatchObject({
      sha256: 'aa',
      resource: 'jobs/a',
      revision: 1,
    });
    expect(again.findRequest('CancelJob', 'r-1')).toMatchObject({ sha256: 'bb', revision: 2 });
    expect(again.findRequest('CreateJob', 'r-2')).toBeNull();
  });

  test('an effect whose request id was used before is undone', () => {
    const store = openTestStore(temporaryStorePath());
    store.insertJob(newJob('a'), request);
    expect(reasonOf(() => store.insertJob(newJob('b'), request))).toBe('REQUEST_ID_REUSED');
    expect(store.getJob('b')).toBeNull();
    expect(store.revision()).toBe(1);
  });

  test('a request is forgotten after a day, but not while its job lives', () => {
    let nowMs = 1_000;
    const store = openTestStore(temporaryStorePath(), {
      clock: { wallMs: () => nowMs, monotonicMs: () => 0 },
    });
    store.insertJob(newJob('live'), { ...request, requestId: 'of-live' });
    store.insertJob(newJob('ended'), { ...request, requestId: 'of-ended' });
    store.transition('ended', { state: 'CANCELLED' });
    nowMs += 24 * 60 * 60 * 1000 + 1;
    store.insertJob(newJob('c'), { ...request, requestId: 'new' });
    expect(store.findRequest('CreateJob', 'of-live')).not.toBeNull();
    expect(store.findRequest('CreateJob', 'of-ended')).toBeNull();
  });
});

describe('transactions of the store', () => {
  test('what is done atomically is kept together or not at all', () => {
    const store = openTestStore(temporaryStorePath());
    store.insertJob(newJob('a'));
    expect(() =>
      store.atomically(() => {
        store.openAttempt('a');
        store.transition('a', { state: 'PREPARING' });
        throw new Error('power is out');
      }),
    ).toThrow('power is out');
    expect(store.getJob('a')).toMatchObject({ state: 'PENDING', attempts: [] });
    store.atomically(() => {
      store.openAttempt('a');
      store.transition('a', { state: 'PREPARING' });
    });
    expect(store.getJob('a')).toMatchObject({ state: 'PREPARING', attempts: [{ number: 1 }] });
    expect(store.revision()).toBe(2);
  });

  test('a refused part of a group leaves nothing when the group goes on', () => {
    const store = openTestStore(temporaryStorePath());
    store.insertJob(newJob('a'), request);
    store.atomically(() => {
      expect(reasonOf(() => store.insertJob(newJob('b'), request))).toBe('REQUEST_ID_REUSED');
      store.insertJob(newJob('c'));
    });
    expect(store.getJob('b')).toBeNull();
    expect(store.getJob('c')?.revision).toBe(2);
  });

  test('listeners hear of commits, once for a group, and never of what was undone', () => {
    const store = openTestStore(temporaryStorePath());
    const heard: number[] = [];
    const stop = store.onCommit(() => heard.push(store.revision()));
    store.onCommit(() => {
      throw new Error('a listener that fails');
    });
    store.insertJob(newJob('a'));
    store.atomically(() => {
      store.insertJob(newJob('b'));
      store.insertJob(newJob('c'));
    });
    expect(() => store.insertJob(newJob('a'))).toThrow(GnndError);
    store.setMeta('last_device', 'cpu:0');
    store.getJob('a');
    stop();
    store.insertJob(newJob('d'));
    expect(heard).toEqual([1, 3]);
  });

  test('the observer learns what each transaction was for and how it went', () => {
    const seen: StoreObservation[] = [];
    const store = openTestStore(temporaryStorePath(), { observe: (it) => seen.push(it) });
    seen.length = 0;
    store.insertJob(newJob('a'));
    expect(() => store.insertJob(newJob('a'))).toThrow(GnndError);
    store.atomically(() => store.transition('a', { state: 'FAILED' }));
    expect(seen.map(({ op, error }) => [op, error])).toEqual([
      ['INSERT_JOB', null],
      ['INSERT_JOB', null],
      ['GROUP', null],
    ]);
    expect(seen.every(({ seconds }) => seconds > 0)).toBe(true);
  });
});
