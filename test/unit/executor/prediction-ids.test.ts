import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parquetReadObjects } from 'hyparquet';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { listTargets } from '../../../src/executor/list-targets.ts';
import { publishPredictions } from '../../../src/executor/publish-predictions.ts';
import { plainIds } from '../datasets/plain-graph.ts';
import { int64, npy } from '../datasets/workbench.ts';

/** Nodes by the ids of their dataset, in lists of what to predict and in predictions. */

let folder: string;
const at = (name: string) => join(folder, name);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gnnd-ids-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('a list of nodes', () => {
  const names = 'ann\nbob, jr.\n7\ndan\n';

  async function listed(text: string | null, hasNames = true, ids: readonly string[] = []) {
    writeFileSync(at('names.txt'), names);
    if (text !== null) writeFileSync(at('list.txt'), text);
    const output = at('targets.npy');
    const path = hasNames ? at('names.txt') : null;
    const list = text === null ? { file: '', ids } : { file: at('list.txt'), ids: [] };
    const found = await listTargets({ ...list, names: path, numNodes: 4, output });
    if (found.problems.length > 0) return found.problems.map(({ description }) => description);
    const bytes = readFileSync(output);
    const start = 10 + bytes.readUInt16LE(8);
    return [...new Uint32Array(bytes.buffer.slice(bytes.byteOffset + start))].slice(0, found.nodes);
  }

  test('takes ids of the dataset, and numbers that are no ids', async () => {
    expect(await listed('dan\r\n bob, jr. \n\n0\ndan\n')).toEqual([0, 1, 3]);
    // 7 is what the dataset calls node 2.
    expect(await listed('7\n3')).toEqual([2, 3]);
  });

  test('is taken from a spec, too', async () => {
    expect(await listed(null, true, ['dan', ' 7 ', '0'])).toEqual([0, 2, 3]);
    expect(await listed(null, true, ['ann', 'eve', ''])).toEqual([
      '[1]: "eve": expected the id of a node, or its number from 0 to 3',
      '[2]: "": expected the id of a node, or its number from 0 to 3',
    ]);
    expect(await listed(null, false, ['3', 'ann'])).toEqual([
      '[1]: "ann": expected a node, an integer from 0 to 3',
    ]);
  });

  test('names each line that is no node', async () => {
    expect(await listed('ann\neve\n4\n')).toEqual([
      'line 2: "eve": expected the id of a node, or its number from 0 to 3',
      'line 3: "4": expected the id of a node, or its number from 0 to 3',
    ]);
    expect(await listed('1\nann\n', false)).toEqual([
      'line 2: "ann": expected a node, an integer from 0 to 3',
    ]);
  });
});

