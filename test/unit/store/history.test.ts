import { expect, test } from 'vitest';
import { canTransition } from '../../../src/jobs/job-state.ts';
import {
  type JobRecord,
  jobStates,
  reasons,
  terminalStates,
} from '../../../src/records/job-record.ts';
import type { Store } from '../../../src/store/store.ts';
import { epochReport, newJob, somePlan } from './job-values.ts';
import { openTestStore, temporaryStorePath } from './store-fixtures.ts';

/** A small generator of pseudo-random numbers (xorshift32). */
function random(seed: number): (below: number) => number {
  let state = seed | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** One random step of a job; returns the job when the step has a revision. */
function step(store: Store, id: string, pick: (below: number) => number): JobRecord | null {
  const job = store.getJob(id);
  if (job === null || terminalStates.has(job.state)) return null;
  const open = job.attempts.find((attempt) => attempt.endAtMs === null);
  const kind = pick(8);
  if (kind === 0 && job.intent === 'RUN') return store.setIntent(id, 'CANCEL');
  if (kind === 1) return store.transition(id, { message: `m${pick(100)}`, plan: somePlan });
  if (kind === 2) {
    // Ends are rare, so that histories get long.
    const next = jobStates.filter(
      (to) => canTransition(job.state, to) && (!terminalStates.has(to) || pick(6) === 0),
    );
    const state = next[pick(Math.max(1, next.length))];
    const reason = reasons[pick(reasons.length)];
    if (state === undefined || reason === undefined) return null;
    return store.transition(id, { state, reason });
  }
  if (open === undefined) store.openAttempt(id);
  else if (kind === 3) store.closeAttempt(id, open.number, { reason: 'BACKOFF', message: 'why' });
  else if (kind === 4) store.addExecutorRestart(id, open.number);
  else if (kind === 5) {
    store.addExecutorExit(id, open.number, {
      role: 'SAMPLER',
      device: 'cpu:0',
      pid: 1 + pick(1000),
      exitCode: pick(2) === 0 ? null : pick(20),
      signal: pick(2) === 0 ? null : 'SIGKILL',
      reason: 'EXECUTOR_CRASHED',
      logTail: 'tail',
    });
  } else {
    const first = store.epochCount(id, open.number);
    store.recordEpochs(id, open.number, [epochReport(first), epochReport(first + 1)]);
  }
  return null;
}

test('events show each job exactly as it was at their revision, whatever happened since', () => {
  const seed = Number(process.env['GNND_SEED'] ?? Date.now() % 1_000_000);
  const pick = random(seed);
  const store = openTestStore(temporaryStorePath());
  const shown = new Map<string, JobRecord[]>();
  for (const id of ['a', 'b', 'c', 'd']) shown.set(id, [store.insertJob(newJob(id))]);
  for (let i = 0; i < 300; i++) {
    const id = ['a', 'b', 'c', 'd'][pick(4)] ?? 'a';
    const job = step(store, id, pick);
    if (job !== null) shown.get(id)?.push(job);
  }
  for (const [id, jobs] of shown) {
    const events = store.events(id, 0, 1000);
    expect(
      events.map((event) => event.job),
      `job ${id} with GNND_SEED=${seed}`,
    ).toEqual(jobs);
    expect(events.map((event) => event.revision)).toEqual(jobs.map((job) => job.revision));
  }
  // Every revision is an event or an epoch, each of them once.
  const revisions = [...shown.keys()].flatMap((id) => {
    const attempts = store.getJob(id)?.attempts ?? [];
    const numbers = Array.from({ length: attempts.at(-1)?.number ?? 0 }, (_, index) => index + 1);
    return [
      ...store.events(id, 0, 1000).map(({ revision }) => revision),
      ...numbers.flatMap((attempt) =>
        store.epochs(id, attempt, 0, 1000).map(({ revision }) => revision),
      ),
    ];
  });
  expect(revisions.sort((a, b) => a - b)).toEqual(
    Array.from({ length: store.revision() }, (_, index) => index + 1),
  );
});
