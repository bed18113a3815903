import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { openTestStore, temporaryFolder } from './store-fixtures.ts';

/**
 * A store that gnnd wrote when its schema had version 8 and specs were kept as JSON, and what that
 * gnnd read from it: jobs of every model and sampler, queued, running, ended and deleted.
 */
const fixture = (name: string) => new URL(`../../fixtures/${name}`, import.meta.url);
const written: { readonly jobs: readonly { readonly id: string; readonly events: unknown[] }[] } =
  JSON.parse(readFileSync(fixture('store-v8.json'), 'utf8'));

function openOldStore() {
  const path = join(temporaryFolder(), 'gnnd.db');
  writeFileSync(path, gunzipSync(readFileSync(fixture('store-v8.db.gz'))));
  return { path, store: openTestStore(path) };
}

test('a store of version 8 opens with every job as it was', () => {
  const { store } = openOldStore();
  const jobs = store.listJobs({ limit: 100, after: null, states: [] });
  expect(jobs.map(({ id }) => id)).toEqual(written.jobs.map(({ id }) => id));
  for (const { id, events, ...job } of written.jobs) {
    expect(store.getJob(id), id).toMatchObject(job);
    const seen = store.events(id, 0, 100).map((event) => {
      expect(event.job, id).toMatchObject({ ...event.job, id });
      return { revision: event.revision, state: event.job.state };
    });
    expect(seen, id).toEqual(events);
  }
  expect(store.jobsUsing('cora', 10)).toEqual(['queued-least', 'queued-gcn', 'queued-again']);
  expect(store.deletionOf('deleted', 0)?.job.effectiveSpec.priority).toBe(1000);
});

test('jobs of a store of version 8 go on, and are found again', () => {
  const { path, store } = openOldStore();
  store.openAttempt('queued-gcn');
  store.transition('queued-gcn', { state: 'PREPARING' });
  store.transition('running-gat', { state: 'RUNNING', message: 'goes on' });
  store.close();
  const again = openTestStore(path);
  for (const id of ['queued-gcn', 'running-gat']) {
    const before = written.jobs.find((job) => job.id === id) as unknown as object;
    expect(again.getJob(id)).toMatchObject({
      spec: Reflect.get(before, 'spec') as object,
      effectiveSpec: Reflect.get(before, 'effectiveSpec') as object,
    });
  }
  expect(again.getJob('queued-gcn')?.state).toBe('PREPARING');
  expect(again.getJob('running-gat')?.message).toBe('goes on');
});
