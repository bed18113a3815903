import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { GnndError } from '../../../src/base/errors.ts';
import { createLog } from '../../../src/base/log.ts';
import {
  createDatasets,
  type Datasets,
  type ImportRequest,
} from '../../../src/datasets/datasets.ts';
import type { ImportPool } from '../../../src/datasets/import-pool.ts';
import type { NativeValidator } from '../../../src/datasets/run-import.ts';
import type { OperationRecord } from '../../../src/spec/dataset-record.ts';
import { MemoryStore } from './memory-store.ts';
import {
  createInlinePool,
  folderOf,
  int32,
  makeFolder,
  never,
  npy,
  pathGraph,
  trustingValidator,
} from './workbench.ts';

interface Trial {
  readonly datasets: Datasets;
  readonly store: MemoryStore;
  readonly folder: string;
}

interface TrialOptions {
  readonly store?: MemoryStore;
  readonly folder?: string;
  readonly native?: NativeValidator;
  readonly createPool?: () => ImportPool;
}

function trial(options: TrialOptions = {}): Trial {
  const store = options.store ?? new MemoryStore();
  const folder = options.folder ?? join(makeFolder(), 'datasets');
  const datasets = createDatasets({
    folder,
    store: store.face,
    native: options.native ?? trustingValidator(),
    log: createLog({ level: 'error', write: () => undefined }),
    clock: systemClock,
    createPool: options.createPool ?? createInlinePool,
  });
  return { datasets, store, folder };
}

function request(id: string, source: string, more: Partial<ImportRequest> = {}): ImportRequest {
  const asked = {
    ...{ format: null, featureDtype: null, directed: false },
    ...{ validateOnly: false, requestId: null },
  };
  return { id, source, ...asked, ...more };
}

const ended = (datasets: Datasets, operation: OperationRecord) =>
  datasets.waitOperation(operation.id, 60_000, never);

