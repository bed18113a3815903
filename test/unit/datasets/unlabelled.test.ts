import { expect, test } from 'vitest';
import {
  float32,
  folderOf,
  int32,
  int64,
  linesOf,
  npy,
  pathGraph,
  tryImport,
} from './workbench.ts';

/** Graphs whose nodes are to be predicted, and have no labels. */

const edgeIndex = (...ends: number[]) =>
  npy('int64', [2, ends.length / 2], BigInt64Array.from(ends, BigInt));

function withoutLabels(graph: typeof pathGraph) {
  const { 'features.npy': features, 'indptr.npy': indptr, 'indices.npy': indices } = graph;
  return { 'features.npy': features, 'indptr.npy': indptr, 'indices.npy': indices };
}

const unlabelled = {
  'features.npy': pathGraph['features.npy'],
  'edge_index.npy': edgeIndex(0, 2, 1, 0, /* to */ 1, 1, 0, 0),
};

test.each([
  ['edge_index', unlabelled],
  ['indptr and indices', { ...withoutLabels(pathGraph) }],
  ['weights of edges', { ...unlabelled, 'edge_weight.npy': float32(1, 2, 3, 4) }],
])('a graph without labels, of %s, is there to be predicted', async (_, files) => {
  const { manifest, notices, numbers } = await tryImport('NPY', folderOf(files));
  const split = { train: 0, val: 0, test: 0 };
  expect(manifest).toMatchObject({ num_nodes: 3, num_edges: 4, num_classes: 0, split });
  expect(numbers('labels.npy')).toEqual([-1, -1, -1]);
  expect(notices).toEqual([expect.stringContaining('there are no labels')]);
});

test('edges alone need a number of nodes', async () => {
  const edges = { 'edge_index.npy': edgeIndex(0, 2, /* to */ 1, 1) };
  expect(await linesOf('NPY', folderOf(edges))).toEqual([
    expect.stringMatching(/^edge_index\.npy: .* how many nodes.*num_nodes in a meta\.json/),
  ]);
  const counted = folderOf({ ...edges, 'meta.json': '{"num_nodes": 4}' });
  const { manifest } = await tryImport('NPY', counted);
  expect(manifest).toMatchObject({ num_nodes: 4, num_edges: 2, num_features: 4 });
});

test('labels without a training split, and a split without labels, are mistakes', async () => {
  const labels = { ...unlabelled, 'labels.npy': int32(0, 1, 0) };
  expect(await linesOf('NPY', folderOf(labels))).toEqual([
    expect.stringContaining('train: the source has no split'),
  ]);
  const split = { ...unlabelled, 'test.npy': int64(2) };
  expect(await linesOf('NPY', folderOf(split))).toContain('labels.npy: is missing');
  const task = { task: 'REGRESSION' } as const;
  expect(await linesOf('NPY', folderOf(unlabelled), null, task)).toEqual([
    'labels.npy: is missing',
  ]);
});
