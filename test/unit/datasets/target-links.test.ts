import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
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

/** The path 0 - 1 - 2 - 3 - 4, in both directions. */
const path = {
  ...pathGraph,
  'indptr.npy': int64(0, 1, 3, 5, 7, 8),
  'indices.npy': int32(1, 0, 2, 1, 3, 2, 4, 3),
  'features.npy': npy('float32', [5, 1], Float32Array.of(1, 2, 3, 4, 5)),
  'labels.npy': int32(0, 1, 0, 1, 0),
};
/** 0 to 1 to 2, in one direction. */
const oneWay = { ...path, 'indptr.npy': int64(0, 0, 1, 2, 2, 2), 'indices.npy': int32(0, 1) };

/** [links, 2] */
const pairs = (...ends: number[]) =>
  npy('int64', [ends.length / 2, 2], BigInt64Array.from(ends, BigInt));

type Files = Readonly<Record<string, Uint8Array>>;

function withLinks(graph: Files, links: Files): string {
  const folder = folderOf(graph);
  mkdirSync(join(folder, 'links'));
  for (const [name, bytes] of Object.entries(links)) {
    writeFileSync(join(folder, 'links', name), bytes);
  }
  return folder;
}

const links = {
  'train.npy': pairs(0, 2, 2, 4, 0, 4),
  'val.npy': pairs(1, 4),
  'test.npy': pairs(0, 3, 1, 3, 3, 0),
};

