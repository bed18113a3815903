import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parquetReadObjects } from 'hyparquet';
import { describe, expect, test } from 'vitest';
import { publishPredictions } from '../../../src/executor/publish-predictions.ts';
import { temporaryFolder } from '../../support/at-end.ts';
import { plainIds } from '../datasets/plain-graph.ts';
import { float32, int64, npy } from '../datasets/workbench.ts';

/** Scores of pairs and nearest nodes as tables. */

const folder = temporaryFolder('gnnd-answers-');
const names = join(folder, 'names.txt');
writeFileSync(names, 'ann\nbob, jr.\napples\nbread\n');

const ids = (shape: readonly number[], values: readonly number[]) =>
  npy('int64', shape, BigInt64Array.from(values, BigInt));

async function published(
  asks: 'SCORES' | 'NEAREST',
  arrays: Readonly<Record<string, Uint8Array>>,
  more: { readonly names: string | null; readonly rows: number },
) {
  const out = mkdtempSync(join(folder, 'out-'));
  for (const [name, bytes] of Object.entries(arrays)) writeFileSync(join(out, name), bytes);
  const options = {
    ...{ folder: out, formats: ['NPY', 'CSV', 'PARQUET'] as const, outputs: [], asks },
    ...{ classNames: null, learnt: 'CLASSIFICATION' as const, facts: {}, ...more },
  };
  await publishPredictions(options, plainIds(), () => undefined);
  const bytes = readFileSync(join(out, 'predictions.parquet'));
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  const { files } = JSON.parse(readFileSync(join(out, 'inference.json'), 'utf8'));
  return {
    csv: readFileSync(join(out, 'predictions.csv'), 'utf8'),
    rows: await parquetReadObjects({ file }),
    files: Object.keys(files),
  };
}

describe('scores of pairs', () => {
  const arrays = { 'pairs.npy': ids([2, 2], [0, 2, 1, 3]), 'scores.npy': float32(0.5, -1.25) };

  test('have a row each, in their order', async () => {
    const { csv, rows, files } = await published('SCORES', arrays, { names: null, rows: 2 });
    expect(csv).toBe('source,destination,score\n0,2,0.5\n1,3,-1.25\n');
    expect(rows).toEqual([
      { source: 0n, destination: 2n, score: 0.5 },
      { source: 1n, destination: 3n, score: -1.25 },
    ]);
    expect(files).toEqual(['pairs.npy', 'predictions.csv', 'predictions.parquet', 'scores.npy']);
  });

  test('have the ids of both ends where the dataset has ids', async () => {
    const { csv, rows } = await published('SCORES', arrays, { names, rows: 2 });
    expect(csv.split('\n')[2]).toBe('1,"bob, jr.",3,bread,-1.25');
    expect(rows[0]).toEqual({
      ...{ source: 0n, source_id: 'ann', destination: 2n, destination_id: 'apples', score: 0.5 },
    });
  });
});

describe('the nearest', () => {
  const arrays = {
    'nodes.npy': int64(0, 1),
    'nearest.npy': ids([2, 2], [3, 2, 2, -1]),
    'scores.npy': npy('float32', [2, 2], Float32Array.from([2, 1, 3, Number.NaN])),
  };

  test('have a row for each that there is, the best first', async () => {
    const { csv, rows } = await published('NEAREST', arrays, { names, rows: 2 });
    expect(csv).toBe(
      'node,id,rank,nearest,nearest_id,score\n' +
        '0,ann,1,3,bread,2\n0,ann,2,2,apples,1\n1,"bob, jr.",1,2,apples,3\n',
    );
    expect(rows).toHaveLength(3);
    expect(rows[1]).toMatchObject({ node: 0n, rank: 2n, nearest: 2n, nearest_id: 'apples' });
  });

  test('of all nodes are theirs by their numbers', async () => {
    const { 'nodes.npy': _, ...others } = arrays;
    const { csv } = await published('NEAREST', others, { names: null, rows: 2 });
    expect(csv).toBe('node,rank,nearest,score\n0,1,3,2\n0,2,2,1\n1,1,2,3\n');
  });
});
