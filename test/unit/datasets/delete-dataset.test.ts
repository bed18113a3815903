import { existsSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Datasets } from '../../../src/datasets/datasets.ts';
import { MemoryStore } from './memory-store.ts';
import { request, trial } from './trial.ts';
import { folderOf, makeFolder, never, pathGraph } from './workbench.ts';

interface Bench {
  readonly store: MemoryStore;
  readonly folder: string;
  /** Starts the service of the next daemon on this folder and store. */
  readonly start: () => Datasets;
}

function bench(): Bench {
  const store = new MemoryStore();
  const folder = join(makeFolder(), 'datasets');
  const start = () => trial({ store, folder }).datasets;
  return { store, folder, start };
}

async function imported(datasets: Datasets, id: string, source = folderOf(pathGraph)) {
  const operation = await datasets.import(request(id, source));
  await datasets.waitOperation(operation.id, 10_000, never);
  return datasets.get(id);
}

function begun(datasets: Datasets, id: string) {
  const end = imported(datasets, id);
  const started = (async () => {
    while (!datasets.list({ limit: 1, afterId: null }).datasets.some((known) => known.id === id)) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  return { end, started };
}

const asked = (id: string, more: { allowMissing?: boolean; requestId?: string } = {}) => ({
  id,
  allowMissing: more.allowMissing ?? false,
  requestId: more.requestId ?? null,
});

describe('deleting a dataset', () => {
  test('removes its files, says how many bytes, and frees its id', async () => {
    const { folder, start } = bench();
    const datasets = start();
    const { bytes } = await imported(datasets, 'mine');
    expect(datasets.delete(asked('mine'))).toBe(bytes);
    expect(() => datasets.get('mine')).toThrow('there is no dataset');
    expect((await imported(datasets, 'mine')).state).toBe('READY');
    await datasets.close();
    expect(readdirSync(folder)).toEqual(['mine']);
  });

  test('of a failed import removes the record', async () => {
    const { start } = bench();
    const datasets = start();
    const { 'labels.npy': _, ...broken } = pathGraph;
    expect((await imported(datasets, 'mine', folderOf(broken))).state).toBe('FAILED');
    expect(datasets.delete(asked('mine'))).toBe(0);
    expect(datasets.list({ limit: 10, afterId: null }).datasets).toEqual([]);
  });

  test('is refused while jobs use it, and names them', async () => {
    const { store, start } = bench();
    const datasets = start();
    await imported(datasets, 'mine');
    for (let i = 0; i < 12; i++) store.jobs.push({ id: `job-${i}`, dataset: 'mine' });
    expect(() => datasets.delete(asked('mine'))).toThrow(/job-0, job-1, .*, job-9 and more$/);
    expect(datasets.get('mine').state).toBe('READY');
  });

  test('is refused while it is being imported', async () => {
    const { start } = bench();
    const datasets = start();
    const { end, started } = begun(datasets, 'mine');
    await started;
    expect(() => datasets.delete(asked('mine'))).toThrow('is being worked on by operation');
    await end;
  });

  test('twice with one request id has one effect; one that is not there is an error', async () => {
    const { start } = bench();
    const datasets = start();
    await imported(datasets, 'mine');
    const requestId = 'r';
    datasets.delete(asked('mine', { requestId }));
    await imported(datasets, 'mine');
    expect(datasets.delete(asked('mine', { requestId }))).toBe(0);
    expect(datasets.get('mine').state).toBe('READY');
    expect(() => datasets.delete(asked('other', { requestId }))).toThrow(requestId);
    expect(() => datasets.delete(asked('other'))).toThrow('there is no dataset');
    expect(datasets.delete(asked('other', { allowMissing: true }))).toBe(0);
  });
});

describe('a crash in the deletion of a dataset', () => {
  const aside = (id: string) => `.deleted-${id}-00000000-0000-4000-8000-000000000000`;

  test('before its record was gone leaves the dataset', async () => {
    const { folder, start } = bench();
    const before = await imported(start(), 'my-data');
    renameSync(join(folder, 'my-data'), join(folder, aside('my-data')));
    const datasets = start();
    expect(datasets.get('my-data')).toEqual(before);
    expect(existsSync(join(folder, 'my-data', 'dataset.json'))).toBe(true);
  });

  test('after that is followed by a start that removes the files', async () => {
    const { folder, store, start } = bench();
    await imported(start(), 'mine');
    renameSync(join(folder, 'mine'), join(folder, aside('mine')));
    store.datasets.delete('mine');
    const datasets = start();
    await datasets.close();
    expect(readdirSync(folder)).toEqual([]);
    expect(datasets.list({ limit: 10, afterId: null }).datasets).toEqual([]);
  });

  test('does not bring back an older dataset of that id', async () => {
    const { folder, start } = bench();
    await imported(start(), 'mine');
    renameSync(join(folder, 'mine'), join(folder, aside('mine')));
    mkdirSync(join(folder, 'mine'));
    await start().close();
    expect(readdirSync(folder)).toEqual(['mine']);
  });
});

test('a dataset whose folder is gone at a start is FAILED until it is back', async () => {
  const { folder, start } = bench();
  const before = await imported(start(), 'mine');
  const away = join(folder, '..', 'elsewhere');
  renameSync(join(folder, 'mine'), away);
  const gone = start().get('mine');
  expect(gone.state).toBe('FAILED');
  expect(gone.message).toContain(`its folder ${join(folder, 'mine')} was gone`);
  renameSync(away, join(folder, 'mine'));
  expect(start().get('mine')).toEqual(before);
});
