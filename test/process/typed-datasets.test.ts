import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { localTasks } from '../../src/datasets/local-tasks.ts';
import { loadCore } from '../../src/native/load.ts';
import { forAll, type Random } from '../support/random.ts';
import {
  type Files,
  importTypedFolder,
  library,
  typedFolder,
} from '../unit/datasets/typed-folder.ts';
import { never, npy } from '../unit/datasets/workbench.ts';

/** Graphs of several types with the native sorter and check. */

const native = loadCore();
const watch = { progress: () => undefined, signal: never };

type Pair = readonly [source: number, target: number];
interface Typed {
  readonly types: Readonly<Record<string, number>>;
  readonly relations: Readonly<Record<string, readonly Pair[]>>;
}

function typed(random: Random): Typed {
  const names = ['a', 'b-2', 'C_c'].slice(0, random.integer(1, 3));
  const types = Object.fromEntries(names.map((name) => [name, random.integer(1, 40)]));
  const relations = Array.from({ length: random.integer(1, 4) }, (_, index) => {
    const [source, target] = [random.pick(names), random.pick(names)];
    const end = (name: string) => random.integer(0, (types[name] ?? 1) - 1);
    const edges = Array.from({ length: random.integer(0, 200) }, () => {
      return [end(source), end(target)] as const;
    });
    return [`${source}__r${index}__${target}`, edges] as const;
  });
  return { types, relations: Object.fromEntries(relations) };
}

/** Rows of the plainest CSC: ascending sources of each target, each once. */
function rowsOf(edges: readonly Pair[], numRows: number): number[][] {
  return Array.from({ length: numRows }, (_, row) => {
    const sources = edges.filter(([, target]) => target === row).map(([source]) => source);
    return [...new Set(sources)].sort((a, b) => a - b);
  });
}

function filesOf({ types, relations }: Typed): Files {
  const arrays = Object.entries(relations).map(([name, edges]) => {
    // Two edges are read as [2, edges], whoever means [edges, 2].
    const isByEnd = edges.length === 2;
    const ends = isByEnd ? [0, 1].map((side) => edges.map((edge) => edge[side] ?? 0)) : edges;
    const values = BigInt64Array.from(ends.flat(), BigInt);
    return [`edges/${name}.npy`, npy('int64', [edges.length, 2], values)] as const;
  });
  return { 'types.json': JSON.stringify(types), ...Object.fromEntries(arrays) };
}

/** Whether the other direction of a relation has its edges. */
function isBothWays(name: string, edges: readonly Pair[]): boolean {
  const [source, , destination] = name.split('__');
  const all = new Set(edges.map(String));
  return source === destination && edges.every(([a, b]) => all.has(String([b, a])));
}

test('relations and their reverses are those of a plain list, between any types', async () => {
  const cases: Typed[] = [];
  forAll(25, (random) => void cases.push(typed(random)));
  for (const graph of cases) {
    const source = typedFolder(filesOf(graph));
    const { manifest, numbers } = await importTypedFolder(source, { native });
    const oneWay = Object.entries(graph.relations).filter(
      ([name, edges]) => !isBothWays(name, edges),
    );
    expect(manifest.relations).toHaveLength(Object.keys(graph.relations).length + oneWay.length);
    for (const relation of manifest.relations) {
      const { source: from, name, destination } = relation;
      const place = `edges/${from}__${name}__${destination}`;
      const given =
        graph.relations[relation.reverse_of ?? `${from}__${name}__${destination}`] ?? [];
      const edges: readonly Pair[] =
        relation.reverse_of === undefined ? given : given.map(([a, b]) => [b, a]);
      const rows = rowsOf(edges, graph.types[destination] ?? 0);
      expect(numbers(`${place}/indices.npy`)).toEqual(rows.flat());
      const ends = rows.map((_, row) => rows.slice(0, row + 1).flat().length);
      expect(numbers(`${place}/indptr.npy`)).toEqual([0, ...ends]);
      expect(relation.num_edges).toBe(ends.at(-1));
    }
  }
});

test('what is damaged is found by its name', async () => {
  const { folder, digest } = await importTypedFolder(typedFolder(library), { native });
  const check = () => localTasks(native).check({ path: folder, digest }, watch);
  expect(await check()).toEqual({ problems: [], problemCount: 0 });
  const damage = (name: string, change: (data: Buffer) => void) => {
    const path = join(folder, name);
    chmodSync(path, 0o640);
    const bytes = readFileSync(path);
    change(bytes.subarray(128));
    writeFileSync(path, bytes);
  };
  damage('edges/author__writes__paper/indices.npy', (data) => data.writeInt32LE(9, 0));
  damage('edges/paper__cites__paper/indices.npy', (data) => data.writeInt32LE(2, 0));
  damage('nodes/paper/features.npy', (data) => data.writeFloatLE(Number.NaN, 8));
  damage('nodes/paper/val.npy', (data) => data.writeInt32LE(0, 0));
  const { problems } = await check();
  expect(problems.map(({ path, description }) => `${path}: ${description}`)).toEqual([
    expect.stringMatching(/^edges\/author__writes__paper\/indices\.npy: was changed: /),
    expect.stringMatching(/^edges\/paper__cites__paper\/indices\.npy: was changed: /),
    expect.stringMatching(/^nodes\/paper\/features\.npy: was changed: /),
    expect.stringMatching(/^nodes\/paper\/val\.npy: was changed: /),
    'nodes/paper/features.npy: must be finite, found nan at row 1, column 0',
    'nodes/paper/val.npy: must share no node with train.npy, found 0 at index 0',
    'edges/author__writes__paper/indices.npy: must be below the 2 nodes of author, found 9 at index 0',
    'edges/paper__cites__paper/indices.npy: must ascend within a row, each source once, found 2 ' +
      'at index 1 after 2',
  ]);
});

test('an import says what the native check finds, by the names of the source', async () => {
  const renamed = new Set(['nodes/paper/features.npy', 'nodes/paper/test.npy']);
  const files: Files = {
    ...Object.fromEntries(Object.entries(library).filter(([name]) => !renamed.has(name))),
    'nodes/paper/x.npy': npy('float32', [3, 1], Float32Array.of(0, Number.POSITIVE_INFINITY, 0)),
    'nodes/paper/test_idx.npy': npy('int64', [1], BigInt64Array.of(0n)),
  };
  await expect(importTypedFolder(typedFolder(files), { native })).rejects.toMatchObject({
    problems: [
      {
        path: 'nodes/paper/x.npy',
        description: expect.stringMatching(/^must be finite, found inf/),
      },
      {
        path: 'nodes/paper/test_idx.npy',
        description: 'must share no node with train.npy, found 0 at index 0',
      },
    ],
  });
});
