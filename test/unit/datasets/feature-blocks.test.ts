import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chunksOf, quotedText } from '../../../src/datasets/duckdb.ts';
import {
  type BlockTable,
  featureBlocks,
  hasBlocks,
  NeedsRows,
} from '../../../src/datasets/feature-blocks.ts';
import { hasEdgeBlocks, parquetEdges } from '../../../src/datasets/parquet-edges.ts';
import { ParquetFile } from '../../../src/datasets/parquet-reader.ts';
import { makeFolder, never, parquet, tryImport } from './workbench.ts';

/** Large Parquet files of nodes, whose features come in blocks. */

describe('blocks', () => {
  async function read(table: BlockTable, features = [1, 2], width = features.length) {
    const found: unknown[] = [];
    for await (const block of featureBlocks(table, { fields: [0], features, width }, never)) {
      for (const [row, { fields }] of block.rows().entries()) {
        found.push([fields[0], ...block.features.slice(row * width, (row + 1) * width)]);
      }
    }
    return found;
  }
  test('are read of Parquet files in whatever codec, with lists', async () => {
    for (const codec of ['uncompressed', 'snappy', 'gzip', 'zstd', 'lz4_raw', 'brotli']) {
      const path = join(makeFolder(), 'nodes.parquet');
      const values = "('a', 1, [0.5, 2]::FLOAT[]), ('b', 2, [3, 4]::FLOAT[])";
      const table = `(SELECT * FROM (VALUES ${values}) t(id, x, v))`;
      const sql = `COPY ${table} TO ${quotedText(path)} (FORMAT parquet, COMPRESSION ${codec})`;
      for await (const _ of chunksOf(sql, never));
      const found = {
        ...{ columns: ['id', 'x', 'v'], types: ['VARCHAR', 'INTEGER', 'FLOAT[]'] },
        parts: [{ path, name: 'nodes.parquet', isParquet: true, keys: [] }],
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
  });

  test('are read of very many columns by several queries, by rows as well', async () => {
    const columns = 2500;
    const names = Array.from({ length: columns }, (_, at) => `f${at}`);
    const numberAt = (row: number, at: number) => row * 1000 + at + 0.25;
    const features = Object.fromEntries(
      names.map((name, at) => [name, [0, 1].map((row) => numberAt(row, at))]),
    );
    const path = join(makeFolder(), 'nodes.parquet');
    writeFileSync(path, parquet({ id: ['a', 'b'], ...features }));
    const table = {
      ...{ columns: ['id', ...names], types: ['VARCHAR', ...names.map(() => 'DOUBLE')], first: [] },
      parts: [{ path, name: 'nodes.parquet', isParquet: true, keys: [] }],
    };
    const all = names.map((_, at) => at + 1);
    const expected = ['a', 'b'].map((id, row) => [id, ...names.map((_, at) => numberAt(row, at))]);
    expect(await read(table, all)).toEqual(expected);
    const file = await ParquetFile.open(path, never);
    expect(file.types).toEqual(table.types);
    const rows: unknown[] = [];
    for await (const batch of file.rows()) rows.push(...batch.map(({ fields }) => fields));
    expect(rows).toEqual(expected);
  });

  test('of Parquet end where a number is missing', async () => {
    const path = join(makeFolder(), 'nodes.parquet');
    writeFileSync(path, parquet({ id: ['a', 'b'], x: [1, null], y: [1, 2] }));
    const table = {
      ...{ columns: ['id', 'x', 'y'], types: ['VARCHAR', 'DOUBLE', 'DOUBLE'] },
      first: [],
      parts: [{ path, name: 'nodes.parquet', isParquet: true, keys: [] }],
    };
    await expect(read(table)).rejects.toThrow(NeedsRows);
  });
});

describe('edges of Parquet', () => {
  const ends = { source: 1, target: 0, weight: 2 };
  async function open(weights: readonly number[], target: readonly number[]) {
    const path = join(makeFolder(), 'edges.parquet');
    const source = target.map((_, at) => BigInt(at));
    writeFileSync(path, parquet({ target, source, weight: weights }));
    return await ParquetFile.open(path, never);
  }
  const read = async (file: ParquetFile, columns = ends) => {
    const found: number[][] = [];
    for await (const { ends, weights, lines, firstLine } of parquetEdges(file, columns, 10)) {
      for (const [at, line] of lines.entries()) {
        const [source = -1, target = -1] = ends.subarray(2 * at, 2 * at + 2);
        found.push([firstLine + line, source, target, weights?.[at] ?? -1]);
      }
    }
    return found;
  };

  test('are read by columns, with their rows', async () => {
    const file = await open([0.5, 0, 2], [2, 0, 1]);
    expect(hasEdgeBlocks(file, ends)).toBe(true);
    expect(hasEdgeBlocks(file, { ...ends, source: 2 })).toBe(false);
    expect(await read(file)).toEqual([
      [11, 0, 2, 0.5],
      [12, 1, 0, 0],
      [13, 2, 1, 2],
    ]);
    expect((await read(file, { ...ends, weight: -1 }))[0]).toEqual([11, 0, 2, -1]);
  });

  test('end where a weight is none; an end that is no number of a node is none', async () => {
    for (const weight of [-1, 1e-60]) {
      const file = await open([0, 1, weight], [0, 1, 2]);
      await expect(read(file)).rejects.toThrow(NeedsRows);
    }
    const ends = (await read(await open([0, 1, 2], [0, 1, -1]))).map(([, , target]) => target);
    expect(ends).toEqual([0, 1, 2 ** 32 - 1]);
  });
});
