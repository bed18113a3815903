import { readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ByteProgress } from '../../../src/datasets/byte-progress.ts';
import { converterOf } from '../../../src/datasets/convert-array.ts';
import { formatNpyHeader } from '../../../src/datasets/npy.ts';
import { ended, errorOfCall, request, trial } from './trial.ts';
import {
  folderOf,
  int64,
  linesOf,
  npy,
  pathGraph,
  trustingValidator,
  tryImport,
  zip,
} from './workbench.ts';

describe('arrays that are stored as they came', () => {
  test('are copied and checked in one pass, and not read again', async () => {
    const native = trustingValidator();
    const source = folderOf(pathGraph);
    const { numbers } = await tryImport('NPY', source, { native });
    expect(numbers('indices.npy')).toEqual([1, 0, 2, 1]);
    expect(numbers('features.npy')).toEqual([1, 2, 3, 4, 5, 6]);
    const nodes = { rule: 'NODES', numNodes: 3, bytes: 16 };
    expect(native.opened).toMatchObject([nodes, { rule: 'FINITE_FLOAT32', bytes: 24 }]);
    expect(native.checked).toEqual(['indices.npy', 'features.npy']);
  });

  test('are looked at again where something is wrong with them', async () => {
    const native = trustingValidator();
    const source = folderOf({
      ...pathGraph,
      'indices.npy': npy('int32', [4], Int32Array.of(1, -1, 2, 1)),
      'features.npy': npy('float32', [3, 2], Float32Array.of(1, 2, 3, Number.NaN, 5, 6)),
    });
    await tryImport('NPY', source, { native });
    expect(native.checked).toEqual([]);
  });

  test('are converted instead where their type is another, or in an archive', async () => {
    const native = trustingValidator();
    const indices = int64(1, 0, 2, 1);
    await tryImport('NPY', folderOf({ ...pathGraph, 'indices.npy': indices }), { native });
    await tryImport('NPY', folderOf(pathGraph), { native, featureDtype: 'float16' });
    const archive = folderOf({ 'a.npz': zip(pathGraph) });
    await tryImport('NPZ', join(archive, 'a.npz'), { native });
    expect(native.opened.map(({ source }) => source.replace(/^.*\//, ''))).toEqual([
      'features.npy',
      'indices.npy',
    ]);
  });

  test('can be links, which give the same dataset without a copy', async () => {
    const source = folderOf(pathGraph);
    const native = trustingValidator();
    const copied = await tryImport('NPY', source);
    const linked = await tryImport('NPY', source, { link: true, native });
    expect(linked.digest).toBe(copied.digest);
    expect(linked.bytes).toBe(copied.bytes);
    expect(native.opened.map(({ targetFd }) => targetFd)).toEqual([-1, -1]);
    const inode = (folder: string, name: string) => statSync(join(folder, name)).ino;
    for (const name of ['indices.npy', 'features.npy']) {
      expect(inode(linked.folder, name)).toBe(inode(source, name));
      expect(inode(copied.folder, name)).not.toBe(inode(source, name));
    }
    expect(inode(linked.folder, 'labels.npy')).not.toBe(inode(source, 'labels.npy'));
  });

  test('are linked from folders of arrays only', async () => {
    const { datasets } = trial();
    const path = join(folderOf({ 'a.npz': zip(pathGraph) }), 'a.npz');
    const error = await errorOfCall(datasets.import(request('x', path, { link: true })));
    expect(error.message).toBe('link: is for folders of .npy files, and this is NPZ');
  });

  test('say what to do where they cannot be linked', async () => {
    // A file system of its own.
    const source = folderOf(pathGraph);
    if (statSync('/dev/shm').dev === statSync(source).dev) return;
    const folder = join('/dev/shm', `gnnd-test-${process.pid}`);
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const { datasets } = trial({ folder });
    const operation = await datasets.import(request('x', source, { link: true }));
    const { error } = await ended(datasets, operation);
    expect(error?.message).toContain('import it without link, which copies it');
    await datasets.close();
  });
});

describe('unsigned integers', () => {
  const uint64 = (...values: number[]) =>
    npy('uint64', [values.length], BigInt64Array.from(values, BigInt));
  const uint32 = (...values: number[]) => npy('uint32', [values.length], Uint32Array.from(values));

  test('number nodes and rows wherever there are ids', async () => {
    const csc = folderOf({
      ...pathGraph,
      ...{ 'indptr.npy': uint64(0, 1, 3, 4), 'indices.npy': uint32(1, 0, 2, 1) },
      ...{ 'train.npy': uint32(0), 'val.npy': uint64(1), 'labels.npy': uint64(0, 1, 1) },
    });
    const pairs = npy('uint32', [2, 4], Uint32Array.of(1, 0, 2, 1, 0, 1, 1, 2));
    const { 'indptr.npy': _indptr, 'indices.npy': _indices, ...rest } = pathGraph;
    const coo = folderOf({ ...rest, 'edge_index.npy': pairs });
    for (const source of [csc, coo]) {
      const { numbers } = await tryImport('NPY', source);
      expect(numbers('indptr.npy')).toEqual([0, 1, 3, 4]);
      expect(numbers('indices.npy')).toEqual([1, 0, 2, 1]);
    }
  });

  test('above the upper half of int64 are no ids', async () => {
    const huge = npy('uint64', [4], BigInt64Array.of(0n, -1n, 3n, 4n));
    const { numbers } = await tryImport('NPY', folderOf({ ...pathGraph, 'indptr.npy': huge }));
    expect(numbers('indptr.npy')[1]).toBe(-1);
  });

  test('keep ids that int32 has no room for', () => {
    const wide = 2 ** 32 - 3;
    const outside: number[] = [];
    const see = (index: number) => outside.push(index);
    const from64 = converterOf('int64', 'uint32');
    expect([...from64(BigInt64Array.of(5n, BigInt(wide)), see)]).toEqual([5, wide]);
    expect(outside).toEqual([]);
    from64(BigInt64Array.of(-1n, 0n, 2n ** 32n), see);
    converterOf('int32', 'uint32')(Int32Array.of(3, -4), see);
    expect(outside).toEqual([0, 2, 1]);
    expect(converterOf('uint32', 'uint32')(Uint32Array.of(wide), see)[0]).toBe(wide);
  });

  test('are refused as ids of edges only where no node has them', async () => {
    const { 'indptr.npy': _indptr, 'indices.npy': _indices, ...rest } = pathGraph;
    const pairs = npy('uint32', [2, 1], Uint32Array.of(2 ** 32 - 5, 0));
    expect(
      await linesOf('NPY', folderOf({ ...rest, 'meta.json': '{}', 'edge_index.npy': pairs })),
    ).toEqual([
      'edge_index.npy: has 4294967291 at row 0, column 0, expected ids below the 3 nodes',
    ]);
  });

  test('stand in the header of indices where the source has them', async () => {
    const { folder } = await tryImport(
      'NPY',
      folderOf({ ...pathGraph, 'indices.npy': uint32(1, 0, 2, 1) }),
    );
    const header = formatNpyHeader({ type: 'uint32', shape: [4] });
    const written = readFileSync(join(folder, 'indices.npy'));
    expect(written.subarray(0, header.length)).toEqual(header);
  });
});

describe('the progress of an import', () => {
  test('tells bytes, rate and time left once there is a rate', () => {
    const said: [number, string][] = [];
    let nowMs = 0;
    const report = (share: number, message: string) => said.push([share, message]);
    const progress = new ByteProgress(report, 4e9, () => nowMs);
    const header = { type: 'float32', shape: [1e9] } as const;
    const source = { path: 'features.npy', header, place: null };
    progress.begin({ ...source, blocks: async function* () {}, close: async () => {} });
    nowMs = 1000;
    progress.advance(1e8);
    nowMs = 10_000;
    progress.advance(1e8);
    expect(said).toEqual([
      [0, 'reading features.npy: 0.0 MB of 4.00 GB'],
      [0.1, 'reading features.npy: 400.0 MB of 4.00 GB'],
      [0.2, 'reading features.npy: 800.0 MB of 4.00 GB, 80.0 MB/s, 40 s left'],
    ]);
  });
});
