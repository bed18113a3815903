import Sqlite from 'better-sqlite3';
import { afterEach, expect, test, vi } from 'vitest';
import type { Store } from '../../../src/store/store.ts';
import { epochReport, newJob } from './job-values.ts';
import { openTestStore, temporaryStorePath } from './store-fixtures.ts';

/** What reading and writing cost after a long history: counted in rows that SQLite hands over. */

let rows = 0;
let statements = 0;

afterEach(() => {
  vi.restoreAllMocks();
});

/** Counts what the statements of every store do from now on. */
function count(): void {
  const prepare = Sqlite.prototype.prepare;
  vi.spyOn(Sqlite.prototype, 'prepare').mockImplementation(function (this: Sqlite.Database, sql) {
    const statement = prepare.call(this, sql);
    for (const method of ['get', 'all', 'run'] as const) {
      const original = statement[method].bind(statement) as (...cells: unknown[]) => unknown;
      Object.assign(statement, {
        [method]: (...cells: unknown[]) => {
          const answer = original(...cells);
          statements += 1;
          if (method === 'all') rows += (answer as unknown[]).length;
          else if (method === 'get') rows += answer === undefined ? 0 : 1;
          return answer;
        },
      });
    }
    return statement;
  });
}

function costOf(work: () => void): { rows: number; statements: number } {
  rows = 0;
  statements = 0;
  work();
  return { rows, statements };
}

const epochs = 3000;

/** A job in its second attempt, after 3,000 epochs in each. */
function longHistory(): Store {
  count();
  const store = openTestStore(temporaryStorePath());
  store.insertJob(newJob('a'));
  for (const attempt of [1, 2]) {
    store.openAttempt('a');
    store.transition('a', { state: 'PREPARING' });
    for (let first = 0; first < epochs; first += 500) {
      const reports = Array.from({ length: 500 }, (_, index) => epochReport(first + index));
      store.recordEpochs('a', attempt, reports);
    }
    if (attempt === 2) break;
    store.closeAttempt('a', attempt, { reason: 'DAEMON_RESTARTED', message: '' });
    store.transition('a', { state: 'PENDING' });
  }
  return store;
}

test('a job is read, moved and listed without its epochs', () => {
  const store = longHistory();
  const one = costOf(() => expect(store.getJob('a')?.attempts).toHaveLength(2));
  expect(one.rows).toBeLessThan(10);
  expect(costOf(() => store.transition('a', { phase: 'TRAINING' })).rows).toBeLessThan(20);
  expect(costOf(() => store.events('a', 0, 100)).rows).toBeLessThan(50);
  const query = { limit: 100, after: null, states: [] };
  expect(costOf(() => store.listJobs(query)).rows).toBeLessThan(10);
});

test('an epoch costs the same after 3,000 others as at first, and 100 at once little more', () => {
  const store = longHistory();
  const first = costOf(() => store.recordEpochs('a', 2, [epochReport(epochs)]));
  expect(first.rows).toBeLessThan(10);
  const reports = Array.from({ length: 100 }, (_, index) => epochReport(epochs + 1 + index));
  const many = costOf(() => store.recordEpochs('a', 2, reports));
  expect(many.statements).toBeLessThan(100 * 6);
  expect(store.epochCount('a', 2)).toBe(epochs + 101);
});

test('where a watch goes on is found with few looks, across attempts, too', () => {
  const store = longHistory();
  for (const [attempt, epoch] of [
    [2, 1234],
    [2, 0],
    [1, 2999],
    [1, 17],
    [1, 0],
  ] as const) {
    const [stored] = store.epochs('a', attempt, epoch, 1);
    const before = (stored?.revision ?? 0) - 1;
    const cost = costOf(() =>
      expect(store.epochPlaceAfter('a', before)).toEqual({ attempt, epoch }),
    );
    expect(cost.statements).toBeLessThan(40);
  }
  expect(store.epochPlaceAfter('a', store.revision())).toEqual({ attempt: 2, epoch: epochs });
});

test('jobs of one state are listed without a look at the others', () => {
  count();
  const store = openTestStore(temporaryStorePath());
  store.atomically(() => {
    for (let index = 0; index < 500; index += 1) {
      store.insertJob(newJob(`job-${index}`));
      if (index % 250 === 0) store.transition(`job-${index}`, { state: 'PREPARING' });
    }
  });
  const query = { limit: 50, after: null, states: ['PREPARING' as const] };
  let found: readonly string[] = [];
  const cost = costOf(() => {
    found = store.listJobs(query).map(({ id }) => id);
  });
  expect(found).toEqual(['job-250', 'job-0']);
  expect(cost.rows).toBeLessThan(5);
  // The index has the order: nothing is sorted, nothing else is met.
  const raw = new Sqlite(':memory:');
  raw.exec('CREATE TABLE jobs (state TEXT, create_at_ms INTEGER, uid TEXT, spec TEXT)');
  raw.exec('CREATE INDEX jobs_by_state ON jobs (state, create_at_ms, uid)');
  const plan = raw
    .prepare(
      `EXPLAIN QUERY PLAN SELECT * FROM jobs WHERE state = ? AND (create_at_ms, uid) < (?, ?)
       ORDER BY create_at_ms DESC, uid DESC LIMIT ?`,
    )
    .all('PREPARING', 1, '', 1) as { detail: string }[];
  raw.close();
  expect(plan.map(({ detail }) => detail).join()).toContain('USING INDEX jobs_by_state (state=?');
  expect(plan.map(({ detail }) => detail).join()).not.toContain('TEMP B-TREE');
});

test('pages of several states are in order and complete', () => {
  const store = openTestStore(temporaryStorePath());
  store.atomically(() => {
    for (let index = 0; index < 60; index += 1) {
      const id = `job-${index}`;
      store.insertJob(newJob(id));
      if (index % 3 === 1) store.transition(id, { state: 'CANCELLED' });
      if (index % 3 === 2) store.transition(id, { state: 'PREPARING' });
    }
  });
  const found: string[] = [];
  let after: { createAtMs: number; uid: string } | null = null;
  for (;;) {
    const page: ReturnType<Store['listJobs']> = store.listJobs({
      limit: 7,
      after,
      states: ['PENDING', 'CANCELLED'],
    });
    found.push(...page.map(({ id }) => id));
    const last = page.at(-1);
    if (last === undefined) break;
    after = { createAtMs: last.createAtMs, uid: last.uid };
  }
  const expected = Array.from({ length: 60 }, (_, index) => 59 - index)
    .filter((index) => index % 3 !== 2)
    .map((index) => `job-${index}`);
  expect(found).toEqual(expected);
});
