import { expect, test } from 'vitest';
import { GnndError } from '../../../src/base/errors.ts';
import type { PreparedJob } from '../../../src/jobs/submissions.ts';
import { createSubmissions } from '../../../src/jobs/submissions.ts';
import type { JobRecord } from '../../../src/records/job-record.ts';
import type { StoreObservation } from '../../../src/store/store.ts';
import { newJob } from '../store/job-values.ts';
import { openTestStore, temporaryStorePath } from '../store/store-fixtures.ts';

const call = (id: string, requestId: string | null = null): PreparedJob => ({
  id,
  spec: {},
  validateOnly: false,
  createdBy: 'ann',
  requestId,
  uid: `uid-${id}`,
  checked: { error: new Error('not asked for here') },
});

function workbench(refuse: (id: string) => unknown = () => null) {
  const transactions: StoreObservation[] = [];
  const path = temporaryStorePath();
  const store = openTestStore(path, { observe: (observation) => transactions.push(observation) });
  transactions.length = 0;
  const submitted: JobRecord[] = [];
  const others: number[] = [];
  const submissions = createSubmissions({
    store,
    make({ id, requestId }, count) {
      others.push(count);
      const error = refuse(id ?? '');
      if (error !== null) throw error;
      const request = { method: 'CreateJob', requestId: requestId ?? '', sha256: 'aa' };
      const first = requestId === null ? null : store.findRequest('CreateJob', requestId);
      const known = first === null ? null : store.getJob(first.resource.slice('jobs/'.length));
      if (known !== null) return { job: known, isNew: false };
      const job = store.insertJob(newJob(id ?? ''), ...(requestId === null ? [] : [request]));
      return { job, isNew: true };
    },
    submit: (jobs) => submitted.push(...jobs),
  });
  return { store, transactions, submitted, submissions, others };
}

test('1,000 at once are stored in few transactions, each once, and answered after it', async () => {
  const { store, transactions, submitted, submissions } = workbench();
  const ids = Array.from({ length: 1000 }, (_, index) => `job-${index}`);
  const jobs = await Promise.all(ids.map((id) => submissions.create(call(id))));
  expect(jobs.map(({ id }) => id)).toEqual(ids);
  expect(submitted.map(({ id }) => id)).toEqual(ids);
  expect(store.countJobs().PENDING).toBe(1000);
  // Each is a sync of the disk.
  expect(transactions.length).toBeLessThanOrEqual(Math.ceil(1000 / 32));
});

test('one that is refused is refused alone and leaves nothing', async () => {
  const refusal = new GnndError('SPEC_INVALID', 'no');
  const { store, submitted, submissions, others } = workbench((id) =>
    id === 'bad' ? refusal : null,
  );
  const outcomes = await Promise.allSettled(
    ['a', 'bad', 'a', 'b'].map((id) => submissions.create(call(id))),
  );
  expect(outcomes.map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'rejected',
    'fulfilled',
  ]);
  expect(outcomes[2]).toMatchObject({ reason: { reason: 'JOB_EXISTS' } });
  expect(submitted.map(({ id }) => id)).toEqual(['a', 'b']);
  expect(store.countJobs().PENDING).toBe(2);
  // Other new jobs that each job is counted with against the length of the queue.
  expect(others).toEqual([0, 1, 1, 1]);
});

test('the same request twice in one transaction makes one job', async () => {
  const { submitted, submissions } = workbench();
  const jobs = await Promise.all([
    submissions.create(call('a', 'r')),
    submissions.create(call('b', 'r')),
  ]);
  expect(jobs.map(({ id }) => id)).toEqual(['a', 'a']);
  expect(submitted).toHaveLength(1);
});

test('a store that cannot write refuses all and keeps none', async () => {
  const full = new GnndError('STATE_DISK_FULL', 'no space left');
  let isFull = true;
  const { store, submitted, submissions } = workbench((id) => (id === 'c' && isFull ? full : null));
  const all = () =>
    Promise.allSettled(['a', 'b', 'c', 'd'].map((id) => submissions.create(call(id))));
  for (const outcome of await all()) expect(outcome).toMatchObject({ reason: full });
  expect(store.countJobs().PENDING).toBe(0);
  expect(submitted).toEqual([]);
  isFull = false;
  for (const outcome of await all()) expect(outcome).toMatchObject({ status: 'fulfilled' });
});
