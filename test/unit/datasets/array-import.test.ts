import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { NpyValues } from '../../../src/datasets/npy.ts';
import {
  bool,
  float32,
  folderOf,
  int32,
  int64,
  linesOf,
  npy,
  pathGraph,
  tryImport,
  zip,
} from './workbench.ts';

const fixture = (name: string) => fileURLToPath(new URL(`../../fixtures/${name}`, import.meta.url));

describe('the citation graphs of the fixtures', () => {
  test('cora has the checksums that were published with it', async () => {
    const { manifest, folder, bytes } = await tryImport('NPZ', fixture('cora.npz'));
    expect(manifest).toEqual({
      format: 'gnnd-dataset',
      version: 1,
      num_nodes: 2708,
      num_edges: 10556,
      num_features: 1433,
      feature_dtype: 'float32',
      num_classes: 7,
      split: { train: 140, val: 500, test: 1000 },
      sha256: {
        'indptr.npy': '160900d9a3c7eadd93f1e3e6d6986869c782f20d990548aee5d7853ca26fdd1a',
        'indices.npy': 'a0403267fbe197ec2a39cdecfb39e4cfbcf394b2591c5194cb94df127d9bb0db',
        'features.npy': '1a213087243ca1ee26967d0809d04997d276f0911fe5f8d994f49b3aa873b675',
        'labels.npy': '57ae1a50829808f8d6806f5ecc2e4889118d9d6c33f7c4ab8ec3592a68a3b94c',
        'train.npy': 'a103a53f219cde44e3628ccf636c012fb99435a924ae2e947a3f04db437d03d0',
        'val.npy': 'ade6bc10376e996ed21ae31286a4d8dfb651629945f2f5cea2437cd2f117d5f6',
        'test.npy': '16680ae981534bf8b04697b2c29ae6aa105d20fb580182d87346c5a44cd58634',
      },
    });
    const story = readFileSync(join(folder, 'import.json'));
    expect(JSON.parse(story.toString())).toEqual({
      name: 'trial',
      source: 'npz file cora.npz',
      undirected: false,
      columns: {
        ...{ rows: 2708, varying: 1432, standardized: 0 },
        zero_share: expect.closeTo(0.98732, 5),
        deviation_median: expect.closeTo(0.004429, 6),
        deviation_largest: expect.closeTo(0.043329, 6),
      },
      notices: [],
    });
    const json = readFileSync(join(folder, 'dataset.json'));
    expect(JSON.parse(json.toString())).toEqual(manifest);
    expect(bytes).toBe(15_611_000 + json.length + story.length);
  });

  test('citeseer has its counts', async () => {
    const { manifest } = await tryImport('NPZ', fixture('citeseer.npz'));
    expect(manifest).toMatchObject({
      num_nodes: 3327,
      num_edges: 9104,
      num_features: 3703,
      num_classes: 6,
      split: { train: 120, val: 500, test: 1000 },
    });
  });
});

