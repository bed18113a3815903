import { describe, expect, test } from 'vitest';
import { decide, initialState, nextWakeMs } from '../../../src/scheduler/scheduler.ts';
import type { QueuedJob, SchedulerEvent, SchedulerState } from '../../../src/scheduler/state.ts';
import { viewQueue } from '../../../src/scheduler/waiting.ts';
import { plainRequest } from './script-language.ts';

/** What one event costs when the queue is long: counted in visits of jobs that wait. */

const queued = 10_000;
const head = { jobId: 'job-0', attempt: 1, nowMs: 1 };

/** One job RUNNING on both devices, `queued` behind it. */
function longQueue(): SchedulerState {
  const jobs = Array.from({ length: queued + 1 }, (_, index) => ({
    ...plainRequest,
    jobId: `job-${index}`,
    createdAtMs: index,
  }));
  const epoch = { batches: 10, slots: 10 };
  const timings = { samplerBatchNs: 100, trainerBatchNs: 200, standbyBatchNs: 300, parts: null };
  const events: SchedulerEvent[] = [
    { kind: 'devicesFound', nowMs: 0, names: ['cpu:0', 'cpu:1'] },
    { kind: 'submitted', nowMs: 0, jobs },
    { kind: 'prepared', ...head },
    { kind: 'calibrated', ...head, timings, epoch, standbyRoom: [] },
  ];
  let state = initialState;
  for (const event of events) state = decide(state, event).state;
  for (const { executor } of state.running[0]?.stage.executors ?? []) {
    state = decide(state, { kind: 'executorReady', ...head, executor }).state;
  }
  expect(state.running[0]?.stage.kind).toBe('RUNNING');
  expect(state.queue).toHaveLength(queued);
  return state;
}

/** The same state, whose queued jobs are counted whenever something of them is read. */
function watched(state: SchedulerState): { state: SchedulerState; visits: () => number } {
  let visits = 0;
  const queue = state.queue.map(
    (job) =>
      new Proxy<QueuedJob>(job, {
        get(target, key) {
          visits += 1;
          return Reflect.get(target, key);
        },
      }),
  );
  return { state: { ...state, queue }, visits: () => visits };
}

describe(`with ${queued} jobs in the queue`, () => {
  test('steps of a running job visit none of them', () => {
    const { state, visits } = watched(longQueue());
    nextWakeMs(state);
    const before = visits();
    let after = state;
    const timings = { samplerBatchNs: 100, trainerBatchNs: 200, standbyBatchNs: 300, parts: null };
    for (let step = 1; step <= 100; step += 1) {
      after = decide(after, { kind: 'progress', ...head, committedBatches: step }).state;
      after = decide(after, { kind: 'epochEnded', ...head, epoch: step, timings }).state;
      nextWakeMs(after);
    }
    expect(after.running[0]?.stage.committedBatches).toBe(100);
    expect(visits() - before).toBe(0);
  });

  test('a job that joins visits a few, a job that leaves its devices the first', () => {
    const { state, visits } = watched(longQueue());
    const job = { ...plainRequest, jobId: 'late', createdAtMs: queued / 2 };
    const joined = decide(state, { kind: 'submitted', nowMs: 2, jobs: [job] });
    expect(joined.state.queue).toHaveLength(queued + 1);
    expect(visits()).toBeLessThan(100);

    const stopping = decide(state, { kind: 'completed', ...head }).state;
    const before = visits();
    const left = decide(stopping, { kind: 'stopped', ...head, jitter: 0 });
    expect(left.state.running[0]?.request.jobId).toBe('job-1');
    expect(visits() - before).toBeLessThan(100);
  });

  test('they are put in order with few comparisons when they come at once', () => {
    let visits = 0;
    const requests = Array.from({ length: queued }, (_, index) => ({
      ...plainRequest,
      jobId: `job-${index}`,
      get priority() {
        visits += 1;
        return 100;
      },
      createdAtMs: (index * 7919) % queued,
    }));
    const state = decide(initialState, { kind: 'submitted', nowMs: 0, jobs: requests }).state;
    const ages = state.queue.map(({ request }) => request.createdAtMs);
    expect(ages).toEqual([...ages].sort((left, right) => left - right));
    // Two reads a comparison, at most log2(n) + 1 comparisons to find a place.
    expect(visits / queued).toBeLessThan(2 * 16);
  });

  test('one walk answers what a whole page waits for, in short sentences', () => {
    const { state, visits } = watched(longQueue());
    const view = viewQueue(state);
    const page = state.queue.slice(-100).map((_, index) => `job-${queued - index}`);
    const answers = page.map((jobId) => view.waitingFor(jobId));
    expect(answers[0]?.message).toBe(
      'needs 2 devices, 0 of 2 free: cpu:0 is held by job-0, cpu:1 is held by job-0; ' +
        `${queued - 1} ahead, first job-1`,
    );
    expect(answers.map((answer) => answer?.ahead)).toEqual(
      page.map((_, index) => queued - 1 - index),
    );
    for (const answer of answers) expect(answer?.message.length).toBeLessThan(200);
    expect(visits() / queued).toBeLessThan(6);
  });

  test('those whose patience ends at once do so a few at a time', () => {
    let state = longQueue();
    const nowMs = plainRequest.timeouts.pendingMs + 10;
    const sizes: number[] = [];
    for (let turn = 0; turn < 3; turn += 1) {
      const decision = decide(state, { kind: 'tick', nowMs, jitter: 0 });
      sizes.push(decision.commands.filter(({ kind }) => kind === 'finish').length);
      state = decision.state;
      expect(nextWakeMs(state)).toBeLessThanOrEqual(nowMs);
    }
    for (const size of sizes) expect(size).toBeGreaterThan(0);
    for (const size of sizes) expect(size).toBeLessThanOrEqual(32);
  });
});
