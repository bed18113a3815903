import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { chunksOf, quotedText } from '../../../src/datasets/duckdb.ts';
import {
  type BlockTable,
  blocksBytesMin,
  featureBlocks,
  hasBlocks,
  NeedsRows,
} from '../../../src/datasets/feature-blocks.ts';
import { folderOf, linesOf, makeFolder, never, parquet, tryImport } from './workbench.ts';

/** Large tables of nodes, whose features come in blocks. */

const rowsOf = 9000;
const columnsOf = 220;
const value = (row: number, column: number) => ((row * 31 + column * 7) % 1000) / 8;
const header = ['id', 'label', 'split', ...Array.from({ length: columnsOf }, (_, at) => `f${at}`)];
const lines = Array.from({ length: rowsOf }, (_, row) => {
  const features = Array.from({ length: columnsOf }, (_, column) => value(row, column));
  return [`"n\t${row}"`, row % 3, row % 2 === 0 ? 'train' : '', ...features].join(',');
});
const edges = 'source,target\n"n\t0","n\t1"\n';
const tables = (nodes: readonly string[], head = header.join(',')) =>
  folderOf({ 'nodes.csv': [head, ...nodes].join('\n'), 'edges.csv': edges });

describe('a large table', () => {
  test('is the dataset that its rows are', async () => {
    expect(lines.join('\n').length).toBeGreaterThan(blocksBytesMin);
    const whole = await tryImport('CSV', tables(lines));
    expect(whole.manifest).toMatchObject({ num_nodes: rowsOf, num_features: columnsOf });
    const features = whole.numbers('features.npy');
    for (const at of [0, columnsOf, 5000 * columnsOf + 17, rowsOf * columnsOf - 1]) {
      expect(features[at]).toBe(value(Math.floor(at / columnsOf), at % columnsOf));
    }
    expect(whole.numbers('labels.npy')).toEqual(lines.map((_, row) => row % 3));
    // A quoted number is one, but only the reader of rows says 'False' of a column of numbers.
    const mixed = lines.with(rowsOf - 1, (lines.at(-1) ?? '').replace(/,[^,]*$/, ',False'));
    const byRows = await tryImport('CSV', tables(mixed));
    const last = features.with(-1, 0);
    const found = byRows.numbers('features.npy');
    expect(found.length).toBe(last.length);
    expect(found.findIndex((number, at) => number !== last[at])).toBe(-1);
    const half = await tryImport('CSV', tables(lines), { featureDtype: 'float16' });
    expect(half.numbers('features.npy')[1]).toBe(0x3b00);
  });

  test('that has something wrong says it by line', async () => {
    const bad = lines
      .with(10, '"n\n10",0,train')
      .with(8000, (lines[8000] ?? '').replace(/,[^,]*$/, ',heavy'))
      .with(8500, (lines[8500] ?? '').replace('"n\t8500"', '"n\t0"'));
    expect(await linesOf('CSV', tables(bad))).toEqual([
      'nodes.csv:12: has 3 fields, expected the 223 of the header',
      "nodes.csv:8003: has 'heavy' in column 'f219', expected a float32 number",
      "nodes.csv:8503: has the id 'n\t0' again, ids must be unique",
    ]);
  });
});

