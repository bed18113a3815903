import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { splitOf } from '../../../src/datasets/complete-dataset.ts';
import type { RandomSplit } from '../../../src/records/dataset-record.ts';
import { forAll } from '../../support/random.ts';
import { folderOf, int64, linesOf, npy, pathGraph, tryImport } from './workbench.ts';

/** What an import adds to a source that lacks features or a split. */

function without(...names: readonly string[]): string {
  const folder = folderOf(pathGraph);
  for (const name of names) rmSync(join(folder, name), { force: true });
  return folder;
}

/** Nodes of one class, and nothing else. */
const withoutEdges = (nodes: number) =>
  folderOf({
    'indptr.npy': int64(...new Array<number>(nodes + 1).fill(0)),
    'indices.npy': npy('int32', [0], new Int32Array(0)),
    'labels.npy': npy('int32', [nodes], new Int32Array(nodes)),
    'train.npy': int64(0),
    'val.npy': int64(1),
  });

const allSplits = ['train.npy', 'val.npy', 'test.npy'];
const shares = (validation: number, test: number, randomSeed = 0): RandomSplit => ({
  validation,
  test,
  randomSeed,
});

describe('a split by chance', () => {
  test('has each node once, as many as asked, whatever nodes there are', () => {
    forAll(100, (random) => {
      const nodes = Uint32Array.from({ length: random.integer(0, 500) }, (_, at) => 3 * at);
      const asked = shares(0.5 * random.unit(), 0.49 * random.unit(), random.integer(0, 2 ** 31));
      const { train, val, test: tests } = splitOf(nodes, asked);
      const all = [...train, ...val, ...tests].sort((a, b) => a - b);
      expect(all).toEqual([...nodes]);
      expect(val.length).toBe(Math.round(asked.validation * nodes.length));
      for (const part of [train, val, tests]) {
        expect([...part]).toEqual([...part].sort((a, b) => a - b));
      }
    });
  });

  test('follows from its seed, and puts a node anywhere', () => {
    const nodes = Uint32Array.from({ length: 1000 }, (_, at) => at);
    expect(splitOf(nodes, shares(0.2, 0.2, 5))).toEqual(splitOf(nodes, shares(0.2, 0.2, 5)));
    const seen = Array.from({ length: 300 }, (_, seed) => splitOf(nodes, shares(0.5, 0, seed)).val);
    // Each node is in half of the splits: 150, and 6 standard deviations are 52.
    const counts = nodes.map((node) => seen.filter((val) => val.includes(node)).length);
    expect(Math.min(...counts)).toBeGreaterThan(98);
    expect(Math.max(...counts)).toBeLessThan(202);
  });

  test('takes nodes with a label only', async () => {
    const labels = npy('int32', [3], Int32Array.of(0, -1, 1));
    const folder = folderOf({ ...pathGraph, 'labels.npy': labels });
    for (const name of allSplits) rmSync(join(folder, name), { force: true });
    const { manifest, numbers } = await tryImport('NPY', folder, { randomSplit: shares(0.5, 0) });
    expect(manifest.split).toEqual({ train: 1, val: 1, test: 0 });
    expect([...numbers('train.npy'), ...numbers('val.npy')].sort()).toEqual([0, 2]);
  });

  test('is for sources without one, which say how to get it', async () => {
    expect(await linesOf('NPY', without(...allSplits))).toEqual([
      expect.stringMatching(/^train: the source has no split: .*--random-split 0\.2,0\.2/),
    ]);
    expect(await linesOf('NPY', without('train.npy'))).toEqual(['train.npy: is missing']);
    const both = await linesOf('NPY', without(), null, { randomSplit: shares(0.2, 0.2) });
    expect(both).toEqual(['random_split: the source has a split: leave this out, or the split']);
  });
});

describe('features of a graph without', () => {
  test('tell how many neighbours a node has, whatever else is in the graph', async () => {
    const asked = { madeFeatures: 'DEGREE' } as const;
    const { manifest, numbers, story } = await tryImport('NPY', without('features.npy'), asked);
    expect(manifest.num_features).toBe(34);
    const rows = numbers('features.npy');
    // The path 0 - 1 - 2: the node in the middle has two neighbours.
    expect([rows[0], rows[34], rows[68]]).toEqual([1, Math.fround(Math.log2(3)), 1]);
    expect(rows.slice(2, 6)).toEqual([0, 1, 0, 0]);
    expect(story.feature_names).toHaveLength(34);
  });

  test('are a column a node in a small graph, else degrees, and a notice says which', async () => {
    const small = await tryImport('NPY', without('features.npy'));
    expect(small.numbers('features.npy')).toEqual([1, 0, 0, 0, 1, 0, 0, 0, 1]);
    expect(small.notices).toContainEqual(expect.stringContaining('a column of its own (identity)'));
    const large = await tryImport('NPY', withoutEdges(4097));
    expect(large.manifest.num_features).toBe(34);
    expect(large.notices).toContainEqual(expect.stringContaining('34 columns that say how many'));
    const asked = { madeFeatures: 'IDENTITY' } as const;
    const said = (await tryImport('NPY', without('features.npy'), asked)).notices.join();
    expect(said).not.toContain('no features');
  });

  test('may be halves, and are refused beside others or for a large graph', async () => {
    const halves = { featureDtype: 'float16' } as const;
    const { manifest } = await tryImport('NPY', without('features.npy'), halves);
    expect(manifest.feature_dtype).toBe('float16');
    const asked = { madeFeatures: 'IDENTITY' } as const;
    const beside = await linesOf('NPY', without(), null, asked);
    expect(beside).toEqual([
      'made_features: the source has features: leave this out, or the features',
    ]);
    expect(await linesOf('NPY', withoutEdges(4097), null, asked)).toEqual([
      expect.stringMatching(/^made_features: IDENTITY .* at most 4,096 nodes.* use DEGREE$/),
    ]);
  });
});