describe('links of a folder', () => {
  it('are stored as pairs, counted, and part of the digest', async () => {
    const negatives = {
      'val_negatives.npy': npy('int32', [1, 2], Int32Array.of(0, 3)),
      'test_negatives.npy': npy('int32', [3, 2], Int32Array.of(1, 2, 4, 4, 2, 0)),
    };
    const found = await tryImport('NPY', withLinks(path, { ...links, ...negatives }));
    expect(found.manifest.links).toEqual({
      ...{ train: 3, val: 1, test: 3 },
      negatives: { val: 2, test: 2 },
      in_graph: { val: 0, test: 0 },
    });
    const told =
      'brings 3 links to learn, 1 to validate and 3 to test, these with 2 negatives each';
    expect(found.notices).toContain(told);
    expect(found.numbers('links_train.npy')).toEqual([0, 2, 2, 4, 0, 4]);
    expect(found.numbers('links_test_negatives.npy')).toEqual([1, 2, 4, 4, 2, 0]);
    expect(Object.keys(found.manifest.sha256)).toContain('links_val.npy');
    const without = await tryImport('NPY', folderOf(path));
    expect(without.manifest.links).toBe(undefined);
    expect(without.digest).not.toBe(found.digest);
  });

  it('have classes, labels or numbers, which the manifest counts', async () => {
    const kinds = (train: Uint8Array, val: Uint8Array, test: Uint8Array) =>
      withLinks(path, {
        ...links,
        ...{ 'train_labels.npy': train, 'val_labels.npy': val, 'test_labels.npy': test },
      });
    const classes = await tryImport('NPY', kinds(int64(0, 2, 1), int64(1), int64(0, 0, 2)));
    expect(classes.manifest.links?.labels).toEqual({ task: 'CLASSIFICATION', count: 3 });
    expect(classes.numbers('links_train_labels.npy')).toEqual([0, 2, 1]);
    const floats = (...values: number[]) => float32(...values);
    const numbers = await tryImport('NPY', kinds(floats(1, 2, 4), floats(3), floats(1, 1, 1)));
    expect(numbers.manifest.links?.labels).toEqual({ task: 'REGRESSION', count: 1 });
    expect(numbers.notices.join()).toMatch(/whole numbers of a float type/);
    const wrong = kinds(int64(0, 1, 1), floats(0), int64(0, 2, 1));
    expect(await linesOf('NPY', wrong)).toEqual([
      'links/val_labels.npy: has 1 numbers of each link: expected classes of each link, as for ' +
        'training',
      'links/test_labels.npy: has class 2 at index 1: expected one of the 2 classes of training',
    ]);
    const short = withLinks(path, { ...links, 'train_labels.npy': int64(0, 1) });
    expect((await linesOf('NPY', short)).join()).toMatch(/val_labels\.npy: is missing/);
    expect(await linesOf('NPY', kinds(int64(0, 1), int64(-1), int64(0, 0, 0)))).toHaveLength(1);
    expect(await linesOf('NPY', kinds(int64(0, 1), int64(1), int64(0, 0, 0)))).toEqual([
      'links/train_labels.npy: has 2 rows: expected 3, one for each link',
    ]);
  });

  it('have weights, where those of training are told', async () => {
    const weighed = (name: string, weights: Uint8Array) =>
      withLinks(path, { ...links, [name]: weights });
    const found = await tryImport('NPY', weighed('train_weights.npy', float32(0.5, 0, 3)));
    expect(found.manifest.links?.weighted).toBe(true);
    expect(found.numbers('links_train_weights.npy')).toEqual([0.5, 0, 3]);
    expect(found.notices).toContain(
      'brings 3 links to learn, 1 to validate and 3 to test, each of training with a weight',
    );
    const whole = await tryImport('NPY', weighed('train_weight.npy', int64(1, 2, 3)));
    expect(whole.numbers('links_train_weights.npy')).toEqual([1, 2, 3]);
    const line = (text: string) => [`links/train_weights.npy: ${text}`];
    const expected = 'expected a finite number from 0 on for each link';
    for (const [weights, told] of [
      [float32(1, -0.5, 1), `has -0.5 at index 1: ${expected}`],
      [float32(1, 1, Number.NaN), `has NaN at index 2: ${expected}`],
      [float32(1, Number.POSITIVE_INFINITY, 1), `has Infinity at index 1: ${expected}`],
      [float32(0, 0, 0), 'has no weight above 0: expected one or more, or no such file'],
      [float32(1, 1), 'has 2 rows: expected 3, one for each link'],
      [pairs(1, 1), 'has shape (1, 2), expected [links]'],
    ] as const) {
      expect(await linesOf('NPY', weighed('train_weights.npy', weights))).toEqual(line(told));
    }
    expect(await linesOf('NPY', weighed('test_weights.npy', float32(1, 1, 1)))).toEqual([
      'links/test_weights.npy: is not read: links of training alone have weights',
    ]);
  });

  it('may have a pool of pairs that are none, for both sides', async () => {
    const pools = {
      'val_negative_pairs.npy': pairs(2, 0, 3, 1),
      'test_negative_pairs.npy': npy('int32', [2, 3], Int32Array.of(0, 1, 2, 4, 4, 4)),
    };
    const found = await tryImport('NPY', withLinks(path, { ...links, ...pools }));
    expect(found.manifest.links?.pool).toEqual({ val: 2, test: 3 });
    expect(found.manifest.links?.negatives).toEqual({ val: 0, test: 0 });
    expect(found.numbers('links_test_negative_pairs.npy')).toEqual([0, 4, 1, 4, 2, 4]);
    expect(found.notices).toContain(
      'brings 3 links to learn, 1 to validate and 3 to test, beside 3 pairs that are none',
    );
    const { 'val_negative_pairs.npy': _, ...one } = pools;
    expect(await linesOf('NPY', withLinks(path, { ...links, ...one }))).toEqual([
      'links/val_negative_pairs.npy: is missing beside that of test',
    ]);
    const beyond = { ...pools, 'val_negative_pairs.npy': pairs(2, 9) };
    expect(await linesOf('NPY', withLinks(path, { ...links, ...beyond }))).toEqual([
      'links/val_negative_pairs.npy: has 9 at row 0, column 1: expected ids below the 5 nodes',
    ]);
  });

  it('may list sources first, then destinations', async () => {
    const turned = npy('uint32', [2, 3], Uint32Array.of(0, 2, 0, 2, 4, 4));
    const found = await tryImport('NPY', withLinks(path, { ...links, 'train.npy': turned }));
    expect(found.numbers('links_train.npy')).toEqual([0, 2, 2, 4, 0, 4]);
    const both = { ...links, 'val.npy': pairs(1, 4, 4, 1) };
    const { notices, numbers } = await tryImport('NPY', withLinks(oneWay, both));
    expect(numbers('links_val.npy')).toEqual([1, 4, 4, 1]);
    expect(notices.join()).toMatch(/links\/val\.npy has shape \(2, 2\), read as \[2, links\]/);
  });

  it('that are edges of the graph are told, with their share', async () => {
    const own = { ...links, 'test.npy': pairs(1, 2, 3, 0, 4, 3, 3, 1) };
    const { notices, manifest } = await tryImport('NPY', withLinks(path, own));
    expect(manifest.links?.in_graph).toEqual({ val: 0, test: 2 });
    expect(notices).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^2 of the 4 links in links\/test\.npy \(50\.0 %\) are edges of/),
      ]),
    );
  });

  it('on two sides are refused, and so are reverses where edges have theirs', async () => {
    const twice = { ...links, 'val.npy': pairs(2, 0, 1, 4, 1, 3), 'test.npy': pairs(4, 1) };
    expect(await linesOf('NPY', withLinks(path, twice))).toEqual([
      'links/val.npy: link 0, 2 to 0, or its reverse, is in links/train.npy, too',
      'links/test.npy: link 0, 4 to 1, or its reverse, is in links/val.npy, too',
    ]);
    // An edge that is repeated in one direction has its reverse all the same.
    const repeated = { ...path, 'indptr.npy': int64(0, 2, 4, 6, 8, 9) };
    const graph = { ...repeated, 'indices.npy': int32(1, 1, 0, 2, 1, 3, 2, 4, 3) };
    expect(await linesOf('NPY', withLinks(graph, twice))).toHaveLength(2);
    // Directed links and their reverses are two.
    expect((await tryImport('NPY', withLinks(oneWay, twice))).manifest.links?.test).toBe(1);
    const same = { ...links, 'test.npy': pairs(2, 4, 0, 2, 3, 1) };
    expect(await linesOf('NPY', withLinks(oneWay, same))).toEqual([
      'links/test.npy: link 0, 2 to 4, is in links/train.npy, too, and so is 1 other',
    ]);
  });

  it('beside tables are not read, which is told', async () => {
    const lines = (...all: string[]) => new TextEncoder().encode(`${all.join('\n')}\n`);
    const tables = {
      'nodes.csv': lines('id,height', '0,1', '1,2', '2,3', '3,4', '4,5'),
      'edges.csv': lines('source,target', '0,1', '1,2'),
    };
    const { notices, manifest } = await tryImport('CSV', withLinks(tables, links));
    expect(manifest.links).toBeUndefined();
    expect(notices.join()).toMatch(/links\/ is not read: links are taken beside arrays alone/);
  });

  it('that cannot be are told by their files, all at once', async () => {
    const wrong = {
      'train.npy': pairs(0, 7, 5, 1, 1, 2),
      'val.npy': npy('int64', [0, 2], new BigInt64Array()),
      'test.npy': float32(1, 2),
      'val_negatives.npy': npy('int32', [2], Int32Array.of(1, 2)),
    };
    expect(await linesOf('NPY', withLinks(path, wrong))).toEqual([
      'links/train.npy: has 7 at row 0, column 1 and 1 more: expected ids below the 5 nodes',
      'links/val.npy: is empty: expected one link or more',
      expect.stringMatching(/^links\/test\.npy: has dtype float32, expected ids of nodes/),
      'links/val_negatives.npy: has shape (2), expected [links, negatives]',
    ]);
    const { 'test.npy': _, ...others } = links;
    const negatives = npy('int32', [3, 1], Int32Array.of(0, 1, 2));
    const short = withLinks(path, { ...others, 'val_negatives.npy': negatives });
    expect(await linesOf('NPY', short)).toEqual([
      'links/test.npy: is missing',
      'links/val_negatives.npy: has 3 rows of negatives: expected 1, one for each link of val',
    ]);
  });
});
