import { availableParallelism } from 'node:os';
import type { DuckDBDataChunk, DuckDBInstance } from '@duckdb/node-api';
import { availableMemoryBytes, hostMemoryBytes } from '../base/host-memory.ts';

/**
 * DuckDB, which reads Parquet files (decision 0099). It is loaded when the first table asks for
 * it, in processes of one import each: its library takes 70 MB of addresses and half a second.
 */

/** Threads read ahead; more of them hold more rows in memory. */
const threadsMax = 4;
/** Memory for its buffers: the least and the most bytes, and the share of what there is. */
const memoryBytes = { least: 2 ** 28, most: 2 ** 34, share: 0.4 };

let instance: Promise<DuckDBInstance> | null = null;

async function openInstance(): Promise<DuckDBInstance> {
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const bytes = memoryBytes.share * Math.min(hostMemoryBytes(), availableMemoryBytes());
  const limit = Math.max(memoryBytes.least, Math.min(memoryBytes.most, bytes));
  const opened = await DuckDBInstance.create(':memory:', {
    threads: String(Math.min(threadsMax, availableParallelism())),
    memory_limit: `${Math.floor(limit / 2 ** 20)}MiB`,
    // What it reads passes by: nothing has to wait on a disk.
    temp_directory: '',
    preserve_insertion_order: 'true',
    // All that is read is in the library; nothing is fetched from anywhere.
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
  });
  const connection = await opened.connect();
  // What the end of a file says is read once, not for each query.
  await connection.run('SET GLOBAL parquet_metadata_cache = true');
  connection.closeSync();
  return opened;
}

/** The rows of a query in the order of its source, some thousand at a time. */
export async function* chunksOf(sql: string, signal: AbortSignal): AsyncGenerator<DuckDBDataChunk> {
  instance ??= openInstance();
  const connection = await (await instance).connect();
  try {
    const result = await connection.stream(sql);
    for (;;) {
      signal.throwIfAborted();
      const chunk = await result.fetchChunk();
      if (chunk === null || chunk.rowCount === 0) return;
      yield chunk;
    }
  } finally {
    connection.closeSync();
  }
}

/**
 * Columns that one query asks for: the time to prepare it grows with their square, from 0.1 s on
 * for these.
 */
const columnsOfQuery = 1024;

/** A list of columns in as many pieces as queries are to be asked. */
export function inQueries<T>(columns: readonly T[]): readonly (readonly T[])[] {
  const pieces: (readonly T[])[] = [columns.slice(0, columnsOfQuery)];
  for (let at = columnsOfQuery; at < columns.length; at += columnsOfQuery) {
    pieces.push(columns.slice(at, at + columnsOfQuery));
  }
  return pieces;
}

/** The rows of several queries of one source, side by side. */
export async function* chunksBeside(
  queries: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<readonly DuckDBDataChunk[]> {
  const streams = queries.map((sql) => chunksOf(sql, signal));
  try {
    for (;;) {
      const chunks: DuckDBDataChunk[] = [];
      for (const stream of streams) {
        const next = await stream.next();
        if (next.done !== true) chunks.push(next.value);
      }
      if (chunks.length === 0) return;
      const [first] = chunks;
      const areAlike = chunks.every(({ rowCount }) => rowCount === first?.rowCount);
      if (chunks.length < streams.length || !areAlike) {
        throw new Error('its columns came in rows of different numbers');
      }
      yield chunks;
    }
  } finally {
    for (const stream of streams) await stream.return(undefined);
  }
}

/** All rows of a query that has few. */
export async function rowsOf(sql: string, signal: AbortSignal): Promise<readonly unknown[][]> {
  const rows: unknown[][] = [];
  for await (const chunk of chunksOf(sql, signal)) rows.push(...chunk.getRows());
  return rows;
}

/** A text in a query. */
export function quotedText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** A file in a query, that one alone: its path is no pattern. */
export function quotedPath(path: string): string {
  return quotedText(path.replace(/[*?[]/g, '[$&]'));
}

/** A name in a query. */
export function quotedName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