describe('a folder of arrays', () => {
  test('is taken as it is, counts from the arrays', async () => {
    const imported = await tryImport('NPY', folderOf(pathGraph));
    expect(imported.manifest).toMatchObject({
      num_nodes: 3,
      num_edges: 4,
      num_features: 2,
      num_classes: 2,
      split: { train: 1, val: 1, test: 0 },
    });
    for (const [name, bytes] of Object.entries(pathGraph)) {
      expect(readFileSync(join(imported.folder, name))).toEqual(bytes);
    }
  });

  test('equals the .npz file with the same arrays', async () => {
    const folder = await tryImport('NPY', folderOf(pathGraph));
    const file = folderOf({ 'graph.npz': zip(pathGraph) });
    const archive = await tryImport('NPZ', join(file, 'graph.npz'));
    expect(archive.manifest.sha256).toEqual(folder.manifest.sha256);
  });

  test('has other number types converted', async () => {
    const imported = await tryImport(
      'NPY',
      folderOf({
        ...pathGraph,
        'indptr.npy': int32(0, 1, 3, 4),
        'indices.npy': int64(1, 0, 2, 1),
        'labels.npy': int64(0, 1, -1),
        'train.npy': int32(0),
        'features.npy': npy('float64', [3, 2], Float64Array.of(1, 0.1, -2, 3, 4, 5)),
        'edge_weights.npy': npy('float64', [4], Float64Array.of(1, 0.1, 0.1, 2)),
      }),
    );
    expect(imported.numbers('indptr.npy')).toEqual([0, 1, 3, 4]);
    expect(imported.numbers('indices.npy')).toEqual([1, 0, 2, 1]);
    expect(imported.numbers('labels.npy')).toEqual([0, 1, -1]);
    expect(imported.numbers('train.npy')).toEqual([0]);
    expect(imported.numbers('features.npy')).toEqual([1, Math.fround(0.1), -2, 3, 4, 5]);
    expect(imported.manifest.feature_dtype).toBe('float32');
    const weights = [1, Math.fround(0.1), Math.fround(0.1), 2];
    expect(imported.numbers('edge_weights.npy')).toEqual(weights);
  });

  test('with an id beyond int32 is refused', async () => {
    const indices = int64(1, 0, 2 ** 31, 1);
    const lines = await linesOf('NPY', folderOf({ ...pathGraph, 'indices.npy': indices }));
    expect(lines).toEqual(['indices.npy: has 2147483648 at index 2, beyond int32']);
  });

  test('has all that is wrong with it listed at once', async () => {
    const lines = await linesOf(
      'NPY',
      folderOf({
        ...pathGraph,
        'indices.npy': pathGraph['indices.npy'].subarray(0, 130),
        'features.npy': float32(1, 2, 3),
        'labels.npy': npy('float32', [3, 1, 1], Float32Array.of(0, 1, 1)),
        'val.npy': '',
      }),
    );
    expect(lines).toEqual([
      'indices.npy: is truncated: its header promises shape (4) of int32, 16 bytes; ' +
        '2 bytes follow it',
      'features.npy: has shape (3), expected [nodes, features]',
      'labels.npy: has shape (3, 1, 1), expected [nodes] or [nodes, labels]',
      'val.npy: is empty, expected a .npy array',
    ]);
  });

  test('whose arrays do not fit each other is refused', async () => {
    const lines = await linesOf(
      'NPY',
      folderOf({ ...pathGraph, 'labels.npy': int32(0, 1), 'edge_weights.npy': float32(1) }),
    );
    expect(lines).toEqual([
      'labels.npy: has 2 rows, expected 3, as indptr.npy and features.npy have it',
      'edge_weights.npy: has 1 rows, expected 4 because indices.npy has 4',
    ]);
  });
});

const untested = 'there is no test split: jobs report validation metrics only';

