import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { OperationRecord } from '../../../src/records/dataset-record.ts';
import { MemoryStore } from './memory-store.ts';
import { ended, errorOfCall, gatedValidator, request, settled, stuckOnly, trial } from './trial.ts';
import {
  folderOf,
  int32,
  int64,
  makeFolder,
  npy,
  pathGraph,
  trustingValidator,
} from './workbench.ts';

describe('an import', () => {
  test('makes a READY dataset out of a source', async () => {
    const native = trustingValidator();
    const { datasets, folder } = trial({ native });
    const started = await datasets.import(request('path', folderOf(pathGraph)));
    expect(started).toMatchObject({ kind: 'ImportDataset', target: 'path', done: false });
    expect(datasets.get('path').state).toBe('IMPORTING');
    expect(await ended(datasets, started)).toMatchObject({ done: true, error: null });
    const dataset = datasets.get('path');
    expect(dataset).toMatchObject({
      state: 'READY',
      path: join(folder, 'path'),
      numNodes: 3,
      numEdges: 4,
      numFeatures: 2,
      featureDtype: 'float32',
      numClasses: 2,
      numTrain: 1,
      numVal: 1,
      numTest: 0,
    });
    expect(dataset.digest).toMatch(/^[0-9a-f]{64}$/);
    expect(dataset.bytes).toBeGreaterThan(7 * 128);
    expect(readdirSync(folder)).toEqual(['path']);
    expect(native.asked).toEqual([
      {
        ...{ numNodes: 3, numEdges: 4, numFeatures: 2, featureDtype: 'float32' },
        ...{ task: 'CLASSIFICATION', numClasses: 2, train: 1, val: 1, test: 0 },
      },
    ]);
  });

  test('keeps features in float16 where asked to, or where the source has them so', async () => {
    const native = trustingValidator();
    const { datasets } = trial({ native });
    const halves = npy('float16', [3, 2], Uint16Array.of(1, 2, 3, 4, 5, 6));
    const source = folderOf({ ...pathGraph, 'features.npy': halves });
    await ended(datasets, await datasets.import(request('as-it-is', source)));
    const asked = request('asked', folderOf(pathGraph), { featureDtype: 'float16' });
    await ended(datasets, await datasets.import(asked));
    await ended(
      datasets,
      await datasets.import(request('wide', source, { featureDtype: 'float32' })),
    );
    const dtypes = ['as-it-is', 'asked', 'wide'].map((id) => datasets.get(id).featureDtype);
    expect(dtypes).toEqual(['float16', 'float16', 'float32']);
    expect(native.asked.map(({ featureDtype }) => featureDtype)).toEqual(dtypes);
  });

  test('is found by a daemon that does not know it, but not with strange features', async () => {
    const { datasets, folder } = trial();
    for (const id of ['plain', 'half', 'strange']) {
      await ended(datasets, await datasets.import(request(id, folderOf(pathGraph))));
    }
    const dtypes = { plain: 'float32', half: 'float16', strange: 'bfloat16' };
    for (const [id, dtype] of Object.entries(dtypes)) {
      const path = join(folder, id, 'dataset.json');
      const manifest = { ...JSON.parse(readFileSync(path, 'utf8')), feature_dtype: dtype };
      rmSync(path);
      writeFileSync(path, JSON.stringify(manifest));
    }
    const found = trial({ folder }).datasets.list({ limit: 10, afterId: null }).datasets;
    expect(found.map(({ id, featureDtype }) => [id, featureDtype])).toEqual([
      ['half', 'float16'],
      ['plain', 'float32'],
    ]);
  });

  test('gives the same digest for the same name and content', async () => {
    const source = folderOf(pathGraph);
    const digests = [];
    for (const _ of [1, 2]) {
      const { datasets } = trial();
      await ended(datasets, await datasets.import(request('path', source)));
      digests.push(datasets.get('path').digest);
    }
    expect(digests[0]).toBe(digests[1]);
  });

  test('of a bad source names every problem, leaves nothing, and may be repeated', async () => {
    const { datasets, folder } = trial();
    const source = folderOf({ ...pathGraph, 'labels.npy': int32(1), 'val.npy': 'x' });
    const operation = await ended(datasets, await datasets.import(request('path', source)));
    expect(operation.error).toMatchObject({
      reason: 'DATASET_CORRUPT',
      problems: [{ path: 'val.npy' }, { path: 'labels.npy' }],
    });
    expect(datasets.get('path')).toMatchObject({
      state: 'FAILED',
      message: expect.stringMatching(/^val\.npy: is not a/),
    });
    expect(readdirSync(folder)).toEqual([]);
    await ended(datasets, await datasets.import(request('path', folderOf(pathGraph))));
    const message = 'there is no test split: jobs report validation metrics only';
    expect(datasets.get('path')).toMatchObject({ state: 'READY', message });
  });

  test('without a training node is refused, however it came', async () => {
    const { datasets } = trial();
    const arrays = folderOf({ ...pathGraph, 'train.npy': int64() });
    const nodes = 'id,label,split,x\na,0,val,1\nb,1,test,2\n';
    const tables = folderOf({ 'nodes.csv': nodes, 'edges.csv': 'source,target\na,b\n' });
    for (const source of [arrays, tables]) {
      const { error } = await ended(datasets, await datasets.import(request('empty', source)));
      expect(error?.message).toContain('train: the training split is empty');
    }
  });

  test('fails when the native check finds something', async () => {
    const problem = { path: 'indptr.npy', description: 'must not decrease' };
    const native = {
      datasetValidate: async () => ({ problems: [problem], problemCount: 41 }),
    };
    const { datasets, folder } = trial({ native });
    const operation = await ended(
      datasets,
      await datasets.import(request('a', folderOf(pathGraph))),
    );
    expect(operation.error).toEqual({
      reason: 'DATASET_CORRUPT',
      message: 'indptr.npy: must not decrease (and 40 more)',
      problems: [problem],
    });
    expect(readdirSync(folder)).toEqual([]);
  });

  test('that only validates keeps nothing', async () => {
    const { datasets, folder, store } = trial();
    const source = folderOf(pathGraph);
    const good = await datasets.import(request('path', source, { validateOnly: true }));
    expect(await ended(datasets, good)).toMatchObject({ done: true, error: null });
    const bad = await datasets.import(
      request('path', folderOf({ 'indptr.npy': '' }), { validateOnly: true }),
    );
    expect((await ended(datasets, bad)).error?.problems).toHaveLength(2);
    expect(store.datasets.size).toBe(0);
    expect(readdirSync(folder)).toEqual([]);
  });

  test('with the request id of an earlier one has no second effect', async () => {
    const { datasets, store } = trial();
    const source = folderOf(pathGraph);
    const first = await datasets.import(request('path', source, { requestId: 'r' }));
    await ended(datasets, first);
    rmSync(source, { recursive: true });
    const again = await datasets.import(request('path', source, { requestId: 'r' }));
    expect(again.id).toBe(first.id);
    expect(store.operations.size).toBe(1);
    const other = await errorOfCall(datasets.import(request('b', source, { requestId: 'r' })));
    expect(other.reason).toBe('REQUEST_ID_REUSED');
  });

  test('is refused with all violations at once', async () => {
    const { datasets, store } = trial();
    const error = await errorOfCall(datasets.import(request('Bad_Id', '/nowhere/at/all')));
    expect(error.reason).toBe('SPEC_INVALID');
    expect(error.violations.map(({ path }) => path)).toEqual(['dataset_id', 'source']);
    expect(error.message).toContain(
      "'/nowhere/at/all': cannot be read: there is no such file or folder",
    );
    const relative = await errorOfCall(datasets.import(request('a', 'cora.npz')));
    expect(relative.violations).toEqual([
      { path: 'source', description: "'cora.npz': expected an absolute path" },
    ]);
    for (const id of ['', '1a', 'a-', 'a'.repeat(64), 'a/b', '..']) {
      expect((await errorOfCall(datasets.import(request(id, '/')))).violations[0]?.path).toBe(
        'dataset_id',
      );
    }
    expect(store.operations.size + store.datasets.size).toBe(0);
  });

  test('is refused for a dataset that exists', async () => {
    const { datasets } = trial();
    const source = folderOf(pathGraph);
    const first = await datasets.import(request('path', source));
    expect((await errorOfCall(datasets.import(request('path', source)))).reason).toBe(
      'DATASET_EXISTS',
    );
    await ended(datasets, first);
    const error = await errorOfCall(datasets.import(request('path', source)));
    expect(error).toMatchObject({ reason: 'DATASET_EXISTS', resource: 'datasets/path' });
  });

  test('that is stuck does not keep the next one waiting, and can be cancelled', async () => {
    const { native, reached } = gatedValidator();
    const { datasets, folder } = trial({ native: stuckOnly(native, 'a') });
    const stuck = await datasets.import(request('a', folderOf(pathGraph)));
    await reached;
    expect(datasets.operation(stuck.id)).toMatchObject({ message: 'checking every element' });
    const next = await datasets.import(request('b', folderOf(pathGraph)));
    expect((await ended(datasets, next)).error).toBeNull();
    const end = await datasets.cancel(stuck.id);
    expect(end.error).toMatchObject({ reason: 'OPERATION_CANCELLED' });
    expect(datasets.get('a')).toMatchObject({ state: 'FAILED', message: 'it was cancelled' });
    expect(readdirSync(folder)).toEqual(['b']);
    expect(await datasets.cancel(next.id)).toEqual(datasets.operation(next.id));
    expect(datasets.get('b').state).toBe('READY');
  });

  test('waits while as many as may run are running', async () => {
    const { native, open } = gatedValidator();
    const { datasets } = trial({ native });
    const operations: OperationRecord[] = [];
    for (const id of ['a', 'b', 'c', 'd']) {
      operations.push(await datasets.import(request(id, folderOf(pathGraph))));
    }
    const messages = () => operations.map(({ id }) => datasets.operation(id).message);
    while (messages().filter((message) => message !== '').length < 2) await settled();
    expect(messages().slice(2)).toEqual(['', '']);
    const [, , third] = operations;
    expect((await datasets.cancel(third?.id ?? '')).error?.reason).toBe('OPERATION_CANCELLED');
    open();
    for (const operation of operations) await ended(datasets, operation);
    const states = ['a', 'b', 'c', 'd'].map((id) => datasets.get(id).state);
    expect(states).toEqual(['READY', 'READY', 'FAILED', 'READY']);
  });

  test('that only validates does not fail the dataset that is imported after it', async () => {
    const { datasets } = trial();
    const bad = folderOf({ 'indptr.npy': '' });
    const check = await datasets.import(request('path', bad, { validateOnly: true }));
    const real = await datasets.import(request('path', folderOf(pathGraph)));
    expect((await ended(datasets, check)).error).not.toBeNull();
    await ended(datasets, real);
    expect(datasets.get('path').state).toBe('READY');
  });

  test('that meets a bug of ours says INTERNAL', async () => {
    const native = {
      datasetValidate: async () => {
        throw new TypeError('oops');
      },
    };
    const { datasets, folder } = trial({ native });
    const operation = await ended(
      datasets,
      await datasets.import(request('a', folderOf(pathGraph))),
    );
    expect(operation.error).toEqual({ reason: 'INTERNAL', message: 'oops', problems: [] });
    expect(readdirSync(folder)).toEqual([]);
  });

  test('on a full disk says so', async () => {
    const native = {
      datasetValidate: async () => {
        throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
      },
    };
    const { datasets } = trial({ native });
    const operation = await ended(
      datasets,
      await datasets.import(request('a', folderOf(pathGraph))),
    );
    expect(operation.error?.reason).toBe('STATE_DISK_FULL');
  });
});

describe('progress', () => {
  test('never goes back and ends below 1 only when the work fails', async () => {
    const { store, folder } = { store: new MemoryStore(), folder: join(makeFolder(), 'd') };
    const seen: number[] = [];
    const update = store.face.updateOperation;
    Object.assign(store.face, {
      updateOperation: (...[id, change]: Parameters<typeof update>) => {
        if (change.progress !== undefined) seen.push(change.progress);
        return update(id, change);
      },
    });
    const { datasets } = trial({ store, folder });
    await ended(datasets, await datasets.import(request('a', folderOf(pathGraph))));
    expect(seen.length).toBeGreaterThan(7);
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    expect(Math.max(...seen)).toBeLessThanOrEqual(1);
  });
});