function errorOf(call: () => unknown): GnndError {
  try {
    call();
  } catch (error) {
    if (error instanceof GnndError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

/** A validator that waits until it is told to go on. */
function gatedValidator() {
  const { promise: gate, open } = gateOf();
  const { promise: reached, open: reach } = gateOf();
  const native: NativeValidator = {
    datasetValidate: async () => {
      reach();
      await gate;
      return { problems: [], problemCount: 0 };
    },
  };
  return { native, reached, open };
}

function gateOf(): { readonly promise: Promise<void>; readonly open: () => void } {
  let open: () => void = () => undefined;
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open: () => open() };
}

describe('an import', () => {
  test('makes a READY dataset out of a source', async () => {
    const native = trustingValidator();
    const { datasets, folder } = trial({ native });
    const started = datasets.import(request('path', folderOf(pathGraph)));
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
        ...{ numClasses: 2, train: 1, val: 1, test: 0 },
      },
    ]);
  });

  test('keeps features in float16 where asked to, or where the source has them so', async () => {
    const native = trustingValidator();
    const { datasets } = trial({ native });
    const halves = npy('float16', [3, 2], Uint16Array.of(1, 2, 3, 4, 5, 6));
    const source = folderOf({ ...pathGraph, 'features.npy': halves });
    await ended(datasets, datasets.import(request('as-it-is', source)));
    const asked = request('asked', folderOf(pathGraph), { featureDtype: 'float16' });
    await ended(datasets, datasets.import(asked));
    await ended(datasets, datasets.import(request('wide', source, { featureDtype: 'float32' })));
    const dtypes = ['as-it-is', 'asked', 'wide'].map((id) => datasets.get(id).featureDtype);
    expect(dtypes).toEqual(['float16', 'float16', 'float32']);
    expect(native.asked.map(({ featureDtype }) => featureDtype)).toEqual(dtypes);
  });

  test('is found by a daemon that does not know it, also one of an earlier version', async () => {
    const { datasets, folder } = trial();
    for (const id of ['plain', 'half', 'strange']) {
      await ended(datasets, datasets.import(request(id, folderOf(pathGraph))));
    }
    const dtypes = { plain: undefined, half: 'float16', strange: 'bfloat16' };
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
      await ended(datasets, datasets.import(request('path', source)));
      digests.push(datasets.get('path').digest);
    }
    expect(digests[0]).toBe(digests[1]);
  });

  test('of a bad source names every problem, leaves nothing, and may be repeated', async () => {
    const { datasets, folder } = trial();
    const source = folderOf({ ...pathGraph, 'labels.npy': int32(1), 'val.npy': 'x' });
    const operation = await ended(datasets, datasets.import(request('path', source)));
    expect(operation.error).toMatchObject({
      reason: 'DATASET_CORRUPT',
      problems: [{ path: 'val.npy' }, { path: 'labels.npy' }],
    });
    expect(datasets.get('path')).toMatchObject({
      state: 'FAILED',
      message: expect.stringMatching(/^val\.npy: is not a/),
    });
    expect(readdirSync(folder)).toEqual([]);
    await ended(datasets, datasets.import(request('path', folderOf(pathGraph))));
    expect(datasets.get('path')).toMatchObject({ state: 'READY', message: '' });
  });

  test('fails when the native check finds something', async () => {
    const problem = { path: 'indptr.npy', description: 'must not decrease' };
    const native = {
      datasetValidate: async () => ({ problems: [problem], problemCount: 41 }),
    };
    const { datasets, folder } = trial({ native });
    const operation = await ended(datasets, datasets.import(request('a', folderOf(pathGraph))));
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
    const good = datasets.import(request('path', source, { validateOnly: true }));
    expect(await ended(datasets, good)).toMatchObject({ done: true, error: null });
    const bad = datasets.import(
      request('path', folderOf({ 'indptr.npy': '' }), { validateOnly: true }),
    );
    expect((await ended(datasets, bad)).error?.problems).toHaveLength(6);
    expect(store.datasets.size).toBe(0);
    expect(readdirSync(folder)).toEqual([]);
  });

  test('with the request id of an earlier one has no second effect', async () => {
    const { datasets, store } = trial();
    const source = folderOf(pathGraph);
    const first = datasets.import(request('path', source, { requestId: 'r' }));
    await ended(datasets, first);
    rmSync(source, { recursive: true });
    const again = datasets.import(request('path', source, { requestId: 'r' }));
    expect(again.id).toBe(first.id);
    expect(store.operations.size).toBe(1);
    const other = errorOf(() => datasets.import(request('b', source, { requestId: 'r' })));
    expect(other.reason).toBe('REQUEST_ID_REUSED');
  });

  test('is refused with all violations at once', () => {
    const { datasets, store } = trial();
    const error = errorOf(() => datasets.import(request('Bad_Id', '/nowhere/at/all')));
    expect(error.reason).toBe('SPEC_INVALID');
    expect(error.violations.map(({ path }) => path)).toEqual(['dataset_id', 'source']);
    expect(error.message).toContain("'/nowhere/at/all': cannot be read: ENOENT");
    const relative = errorOf(() => datasets.import(request('a', 'cora.npz')));
    expect(relative.violations).toEqual([
      { path: 'source', description: "'cora.npz': expected an absolute path" },
    ]);
    for (const id of ['', '1a', 'a-', 'a'.repeat(64), 'a/b', '..']) {
      expect(errorOf(() => datasets.import(request(id, '/'))).violations[0]?.path).toBe(
        'dataset_id',
      );
    }
    expect(store.operations.size + store.datasets.size).toBe(0);
  });

  test('is refused for a dataset that exists', async () => {
    const { datasets } = trial();
    const source = folderOf(pathGraph);
    const first = datasets.import(request('path', source));
    expect(errorOf(() => datasets.import(request('path', source))).reason).toBe('DATASET_EXISTS');
    await ended(datasets, first);
    const error = errorOf(() => datasets.import(request('path', source)));
    expect(error).toMatchObject({ reason: 'DATASET_EXISTS', resource: 'datasets/path' });
  });

  test('waits for those before it', async () => {
    const { native, reached, open } = gatedValidator();
    const { datasets } = trial({ native });
    const first = datasets.import(request('a', folderOf(pathGraph)));
    const second = datasets.import(request('b', folderOf(pathGraph)));
    await reached;
    expect(datasets.operation(first.id)).toMatchObject({ message: 'checking every element' });
    expect(datasets.operation(second.id)).toMatchObject({ progress: 0, message: '' });
    open();
    await ended(datasets, second);
    expect(datasets.operation(first.id).done).toBe(true);
    expect(datasets.get('b').state).toBe('READY');
  });

  test('that only validates does not fail the dataset that is imported after it', async () => {
    const { datasets } = trial();
    const bad = folderOf({ 'indptr.npy': '' });
    const check = datasets.import(request('path', bad, { validateOnly: true }));
    const real = datasets.import(request('path', folderOf(pathGraph)));
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
    const operation = await ended(datasets, datasets.import(request('a', folderOf(pathGraph))));
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
    const operation = await ended(datasets, datasets.import(request('a', folderOf(pathGraph))));
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
    await ended(datasets, datasets.import(request('a', folderOf(pathGraph))));
    expect(seen.length).toBeGreaterThan(7);
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    expect(Math.max(...seen)).toBeLessThanOrEqual(1);
  });
});

