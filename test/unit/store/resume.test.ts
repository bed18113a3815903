import { expect, test } from 'vitest';
import type { Store } from '../../../src/store/store.ts';
import { epochReport, newJob } from './job-values.ts';
import { openTestStore, temporaryStorePath } from './store-fixtures.ts';

/** Attempts that go on from an image: whose epochs are whose. */

const point = { epochs: 3, batches: 2, image: 'epoch-00000003-batch-0000000002.image' };
const reports = (first: number, count: number) =>
  Array.from({ length: count }, (_, index) => epochReport(first + index));
const epochsOf = (store: Store, attempt: number) =>
  store.epochs('a', attempt, 0, 100).map(({ report }) => report.epoch);

/** A job whose first attempt reported so many epochs and ended; the second one is open. */
function secondAttempt(path: string, epochs: number): Store {
  const store = openTestStore(path);
  store.insertJob(newJob('a'));
  store.openAttempt('a');
  store.transition('a', { state: 'PREPARING' });
  store.recordEpochs('a', 1, reports(0, epochs));
  store.closeAttempt('a', 1, { reason: 'DAEMON_RESTARTED', message: '' });
  store.transition('a', { state: 'PENDING' });
  store.openAttempt('a');
  store.transition('a', { state: 'PREPARING' });
  return store;
}

test('an attempt that goes on takes over the epochs before it, with their revisions', () => {
  const store = secondAttempt(temporaryStorePath(), 5);
  const before = store.epochs('a', 1, 0, 100);
  expect(store.epochsBefore('a', 2)).toBe(5);
  store.resumeAttempt('a', 2, { ...point, otherBuild: true }, 3);
  expect(store.epochs('a', 2, 0, 100)).toEqual(before.slice(0, 3));
  expect(epochsOf(store, 1)).toEqual([]);
  expect(store.epochCount('a', 2)).toBe(3);
  // Epochs that are trained again are recorded again, and nothing else is.
  store.recordEpochs('a', 2, reports(3, 3));
  expect(epochsOf(store, 2)).toEqual([0, 1, 2, 3, 4, 5]);
  const revision = before[1]?.revision ?? 0;
  expect(store.epochPlaceAfter('a', revision)).toEqual({ attempt: 2, epoch: 2 });
  expect(store.epochPlaceAfter('a', 0)).toEqual({ attempt: 2, epoch: 0 });
});

test('scales of epochs that are trained again are kept, however often', () => {
  const store = secondAttempt(temporaryStorePath(), 4);
  const scales = store.scalesOf('a');
  expect(scales.length).toBe(4);
  store.resumeAttempt('a', 2, { ...point, otherBuild: false }, 1);
  expect(store.epochsBefore('a', 3)).toBe(1);
  store.closeAttempt('a', 2, { reason: 'EXECUTOR_CRASHED', message: '' });
  store.openAttempt('a');
  expect(store.scalesOf('a')).toEqual(scales);
});

test('events show where an attempt went on from then on, and no earlier', () => {
  const path = temporaryStorePath();
  const store = secondAttempt(path, 4);
  const earlier = store.getJob('a');
  store.resumeAttempt('a', 2, { ...point, otherBuild: false }, 3);
  const later = store.transition('a', { message: 'goes on' });
  const resumed = { ...point, otherBuild: false };
  expect(earlier?.attempts.map((attempt) => attempt.resumed)).toEqual([null, null]);
  expect(later.attempts.map((attempt) => attempt.resumed)).toEqual([null, resumed]);
  const events = store.events('a', 0, 100).map(({ job }) => job);
  expect(events.slice(-2)).toEqual([earlier, later]);
  store.close();
  expect(openTestStore(path).getJob('a')).toEqual(later);
});

test('one without reports in between changes nothing, and a third goes on with the second', () => {
  const store = secondAttempt(temporaryStorePath(), 4);
  store.closeAttempt('a', 2, { reason: 'STARTUP_TIMEOUT', message: '' });
  store.openAttempt('a');
  expect(store.epochsBefore('a', 3)).toBe(4);
  store.resumeAttempt('a', 3, { ...point, otherBuild: false }, 4);
  expect([1, 2, 3].map((attempt) => store.epochCount('a', attempt))).toEqual([0, 0, 4]);
  store.closeAttempt('a', 3, { reason: 'EXECUTOR_CRASHED', message: '' });
  store.openAttempt('a');
  store.resumeAttempt('a', 4, { ...point, otherBuild: false }, 4);
  expect(epochsOf(store, 4)).toEqual([0, 1, 2, 3]);
});

test('an attempt that has begun, or has ended, does not go on from elsewhere', () => {
  const store = secondAttempt(temporaryStorePath(), 4);
  store.recordEpochs('a', 2, reports(0, 1));
  const resume = () => store.resumeAttempt('a', 2, { ...point, otherBuild: false }, 3);
  expect(resume).toThrow('has epochs already');
  expect(store.epochCount('a', 1)).toBe(4);
  store.closeAttempt('a', 2, { reason: 'EXECUTOR_CRASHED', message: '' });
  expect(resume).toThrow('attempt 2 has ended');
});
