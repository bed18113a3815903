import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ended, errorOf, errorOfCall, gatedValidator, request, trial } from './trial.ts';
import { folderOf, int32, never, pathGraph } from './workbench.ts';

describe('a full check', () => {
  async function imported() {
    const { datasets, folder, store } = trial();
    await ended(datasets, await datasets.import(request('path', folderOf(pathGraph))));
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
      {
        path: 'dataset.json',
        description: expect.stringContaining('cannot be read: there is no such file or folder'),
      },
    ]);
  });

  test('needs a dataset that is READY', async () => {
    const { datasets } = await imported();
    expect(errorOf(() => datasets.validate('other')).reason).toBe('DATASET_NOT_FOUND');
    await datasets.import(request('second', folderOf(pathGraph)));
    expect(errorOf(() => datasets.validate('second')).reason).toBe('DATASET_NOT_READY');
    await datasets.close();
  });
});

test('a source that is no good is no error of the daemon', async () => {
  const { datasets, lines } = trial();
  const broken = folderOf({ ...pathGraph, 'labels.npy': 'no array' });
  expect((await ended(datasets, await datasets.import(request('bad', broken)))).error).not.toBe(
    null,
  );
  const levels = lines.filter(({ msg }) => msg === 'dataset.operation_failed');
  expect(levels.map(({ level }) => level)).toEqual(['warn']);
});

describe('looking things up', () => {
  test('pages go through all datasets by id', async () => {
    const { datasets } = trial();
    for (const id of ['c', 'a', 'b']) {
      await ended(datasets, await datasets.import(request(id, folderOf(pathGraph))));
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
    const operation = await datasets.import(request('a', folderOf(pathGraph)));
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
    const first = await datasets.import(request('a', folderOf(pathGraph)));
    const second = await datasets.import(request('b', folderOf(pathGraph)));
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
    const late = await errorOfCall(datasets.import(request('c', folderOf(pathGraph))));
    expect(late.reason).toBe('DAEMON_STOPPING');
  });

  test('what a killed daemon left is FAILED and swept at the next start', async () => {
    const { native, reached } = gatedValidator();
    const { datasets, folder, store } = trial({ native });
    const operation = await datasets.import(request('a', folderOf(pathGraph)));
    await reached;
    // The first daemon hangs for good; it also died between moving and recording another one.
    store.face.insertDataset({ ...datasets.get('a'), id: 'b' });
    mkdirSync(join(folder, 'b'));
    expect(readdirSync(folder)).toContainEqual(expect.stringMatching(/^\.tmp-a-/));
    const next = trial({ store, folder });
    expect(readdirSync(folder)).toEqual([]);
    expect(next.datasets.operation(operation.id)).toMatchObject({
      done: true,
      error: { reason: 'DAEMON_STOPPING' },
    });
    expect(next.datasets.get('a')).toMatchObject({ state: 'FAILED' });
    expect(next.datasets.get('b')).toMatchObject({ state: 'FAILED' });
    await ended(next.datasets, await next.datasets.import(request('a', folderOf(pathGraph))));
    expect(existsSync(join(folder, 'a', 'dataset.json'))).toBe(true);
  });
});