describe('a full check', () => {
  async function imported() {
    const { datasets, folder, store } = trial();
    await ended(datasets, datasets.import(request('path', folderOf(pathGraph))));
    return { datasets, store, place: join(folder, 'path') };
  }

  function overwrite(path: string, content: Uint8Array | string): void {
    rmSync(path);
    writeFileSync(path, content);
  }

  test('of an untouched dataset finds nothing', async () => {
    const { datasets } = await imported();
    const operation = await ended(datasets, datasets.validate('path'));
    expect(operation).toMatchObject({ kind: 'ValidateDataset', target: 'path', error: null });
    expect(operation.validation).toEqual({ problems: [], problemCount: 0 });
  });

  test('finds an array that was changed', async () => {
    const { datasets, place } = await imported();
    overwrite(join(place, 'labels.npy'), int32(1, 0, -1));
    const { validation } = await ended(datasets, datasets.validate('path'));
    expect(validation).toMatchObject({ problemCount: 1, problems: [{ path: 'labels.npy' }] });
    expect(validation?.problems[0]?.description).toMatch(/^was changed: its SHA-256 is/);
  });

  test('finds a dataset.json that was changed or is gone', async () => {
    const { datasets, place } = await imported();
    overwrite(join(place, 'dataset.json'), '{}');
    const changed = await ended(datasets, datasets.validate('path'));
    expect(changed.validation?.problems).toEqual([
      { path: 'dataset.json', description: expect.stringContaining('was changed') },
    ]);
    rmSync(place, { recursive: true });
    const gone = await ended(datasets, datasets.validate('path'));
    expect(gone.validation?.problems).toEqual([
      { path: 'dataset.json', description: expect.stringContaining('cannot be read: ENOENT') },
    ]);
  });

  test('needs a dataset that is READY', async () => {
    const { datasets } = await imported();
    expect(errorOf(() => datasets.validate('other')).reason).toBe('DATASET_NOT_FOUND');
    datasets.import(request('second', folderOf(pathGraph)));
    expect(errorOf(() => datasets.validate('second')).reason).toBe('DATASET_NOT_READY');
    await datasets.close();
  });
});

describe('looking things up', () => {
  test('pages go through all datasets by id', async () => {
    const { datasets } = trial();
    for (const id of ['c', 'a', 'b']) {
      await ended(datasets, datasets.import(request(id, folderOf(pathGraph))));
    }
    const first = datasets.list({ limit: 2, afterId: null });
    expect(first.datasets.map(({ id }) => id)).toEqual(['a', 'b']);
    const second = datasets.list({ limit: 2, afterId: first.nextId });
    expect(second.datasets.map(({ id }) => id)).toEqual(['c']);
    expect(second.nextId).toBeNull();
  });

  test('names what does not exist', async () => {
    const { datasets } = trial();
    expect(errorOf(() => datasets.get('x'))).toMatchObject({
      reason: 'DATASET_NOT_FOUND',
      resource: 'datasets/x',
    });
    expect(errorOf(() => datasets.operation('x')).reason).toBe('OPERATION_NOT_FOUND');
    await expect(datasets.waitOperation('x', 1, never)).rejects.toMatchObject({
      reason: 'OPERATION_NOT_FOUND',
    });
  });

  test('waiting ends with the time-out or the abort, not only with the operation', async () => {
    const { native, reached, open } = gatedValidator();
    const { datasets } = trial({ native });
    const operation = datasets.import(request('a', folderOf(pathGraph)));
    await reached;
    expect(await datasets.waitOperation(operation.id, 0, never)).toMatchObject({ done: false });
    const reason = new Error('gone');
    await expect(
      datasets.waitOperation(operation.id, 60_000, AbortSignal.abort(reason)),
    ).rejects.toBe(reason);
    open();
    await ended(datasets, operation);
    expect(await datasets.waitOperation(operation.id, 0, never)).toMatchObject({ done: true });
  });
});

describe('the end', () => {
  test('a closed service fails what ran and what waited, and takes nothing new', async () => {
    const { native, reached, open } = gatedValidator();
    const { datasets, folder } = trial({ native });
    const first = datasets.import(request('a', folderOf(pathGraph)));
    const second = datasets.import(request('b', folderOf(pathGraph)));
    await reached;
    const closed = datasets.close();
    open();
    await closed;
    await datasets.close();
    for (const { id } of [first, second]) {
      expect(datasets.operation(id).error?.reason).toBe('DAEMON_STOPPING');
    }
    expect(datasets.get('a').state).toBe('FAILED');
    expect(datasets.get('b').state).toBe('FAILED');
    expect(readdirSync(folder)).toEqual([]);
    const late = errorOf(() => datasets.import(request('c', folderOf(pathGraph))));
    expect(late.reason).toBe('DAEMON_STOPPING');
  });

  test('what a killed daemon left is FAILED and swept at the next start', async () => {
    const { native, reached } = gatedValidator();
    const { datasets, folder, store } = trial({ native });
    const operation = datasets.import(request('a', folderOf(pathGraph)));
    await reached;
    // The first daemon hangs for good; it also died between moving and recording another one.
    store.face.insertDataset({ ...datasets.get('a'), id: 'b' });
    mkdirSync(join(folder, 'b'));
    expect(readdirSync(folder)).toContain(`.tmp-a-${process.pid}`);
    const next = trial({ store, folder });
    expect(readdirSync(folder)).toEqual([]);
    expect(next.datasets.operation(operation.id)).toMatchObject({
      done: true,
      error: { reason: 'DAEMON_STOPPING' },
    });
    expect(next.datasets.get('a')).toMatchObject({ state: 'FAILED' });
    expect(next.datasets.get('b')).toMatchObject({ state: 'FAILED' });
    await ended(next.datasets, next.datasets.import(request('a', folderOf(pathGraph))));
    expect(existsSync(join(folder, 'a', 'dataset.json'))).toBe(true);
  });
});
