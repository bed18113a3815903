import { describe, expect, test } from 'vitest';
import { GnndError } from '../../../src/base/errors.ts';
import { newDataset } from './job-values.ts';
import { openTestStore, temporaryStorePath } from './store-fixtures.ts';

describe('datasets in the store', () => {
  test('a dataset is stored, changed and read back, also by another daemon', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    const inserted = store.insertDataset(newDataset('cora'));
    expect(inserted).toMatchObject({ ...newDataset('cora'), createAtMs: expect.any(Number) });
    const ready = store.updateDataset('cora', { state: 'READY', digest: 'd', numNodes: 2708 });
    expect(ready).toEqual({ ...inserted, state: 'READY', digest: 'd', numNodes: 2708 });
    store.close();
    expect(openTestStore(path).getDataset('cora')).toEqual(ready);
  });

  test('a name is given once, and an unknown one cannot be changed', () => {
    const store = openTestStore(temporaryStorePath());
    store.insertDataset(newDataset('cora'));
    expect(() => store.insertDataset(newDataset('cora'))).toThrow(/there is a dataset cora/);
    expect(() => store.updateDataset('pubmed', { state: 'READY' })).toThrow(/no dataset pubmed/);
    expect(store.getDataset('pubmed')).toBeNull();
  });

  test('pages go by name and meet every dataset once', () => {
    const store = openTestStore(temporaryStorePath());
    for (const id of ['c', 'a', 'd', 'b']) store.insertDataset(newDataset(id));
    const first = store.listDatasets({ limit: 3, afterId: null }).map((it) => it.id);
    const second = store.listDatasets({ limit: 3, afterId: 'c' }).map((it) => it.id);
    expect([first, second]).toEqual([['a', 'b', 'c'], ['d']]);
  });

  test('counts cover every state', () => {
    const store = openTestStore(temporaryStorePath());
    store.insertDataset({ ...newDataset('a'), bytes: 5 });
    store.insertDataset({ ...newDataset('b'), state: 'READY', bytes: 7 });
    expect(store.countDatasets()).toEqual({
      byState: { IMPORTING: 1, READY: 1, FAILED: 0 },
      bytes: 12,
    });
  });
});

describe('operations in the store', () => {
  const operation = { id: 'op-1', kind: 'ImportDataset', target: 'cora' } as const;

  test('progress stays in memory, the end is durable', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    const begun = store.insertOperation(operation);
    expect(begun).toMatchObject({ ...operation, done: false, progress: 0, endAtMs: null });
    store.updateOperation('op-1', { progress: 0.5 });
    store.updateOperation('op-1', { message: 'hashes features' });
    expect(store.getOperation('op-1')).toMatchObject({ progress: 0.5, message: 'hashes features' });
    const ended = store.updateOperation('op-1', {
      message: 'done',
      end: { error: null, validation: null },
    });
    expect(ended).toMatchObject({ done: true, progress: 1, message: 'done' });
    expect(() => store.updateOperation('op-1', { progress: 0 })).toThrow(GnndError);
    store.close();
    expect(openTestStore(path).getOperation('op-1')).toEqual(ended);
  });

  test('a failure keeps its problems and how far it came', () => {
    const store = openTestStore(temporaryStorePath());
    store.insertOperation({ ...operation, kind: 'ValidateDataset' });
    store.updateOperation('op-1', { progress: 0.25 });
    const problems = [{ path: 'indptr.npy', description: 'not monotone at 7' }];
    const error = { reason: 'DATASET_CORRUPT', message: 'one file is wrong', problems };
    const validation = { problems, problemCount: 1 };
    store.updateOperation('op-1', { end: { error, validation } });
    expect(store.getOperation('op-1')).toMatchObject({ progress: 0.25, error, validation });
  });

  test('the next daemon finds what was left behind, without its progress', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    store.insertOperation(operation);
    store.insertOperation({ ...operation, id: 'op-2' });
    store.updateOperation('op-1', { progress: 0.5 });
    store.updateOperation('op-2', { end: { error: null, validation: null } });
    store.close();
    const left = openTestStore(path).unfinishedOperations();
    expect(left.map((it) => [it.id, it.progress])).toEqual([['op-1', 0]]);
  });

  test('a dataset, its operation and the request that made them are kept together', () => {
    const store = openTestStore(temporaryStorePath());
    const request = { method: 'ImportDataset', requestId: 'r', sha256: 'aa' };
    store.insertOperation(operation, request);
    expect(() =>
      store.atomically(() => {
        store.insertDataset(newDataset('cora'));
        store.insertOperation({ ...operation, id: 'op-2' }, request);
      }),
    ).toThrow(/already used for operations\/op-1/);
    expect(store.getDataset('cora')).toBeNull();
    expect(store.getOperation('op-2')).toBeNull();
  });
});
