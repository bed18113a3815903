import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { listPairs } from '../../../src/datasets/list-pairs.ts';
import { temporaryFolder } from '../../support/at-end.ts';
import { plainIds } from './plain-graph.ts';
import { folderOf, int64, npy } from './workbench.ts';

/** A user's pairs, in every form, and what is wrong with them by their places. */

const folder = temporaryFolder('gnnd-pairs-');
const output = join(folder, 'pairs.out.npy');

async function listed(name: string, content: string | Uint8Array, names: string | null = null) {
  const file = join(folder, name);
  writeFileSync(file, content);
  const found = await listPairs({ file, names, numNodes: 5, output }, plainIds());
  const problems = found.problems.map(({ description }) => description);
  if (problems.length > 0) return { problems };
  const bytes = readFileSync(output);
  const data = bytes.subarray(10 + bytes.readUInt16LE(8));
  const ends = Array.from({ length: data.length / 4 }, (_, at) => data.readUInt32LE(4 * at));
  expect(found.pairs).toBe(ends.length / 2);
  return { ends };
}

const namesFile = () =>
  join(folderOf({ 'names.txt': 'ann\nbob\napples\nbread\n17\n' }), 'names.txt');

describe('pairs', () => {
  test('of arrays are sources and destinations either way', async () => {
    const ends = [0, 4, 1, 2, 3, 3];
    const array = (shape: readonly number[], values: readonly number[]) =>
      npy('int64', shape, BigInt64Array.from(values, BigInt));
    expect(await listed('a.npy', array([3, 2], ends))).toEqual({ ends });
    expect(await listed('b.npy', array([2, 3], [0, 1, 3, 4, 2, 3]))).toEqual({ ends });
    expect(await listed('c.npy', array([2, 2], [0, 1, 3, 4]))).toEqual({ ends: [0, 3, 1, 4] });
  });

  test('of text are by lines, with or without a header, in their order and repeated', async () => {
    expect(await listed('a.csv', '0,4\n1,2\n0,4\n')).toEqual({ ends: [0, 4, 1, 2, 0, 4] });
    expect(await listed('b.csv', 'target,source\n0,4\n')).toEqual({ ends: [4, 0] });
    expect(await listed('c.txt', '# by hand\n3 1\n')).toEqual({ ends: [3, 1] });
  });

  test('of text have ids, and numbers where these are no ids', async () => {
    const names = namesFile();
    const text = 'user,item\nann,apples\nbob,17\n3,bread\n';
    expect(await listed('d.csv', text, names)).toEqual({ ends: [0, 2, 1, 4, 3, 3] });
    expect(await listed('e.csv', 'ann,bread\n', names)).toEqual({ ends: [0, 3] });
  });

  test('beyond the graph, or none, are told by their places', async () => {
    const expected = 'expected a node, an integer from 0 to 4';
    expect(await listed('f.npy', npy('int64', [2, 1], BigInt64Array.from([5n, -1n])))).toEqual({
      problems: [`pair 0: 5: ${expected}`, `pair 0: -1: ${expected}`],
    });
    expect(await listed('f.csv', '0,1\n2,9\n')).toEqual({
      problems: [`f.csv:2: "9": ${expected}`],
    });
    expect(await listed('g.csv', 'ann,apples\nann,pears\n', namesFile())).toEqual({
      problems: ['g.csv:2: "pears": expected the id of a node, or its number from 0 to 4'],
    });
    expect(await listed('h.npy', npy('int64', [0, 2], new BigInt64Array()))).toEqual({
      problems: ['has no pairs'],
    });
    expect(await listed('i.npy', int64(1, 2, 3))).toEqual({
      problems: [
        'cannot be read: int64 of shape (3); expected integers of shape [2, pairs] or [pairs, 2]',
      ],
    });
    const missing = { file: join(folder, 'none.npy'), names: null, numNodes: 5, output };
    expect((await listPairs(missing, plainIds())).problems).toHaveLength(1);
  });
});