describe('what users of other libraries bring', () => {
  const { 'indptr.npy': _, 'indices.npy': __, ...nodes } = pathGraph;
  const edgeIndex = (...ends: number[]) =>
    npy('int64', [2, ends.length / 2], BigInt64Array.from(ends, BigInt));

  test('edge_index: a column (source, target) puts the source into row target', async () => {
    const archive = zip({
      'x.npy': pathGraph['features.npy'],
      'y.npy': int64(0, 1, -1),
      'edge_index.npy': edgeIndex(0, 2, 1, 0, /* to */ 1, 1, 0, 0),
      'edge_weight.npy': float32(1, 2, 3, 4),
      'train_mask.npy': bool(true, false, false),
      'val_mask.npy': bool(false, true, false),
      'test_mask.npy': bool(false, false, false),
    });
    const file = folderOf({ 'graph.npz': archive });
    const imported = await tryImport('NPZ', join(file, 'graph.npz'));
    expect(imported.numbers('indptr.npy')).toEqual([0, 2, 4, 4]);
    expect(imported.numbers('indices.npy')).toEqual([1, 0, 0, 2]);
    expect(imported.numbers('edge_weights.npy')).toEqual([3, 4, 1, 2]);
    expect(imported.numbers('labels.npy')).toEqual([0, 1, -1]);
    expect(imported.numbers('train.npy')).toEqual([0]);
    expect(imported.numbers('val.npy')).toEqual([1]);
    expect(imported.manifest.split).toEqual({ train: 1, val: 1, test: 0 });
    expect(imported.notices).toEqual([untested]);
  });

  const listed = { ...nodes, 'edge_index.npy': edgeIndex(0, 2, 1, 0, /* to */ 1, 1, 0, 0) };
  const weightsOf = (...weights: number[]) =>
    folderOf({ ...listed, 'edge_weights.npy': weights64(weights) });
  const weights64 = (weights: readonly number[]) =>
    npy('float64', [weights.length], Float64Array.from(weights));

  test.each([
    [[1, 1, Number.NaN, 1], 'has NaN at index 2 (the edge from 1 to 0), expected a finite number'],
    [[1, -2, 1, -3], 'has -2 at index 1 (the edge from 2 to 1) and 1 more, expected a finite'],
    [[1, 1, 1, 1e39], 'has 1e+39 at index 3 (the edge from 0 to 0), beyond float32: divide all'],
    [[1e-50, 1, 1, 1], 'has 1e-50 at index 0 (the edge from 0 to 1), which float32 rounds to 0'],
  ])('a weight that cannot be is named by its place in edge_index: %j', async (weights, said) => {
    const [line, ...more] = await linesOf('NPY', weightsOf(...weights));
    expect(line).toContain(`edge_weights.npy: ${said}`);
    expect(more).toEqual([]);
  });

  test('weights of any unit that float32 has are taken, and 0 with them', async () => {
    const imported = await tryImport('NPY', weightsOf(1e-42, 0, 3e38, 1));
    const stored = [3e38, 1, 1e-42, 0].map(Math.fround);
    expect(imported.numbers('edge_weights.npy').toSorted()).toEqual(stored.toSorted());
  });

  test('edge_index beyond the nodes, or of another shape, is refused', async () => {
    const beyond = folderOf({ ...nodes, 'edge_index.npy': edgeIndex(0, 1, 2, 3) });
    expect(await linesOf('NPY', beyond)).toEqual([
      'edge_index.npy: has 3 at row 1, column 1, expected ids below the 3 nodes',
    ]);
    const rows = npy('int64', [3, 2], BigInt64Array.of(0n, 1n, 1n, 2n, 2n, 0n));
    expect(await linesOf('NPY', folderOf({ ...nodes, 'edge_index.npy': rows }))).toEqual([
      'edge_index.npy: has shape (3, 2), expected [2, edges]: store its transpose, edge_index.T.copy()',
    ]);
  });

  test('masks must have an element for each node', async () => {
    const source = folderOf({ ...pathGraph, 'train.npy': bool(true, false) });
    expect(await linesOf('NPY', source)).toEqual([
      'train.npy: has 2 rows, expected 3, as indptr.npy, features.npy and labels.npy have it',
    ]);
  });

  test('ids of a split come in any order', async () => {
    const { 'train.npy': _train, ...rest } = pathGraph;
    const source = folderOf({ ...rest, 'train_idx.npy': int64(2, 0), 'val.npy': int32(1) });
    const { numbers } = await tryImport('NPY', source);
    expect(numbers('train.npy')).toEqual([0, 2]);
  });

  test('integers are features, and small ones labels', async () => {
    const source = folderOf({
      ...pathGraph,
      'features.npy': npy('uint8', [3, 2], Uint8Array.of(0, 1, 2, 3, 4, 255)),
      'labels.npy': npy('int8', [3, 1], Int8Array.of(0, 1, -1)),
      'indices.npy': npy('uint32', [4], Uint32Array.of(1, 0, 2, 1)),
    });
    const { numbers } = await tryImport('NPY', source);
    expect(numbers('features.npy')).toEqual([0, 1, 2, 3, 4, 255]);
    expect(numbers('labels.npy')).toEqual([0, 1, -1]);
    expect(numbers('indices.npy')).toEqual([1, 0, 2, 1]);
  });

  test('a graph without a split for tests or validation is taken, with a notice', async () => {
    const { 'test.npy': _test, ...rest } = pathGraph;
    const { notices, numbers } = await tryImport('NPY', folderOf(rest));
    expect(numbers('test.npy')).toEqual([]);
    expect(notices).toEqual([untested]);
    const neither = await tryImport('NPY', folderOf({ ...rest, 'val.npy': int64() }));
    expect(neither.notices).toEqual([
      'there is no validation split: the last epoch counts as the best, none ends a job early',
      untested,
    ]);
  });

  test('arrays that are not used are named', async () => {
    const source = folderOf({ ...pathGraph, 'edge_attr.npy': 'x', 'extra.npy': 'x' });
    const { notices } = await tryImport('NPY', source);
    expect(notices).toEqual([
      'edge_attr.npy is not used: models here read no edge features; a weight per edge is ' +
        'edge_weights',
      'extra.npy is not used',
      untested,
    ]);
  });

  test('two arrays for one thing are refused', async () => {
    const source = folderOf({ ...pathGraph, 'x.npy': pathGraph['features.npy'] });
    expect(await linesOf('NPY', source)).toEqual([
      'x.npy: is the same as features.npy, expected one of them',
    ]);
  });

  test.each([
    ['a file of torch.save', 'data/data.pkl', 'PYG'],
    ['a benchmark of citations', 'adj_indptr.npy', 'BENCHMARK_NPZ'],
    ['a heterophilous benchmark', 'node_features.npy', 'BENCHMARK_NPZ'],
  ])('an archive that is %s goes to Python', async (_, member, format) => {
    const file = folderOf({ 'graph.npz': zip({ [member]: Buffer.from('x') }) });
    const lines = await linesOf('NPZ', join(file, 'graph.npz'));
    expect(lines).toEqual([`graph.npz: is for Python to convert: ${format}`]);
  });
});

