import { expect, test } from 'vitest';
import { inNeighbours, storedGraph } from '../../../src/datasets/graph.ts';
import { forAll, type Random } from '../../support/random.ts';

function edgesOf(pairs: readonly (readonly [number, number])[], numNodes: number) {
  return {
    numNodes,
    sources: Uint32Array.from(pairs, ([source]) => source),
    targets: Uint32Array.from(pairs, ([, target]) => target),
    weights: null,
    directed: false,
  };
}

test('stores both directions in ascending rows, without self-loops and repeats', () => {
  const pairs = [
    [2, 0],
    [1, 1],
    [0, 2],
    [3, 0],
    [2, 0],
  ] as const;
  const graph = storedGraph(edgesOf(pairs, 5));
  expect([...graph.indptr].map(Number)).toEqual([0, 2, 2, 3, 4, 4]);
  expect([...graph.indices]).toEqual([2, 3, 0, 0]);
  expect(graph).toMatchObject({ selfLoops: 1, duplicates: 2, weights: null });
});

test('carries weights along, and reports an edge that has two', () => {
  const graph = storedGraph({
    ...edgesOf(
      [
        [0, 1],
        [2, 1],
        [1, 0],
        [1, 2],
      ],
      3,
    ),
    weights: Float32Array.of(0.5, 2, 0.5, 3),
  });
  expect([...(graph.weights ?? [])]).toEqual([0.5, 0.5, 2, 2]);
  expect(graph.duplicates).toBe(1);
  expect([...graph.conflicts]).toEqual([1, 3]);
});

test('gives empty rows for a graph without edges', () => {
  const graph = storedGraph(edgesOf([], 3));
  expect([...graph.indptr].map(Number)).toEqual([0, 0, 0, 0]);
  expect(graph.indices).toHaveLength(0);
});

test('equals the plain way of doing it on random graphs', () => {
  forAll(100, (random: Random) => {
    const numNodes = random.integer(1, 12);
    const node = () => random.integer(0, numNodes - 1);
    const pairs = Array.from({ length: random.integer(0, 40) }, () => [node(), node()] as const);
    const rows = Array.from({ length: numNodes }, () => new Set<number>());
    for (const [source, target] of pairs) {
      if (source === target) continue;
      rows[source]?.add(target);
      rows[target]?.add(source);
    }
    const expected = rows.map((row) => [...row].sort((a, b) => a - b));
    const graph = storedGraph(edgesOf(pairs, numNodes));
    const found = expected.map((_, row) => [
      ...graph.indices.slice(Number(graph.indptr[row]), Number(graph.indptr[row + 1])),
    ]);
    expect(found).toEqual(expected);
    const different = expected.flat().length / 2;
    expect(graph.selfLoops + graph.duplicates + different).toBe(pairs.length);
  });
});

test('of directed edges holds each in the row of its target only', () => {
  const pairs = [
    [2, 0],
    [1, 1],
    [0, 2],
    [1, 0],
    [2, 0],
  ] as const;
  const graph = storedGraph({ ...edgesOf(pairs, 4), directed: true });
  expect([...graph.indptr].map(Number)).toEqual([0, 2, 2, 3, 3]);
  expect([...graph.indices]).toEqual([1, 2, 0]);
  expect(graph).toMatchObject({ selfLoops: 1, duplicates: 1 });
});

test('in-neighbours stand as listed, with loops, repeats and weights', () => {
  forAll(100, (random: Random) => {
    const numNodes = random.integer(1, 8);
    const node = () => random.integer(0, numNodes - 1);
    const pairs = Array.from({ length: random.integer(0, 30) }, () => [node(), node()] as const);
    const weights = Float32Array.from(pairs, (_, edge) => edge);
    const graph = inNeighbours({ ...edgesOf(pairs, numNodes), weights });
    for (let row = 0; row < numNodes; row += 1) {
      const [from, to] = [Number(graph.indptr[row]), Number(graph.indptr[row + 1])];
      const listed = [...pairs.entries()].filter(([, [, target]]) => target === row);
      expect([...graph.indices.slice(from, to)]).toEqual(listed.map(([, [source]]) => source));
      expect([...(graph.weights ?? []).slice(from, to)]).toEqual(listed.map(([edge]) => edge));
    }
  });
});
