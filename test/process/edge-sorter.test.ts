import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  EdgeSorter,
  type EdgeSorterOptions,
  type NativeSorter,
} from '../../src/datasets/edge-sorter.ts';
import { loadCore } from '../../src/native/load.ts';
import { forAll, type Random } from '../support/random.ts';
import { plainSorter } from '../unit/datasets/plain-graph.ts';
import { makeFolder } from '../unit/datasets/workbench.ts';

type Pairs = readonly (readonly [source: number, target: number, weight?: number])[];
type Options = Partial<EdgeSorterOptions> & { readonly numNodes: number };

/** Rows as lists of columns (and of weights), with what the sorter counted. */
async function sorted(pairs: Pairs, given: Options, native: NativeSorter = loadCore()) {
  const folder = makeFolder();
  const options = { isWeighted: false, keep: 'ONCE', bothWays: true, folder, ...given } as const;
  const sorter = new EdgeSorter(native, options);
  for (const [line, [source, target, weight]] of pairs.entries()) {
    sorter.add(source, target, weight, line);
    await sorter.settle();
  }
  const rows: number[][] = [];
  const weights: number[][] = [];
  let groups = 0;
  let start = 0n;
  for await (const group of sorter.rows()) {
    groups += 1;
    const first = start;
    for (const end of group.ends) {
      const [from, to] = [Number(start - first), Number(end - first)];
      rows.push([...group.indices.slice(from, to)]);
      if (group.weights !== null) weights.push([...group.weights.slice(from, to)]);
      start = end;
    }
  }
  await sorter.close();
  expect(readdirSync(folder)).toEqual([]);
  expect(rows).toHaveLength(options.numNodes);
  expect(sorter.entries).toBe(rows.flat().length);
  const { selfLoops, duplicates, conflicts, conflictCount } = sorter;
  return { rows, weights, groups, selfLoops, duplicates, conflicts, conflictCount };
}

test('stores both directions in ascending rows, without self-loops and repeats', async () => {
  const pairs: Pairs = [
    [2, 0],
    [1, 1],
    [0, 2],
    [3, 0],
    [2, 0],
  ];
  const graph = await sorted(pairs, { numNodes: 5 });
  expect(graph.rows).toEqual([[2, 3], [], [0], [0], []]);
  expect(graph).toMatchObject({ selfLoops: 1, duplicates: 2, weights: [] });
});

test('carries weights along, and reports an edge that has two', async () => {
  const pairs: Pairs = [
    [0, 1, 0.5],
    [2, 1, 2],
    [1, 0, 0.5],
    [1, 2, 3],
  ];
  const graph = await sorted(pairs, { numNodes: 3, isWeighted: true });
  expect(graph.weights).toEqual([[0.5], [0.5, 2], [2]]);
  expect(graph.duplicates).toBe(1);
  expect(graph.conflicts).toEqual([{ line: 3, earlier: 1 }]);
});

test('gives empty rows for a graph without edges', async () => {
  expect((await sorted([], { numNodes: 3 })).rows).toEqual([[], [], []]);
});

test('of directed edges holds each in the row of its target only', async () => {
  const pairs: Pairs = [
    [2, 0],
    [1, 1],
    [0, 2],
    [1, 0],
    [2, 0],
  ];
  const graph = await sorted(pairs, { numNodes: 4, bothWays: false });
  expect(graph.rows).toEqual([[1, 2], [], [0], []]);
  expect(graph).toMatchObject({ selfLoops: 1, duplicates: 1 });
});

test('keeps 20 conflicts and counts all', async () => {
  const pairs = Array.from({ length: 31 }, (_, at) => [0, 1, at] as const);
  const graph = await sorted(pairs, { numNodes: 2, isWeighted: true });
  expect(graph.conflictCount).toBe(30);
  expect(graph.conflicts).toHaveLength(20);
});

function randomPairs(random: Random): { numNodes: number; pairs: Pairs } {
  const numNodes = random.integer(1, 12);
  const node = () => random.integer(0, numNodes - 1);
  const count = random.integer(0, 60);
  return { numNodes, pairs: Array.from({ length: count }, () => [node(), node()] as const) };
}

/** Runs each case with all edges in memory, and with so few that many runs lie on the disk. */
const memories = [
  {},
  { entriesMax: 7 },
  { entriesMax: 7, memoryBytesMax: 0 },
  { entriesMax: 1, memoryBytesMax: 100 },
] as const;