describe('blocks', () => {
  const text = (name: string, content: string | Uint8Array, columns: readonly string[]) => ({
    ...{ columns, types: null, separator: ',' as const, first: [], hasDecimalCommas: false },
    parts: [{ path: join(folderOf({ [name]: content }), name), name, isParquet: false }],
  });
  async function read(table: BlockTable, features = [1, 2], width = features.length) {
    const found: unknown[] = [];
    for await (const block of featureBlocks(table, { fields: [0], features, width }, never)) {
      for (const [row, { fields }] of block.rows.entries()) {
        found.push([fields[0], ...block.features.slice(row * width, (row + 1) * width)]);
      }
    }
    return found;
  }
  const rows = [
    ['a', 1.5, -2],
    ['b', 0, 1000],
  ];
  const plain = 'id,x,y\na,1.5,-2\n"b",0,1e3\n';

  test('are read of packed text, by any separator, and of true and false', async () => {
    const columns = ['id', 'x', 'y'];
    expect(await read(text('n.csv', plain, columns))).toEqual(rows);
    expect(await read(text('n.csv', `\ufeff${plain}`, columns))).toEqual(rows);
    expect(await read(text('n.csv.gz', gzipSync(plain), columns))).toEqual(rows);
    const semi = text('n.csv', 'id;x;y\r\na;1,5;-2\r\nb;0;1e3\r\n', columns);
    const table = { ...semi, separator: ';' as const, hasDecimalCommas: true };
    expect(await read(table)).toEqual(rows);
    const truths = text('n.csv', 'id,x,y\na,True,0\nb,false,1\n', columns);
    const first = [{ line: 2, fields: ['a', 'True', '0'] }];
    expect(await read({ ...truths, first })).toEqual([
      ['a', 1, 0],
      ['b', 0, 1],
    ]);
  });

  test.each([
    ['a text', 'id,x,y\na,1.5,-2\nb,heavy,1\n'],
    ['nothing', 'id,x,y\na,1.5,\n'],
    ['a number that is none', 'id,x,y\na,nan,1\n'],
    ['one beyond float32', 'id,x,y\na,1e39,1\n'],
    ['too few fields', 'id,x,y\na,1\n'],
    ['too many fields', 'id,x,y\na,1,2,3\n'],
    ['a quote that stays open', 'id,x,y\n"a,1,2\n'],
    ['text behind a quote', 'id,x,y\n"a"b,1,2\n'],
  ])('end where there is %s', async (_, content) => {
    await expect(read(text('n.csv', content, ['id', 'x', 'y']))).rejects.toThrow(NeedsRows);
  });

  test('are read of Parquet files in whatever codec, with lists', async () => {
    for (const codec of ['uncompressed', 'snappy', 'gzip', 'zstd', 'lz4_raw', 'brotli']) {
      const path = join(makeFolder(), 'nodes.parquet');
      const values = "('a', 1, [0.5, 2]::FLOAT[]), ('b', 2, [3, 4]::FLOAT[])";
      const table = `(SELECT * FROM (VALUES ${values}) t(id, x, v))`;
      const sql = `COPY ${table} TO ${quotedText(path)} (FORMAT parquet, COMPRESSION ${codec})`;
      for await (const _ of chunksOf(sql, never));
      const found = {
        ...{ columns: ['id', 'x', 'v'], types: ['VARCHAR', 'INTEGER', 'FLOAT[]'] },
        ...{ separator: null, hasDecimalCommas: false },
        parts: [{ path, name: 'nodes.parquet', isParquet: true }],
        first: [{ line: 1, fields: ['a', 1, [0.5, 2]] }],
      };
      expect(hasBlocks(found, [1, 2])).toBe(false);
      expect(await read(found, [1, 2], 3)).toEqual([
        ['a', 1, 0.5, 2],
        ['b', 2, 3, 4],
      ]);
      const first = [{ line: 1, fields: ['a', 1, [0.5]] }];
      await expect(read({ ...found, first }, [1, 2], 2)).rejects.toThrow(NeedsRows);
    }
  });

  test('are read of the very file, whatever its path has in it', async () => {
    const folder = join(makeFolder(), "it's [a]* folder?");
    mkdirSync(folder);
    const id = ['a', 'b', 'c'];
    writeFileSync(join(folder, 'nodes.parquet'), parquet({ id, label: [0, 1, 0], x: [1, 2, 4] }));
    writeFileSync(join(folder, 'edges.parquet'), parquet({ source: ['a'], target: ['b'] }));
    const randomSplit = { validation: 0, test: 0, randomSeed: 0 };
    const { numbers } = await tryImport('PARQUET', folder, { randomSplit });
    expect(numbers('features.npy')).toEqual([1, 2, 4]);
    const path = join(folder, 'nodes.csv');
    writeFileSync(path, plain);
    const table = text('n.csv', plain, ['id', 'x', 'y']);
    const moved = [{ path, name: 'nodes.csv', isParquet: false }];
    expect(await read({ ...table, parts: moved })).toEqual(rows);
  });

  test('of Parquet end where a number is missing', async () => {
    const path = join(makeFolder(), 'nodes.parquet');
    writeFileSync(path, parquet({ id: ['a', 'b'], x: [1, null], y: [1, 2] }));
    const table = {
      ...{ columns: ['id', 'x', 'y'], types: ['VARCHAR', 'DOUBLE', 'DOUBLE'], separator: null },
      ...{ first: [], hasDecimalCommas: false },
      parts: [{ path, name: 'nodes.parquet', isParquet: true }],
    };
    await expect(read(table)).rejects.toThrow(NeedsRows);
  });
});