test('a matrix of SciPy alone is refused, since its rows are sources', async () => {
  const names = ['format', 'shape', 'data', 'indptr', 'indices'];
  const members = Object.fromEntries(names.map((name) => [`${name}.npy`, int64(0, 1)]));
  const file = folderOf({ 'adj.npz': zip(members) });
  expect(await linesOf('NPZ', join(file, 'adj.npz'))).toEqual([
    expect.stringMatching(/^adj\.npz: is a matrix of scipy.*client\.import_scipy/),
  ]);
});

describe('a graph that looks transposed', () => {
  // Papers 4 … 9 cite 0 … 3; the labelled papers are the ones that cite.
  const nodes = {
    'features.npy': npy('float32', [10, 1], new Float32Array(10)),
    'labels.npy': int32(-1, -1, -1, -1, 0, 1, 0, 1, 0, 1),
    'train.npy': int64(4, 5, 6, 7),
    'val.npy': int64(8, 9),
    'test.npy': int64(),
  };
  const learns = {
    'indptr.npy': int64(0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6),
    'indices.npy': int32(0, 1, 2, 3, 0, 1),
  };
  const transposed = {
    'indptr.npy': int64(0, 2, 4, 5, 6, 6, 6, 6, 6, 6, 6),
    'indices.npy': int32(4, 8, 5, 9, 6, 7),
  };

  test('is told with the shares that make it look so', async () => {
    const { notices } = await tryImport('NPY', folderOf({ ...nodes, ...transposed }));
    expect(notices).toEqual([
      expect.stringMatching(/^the graph looks transposed: 100 % of the nodes .* 0 % are nobody's/),
      untested,
    ]);
  });

  test('is not seen in one whose labelled nodes have neighbours', async () => {
    const { notices } = await tryImport('NPY', folderOf({ ...nodes, ...learns }));
    expect(notices).toEqual([untested]);
  });
});

describe('features in float16', () => {
  // 1.5, -2, the smallest above 0, the largest, -0, nearly a third.
  const halves = Uint16Array.of(0x3e00, 0xc000, 0x0001, 0x7bff, 0x8000, 0x3555);
  const numbers = [1.5, -2, 2 ** -24, 65504, -0, 0.333251953125];
  const withFeatures = (type: 'float16' | 'float32' | 'float64', values: NpyValues) =>
    folderOf({ ...pathGraph, 'features.npy': npy(type, [3, 2], values) });

  test('are taken as they are', async () => {
    const source = withFeatures('float16', halves);
    const imported = await tryImport('NPY', source);
    expect(imported.manifest.feature_dtype).toBe('float16');
    expect(imported.numbers('features.npy')).toEqual([...halves]);
    const sums = imported.manifest.sha256;
    const again = await tryImport('NPY', source, { featureDtype: 'float16' });
    expect(again.manifest.sha256).toEqual(sums);
  });

  test('become float32 where that is asked for', async () => {
    const source = withFeatures('float16', halves);
    const imported = await tryImport('NPY', source, { featureDtype: 'float32' });
    expect(imported.manifest.feature_dtype).toBe('float32');
    expect(imported.numbers('features.npy')).toEqual(numbers);
  });

  test('are made of wider ones where that is asked for, by rounding', async () => {
    const featureDtype = 'float16';
    const exact = withFeatures('float32', Float32Array.from(numbers));
    const imported = await tryImport('NPY', exact, { featureDtype });
    expect(imported.numbers('features.npy')).toEqual([...halves]);
    const third = withFeatures('float64', Float64Array.of(1.5, -2, 2 ** -24, 65504, -0, 1 / 3));
    const rounded = await tryImport('NPY', third, { featureDtype });
    expect(rounded.manifest.sha256).toEqual(imported.manifest.sha256);
  });

  test('have no room for large numbers, which are named', async () => {
    const values = Float32Array.of(1, -70000, 3, 65504, 65505, 1e9);
    const file = folderOf({
      'graph.npz': zip({ ...pathGraph, 'features.npy': npy('float32', [3, 2], values) }),
    });
    expect(await linesOf('NPZ', join(file, 'graph.npz'), 'float16')).toEqual([
      'graph.npz/features.npy: has -70000 at row 0, column 1 and 2 more, beyond 65504, ' +
        'the largest float16: import the features as float32',
    ]);
  });
});

describe('names.txt', () => {
  test('is copied, also without a last newline', async () => {
    for (const names of ['\nb\nc\n', 'a\nb\nc']) {
      const { folder } = await tryImport('NPY', folderOf({ ...pathGraph, 'names.txt': names }));
      expect(readFileSync(join(folder, 'names.txt'), 'utf8')).toBe(names);
    }
  });

  test('must have a line for every node', async () => {
    const lines = await linesOf('NPY', folderOf({ ...pathGraph, 'names.txt': 'a\nb\n' }));
    expect(lines).toEqual(['names.txt: has 2 lines, expected one for each of the 3 nodes']);
  });
});