test('equals the plain way of doing it on random graphs, in memory and on the disk', async () => {
  const cases: { numNodes: number; pairs: Pairs }[] = [];
  forAll(40, (random) => void cases.push(randomPairs(random)));
  for (const { numNodes, pairs } of cases) {
    const rows = Array.from({ length: numNodes }, () => new Set<number>());
    for (const [source, target] of pairs) {
      if (source === target) continue;
      rows[source]?.add(target);
      rows[target]?.add(source);
    }
    const expected = rows.map((row) => [...row].sort((a, b) => a - b));
    for (const memory of memories) {
      const graph = await sorted(pairs, { numNodes, ...memory });
      expect(graph.rows).toEqual(expected);
      const different = expected.flat().length / 2;
      expect(graph.selfLoops + graph.duplicates + different).toBe(pairs.length);
    }
  }
});

test('all in-neighbours stand as listed, with loops, repeats and weights', async () => {
  const cases: { numNodes: number; pairs: Pairs }[] = [];
  forAll(40, (random) => void cases.push(randomPairs(random)));
  for (const { numNodes, pairs } of cases) {
    const weighted = pairs.map(([source, target], edge) => [source, target, edge] as const);
    for (const memory of memories) {
      const options = { isWeighted: true, keep: 'ALL', bothWays: false } as const;
      const graph = await sorted(weighted, { numNodes, ...options, ...memory });
      for (let row = 0; row < numNodes; row += 1) {
        const listed = weighted.filter(([, target]) => target === row);
        expect(graph.rows[row]).toEqual(listed.map(([source]) => source));
        expect(graph.weights[row]).toEqual(listed.map(([, , edge]) => edge));
      }
    }
  }
});

test('rows are read in groups that are no larger than what is held', async () => {
  const pairs = Array.from({ length: 200 }, (_, at) => [(7 * at) % 100, at % 100] as const);
  const graph = await sorted(pairs, { numNodes: 100, entriesMax: 40 });
  expect(graph.groups).toBeGreaterThan(8);
});

test('names nodes beyond int32 in uint32', async () => {
  const numNodes = 2 ** 31 + 2;
  const sorter = new EdgeSorter(loadCore(), {
    ...{ numNodes, isWeighted: false, keep: 'ALL', bothWays: false, folder: makeFolder() },
  });
  sorter.add(2 ** 31 + 1, 0);
  const first = await sorter.rows().next();
  expect(first.value?.indices).toEqual(Uint32Array.of(2 ** 31 + 1));
  await sorter.close();
});

test('is the plain way of doing it, whatever the rule, where entries are many', async () => {
  const cases: { numNodes: number; pairs: Pairs; rule: Partial<EdgeSorterOptions> }[] = [];
  forAll(12, (random) => {
    const numNodes = random.pick([3, 100, 5_000, 40_000]);
    // Some nodes have many edges, so that there are repeats, conflicts, and rows of many entries.
    const node = () =>
      random.integer(0, random.chance(0.3) ? Math.min(2, numNodes - 1) : numNodes - 1);
    const weight = () => random.integer(0, 1);
    const count = random.integer(0, 20_000);
    const pairs = Array.from({ length: count }, () => [node(), node(), weight()] as const);
    const rule = {
      ...{ isWeighted: random.chance(0.5), bothWays: random.chance(0.5) },
      keep: random.pick(['ALL', 'ONCE'] as const),
    };
    cases.push({ numNodes, pairs, rule });
  });
  for (const { numNodes, pairs, rule } of cases) {
    const expected = await sorted(pairs, { numNodes, ...rule }, plainSorter());
    for (const memory of [{}, { entriesMax: 3_000, memoryBytesMax: 50_000 }]) {
      const found = await sorted(pairs, { numNodes, ...rule, ...memory });
      expect({ ...found, groups: 1 }).toEqual({ ...expected, groups: 1 });
    }
  }
});

test('adds nothing of a block of which an end is no node', async () => {
  const options = { numNodes: 3, isWeighted: false, keep: 'ALL', bothWays: false } as const;
  const sorter = new EdgeSorter(loadCore(), { ...options, folder: makeFolder() });
  const block = { weights: null, lines: new Uint32Array(), firstLine: 0 };
  expect(sorter.addAll({ ...block, ends: Uint32Array.of(0, 1, 2, 3) })).toBe(false);
  expect(sorter.addAll({ ...block, ends: Uint32Array.of(0, 1, 2, 2) })).toBe(true);
  const { value } = await sorter.rows().next();
  expect([...(value?.indices ?? [])]).toEqual([0, 2]);
  expect(sorter.edges).toBe(2);
});