describe('predictions', () => {
  const probabilities = Float32Array.of(0.1, 0.9, 0.25, 0.75, 1e-8, 1);

  async function published(options: {
    readonly names: string | null;
    readonly nodes: number[];
    readonly classNames?: readonly string[];
  }) {
    const { nodes, names, classNames = null } = options;
    const out = mkdtempSync(at('out-'));
    if (nodes.length > 0) writeFileSync(join(out, 'nodes.npy'), int64(...nodes));
    writeFileSync(join(out, 'predictions.npy'), int64(1, 1, 1));
    writeFileSync(join(out, 'probabilities.npy'), npy('float32', [3, 2], probabilities));
    if (names !== null) writeFileSync(at('names.txt'), names);
    await publishPredictions(
      {
        ...{ folder: out, formats: ['CSV', 'PARQUET'], outputs: ['PREDICTIONS', 'PROBABILITIES'] },
        ...{ names: names === null ? null : at('names.txt'), rows: 3, facts: {} },
        asks: 'NOTHING',
        classNames,
        learnt: 'CLASSIFICATION',
      },
      plainIds(),
      () => undefined,
    );
    expect(readdirSync(out).sort()).toEqual([
      ...['inference.json', 'predictions.csv', 'predictions.parquet'],
    ]);
    const bytes = readFileSync(join(out, 'predictions.parquet'));
    const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    return { csv: readFileSync(join(out, 'predictions.csv'), 'utf8'), rows: await read(file) };
  }

  const read = async (file: ArrayBuffer) => await parquetReadObjects({ file });

  test('have the id of each node where the dataset has ids', async () => {
    const names = 'ann\nbob, jr.\nsay "cyd"\ndan\n';
    const { csv, rows } = await published({ names, nodes: [1, 2, 3] });
    expect(csv).toBe(
      'node,id,prediction,probabilities_0,probabilities_1\n' +
        '1,"bob, jr.",1,0.1,0.9\n' +
        '2,"say ""cyd""",1,0.25,0.75\n' +
        '3,dan,1,1e-8,1\n',
    );
    expect(rows.map(({ id, node }) => [id, Number(node)])).toEqual([
      ['bob, jr.', 1],
      ['say "cyd"', 2],
      ['dan', 3],
    ]);
  });

  test('have the name of each class where classes have names', async () => {
    const { csv, rows } = await published({ names: null, nodes: [], classNames: ['a', 'b, c'] });
    expect(csv.split('\n').slice(0, 2)).toEqual([
      'node,prediction,class,probabilities_0,probabilities_1',
      '0,1,"b, c",0.1,0.9',
    ]);
    expect(Object.keys(rows[0] ?? {})).toEqual(['node', 'prediction', 'class', 'probabilities']);
    expect(rows.map((row) => row['class'])).toEqual(['b, c', 'b, c', 'b, c']);
  });

  test('have numbers alone where it has none', async () => {
    const { csv, rows } = await published({ names: null, nodes: [] });
    expect(csv.split('\n').slice(0, 2)).toEqual([
      'node,prediction,probabilities_0,probabilities_1',
      '0,1,0.1,0.9',
    ]);
    expect(Object.keys(rows[0] ?? {})).toEqual(['node', 'prediction', 'probabilities']);
  });

  test('may be embeddings alone', async () => {
    const out = mkdtempSync(at('out-'));
    writeFileSync(
      join(out, 'embeddings.npy'),
      npy('float32', [2, 3], Float32Array.of(1, 2, 3, 4, 5, 6)),
    );
    const wanted = {
      folder: out,
      formats: ['NPY', 'CSV', 'PARQUET'],
      outputs: ['EMBEDDINGS'],
    } as const;
    const more = { names: null, classNames: ['a'], rows: 2, learnt: 'CLASSIFICATION' } as const;
    const nothing = { asks: 'NOTHING' } as const;
    await publishPredictions(
      { ...wanted, ...more, ...nothing, facts: { layer: 1 } },
      plainIds(),
      () => undefined,
    );
    expect(readFileSync(join(out, 'predictions.csv'), 'utf8')).toBe(
      'node,embeddings_0,embeddings_1,embeddings_2\n0,1,2,3\n1,4,5,6\n',
    );
    const bytes = readFileSync(join(out, 'predictions.parquet'));
    const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    expect(await read(file)).toEqual([
      { node: 0n, embeddings: [1, 2, 3] },
      { node: 1n, embeddings: [4, 5, 6] },
    ]);
    expect(
      Object.keys(JSON.parse(readFileSync(join(out, 'inference.json'), 'utf8')).files),
    ).toEqual([...['embeddings.npy', 'predictions.csv', 'predictions.parquet']]);
  });

  test('keep every bit of a number in the text', async () => {
    probabilities.set([0.1 + 2 ** -27, 1 / 3, 2 ** -149, 16_777_213, 0.3, 123_456.79]);
    const { csv } = await published({ names: null, nodes: [] });
    const read32 = csv
      .trim()
      .split('\n')
      .slice(1)
      .flatMap((line) => line.split(',').slice(2).map(Number).map(Math.fround));
    expect(read32).toEqual([...probabilities]);
  });
});
