import { basename } from 'node:path';
import type { DuckDBDataChunk, DuckDBVector } from '@duckdb/node-api';
import { messageOf } from '../base/errors.ts';
import { openSource } from './byte-streams.ts';
import { chunksBeside, chunksOf, inQueries, quotedName, quotedPath, rowsOf } from './duckdb.ts';
import { badFile, formatCount } from './problems.ts';
import type { Field } from './table-columns.ts';

/** Parquet files, some thousand rows at a time. */

interface ParquetRow {
  /** From 1. */
  readonly line: number;
  readonly fields: readonly Field[];
}

interface ParquetColumn {
  readonly name: string;
  /** As DuckDB writes it: `BIGINT`, `FLOAT[]`, `DOUBLE[3]`. */
  readonly type: string;
}

const smallNumber = /^(U?TINYINT|U?SMALLINT|U?INTEGER|FLOAT|DOUBLE|BOOLEAN|DECIMAL\(.*\))$/;
const wholeNumber = /^(U?BIGINT|U?HUGEINT)$/;

export function isNumberType(type: string): boolean {
  return smallNumber.test(type) || wholeNumber.test(type);
}

/** Whether a column has whole numbers alone. */
export function isWholeType(type: string): boolean {
  return /^U?(TINYINT|SMALLINT|INTEGER|BIGINT)$/.test(type);
}

/** Whether a column has lists of numbers; some writers mark them as JSON. */
export function isNumberList(type: string): boolean {
  if (type === 'JSON') return true;
  const [, item] = /^(.*)\[\d*\]$/.exec(type) ?? [];
  return item !== undefined && isNumberType(item);
}

/** A Parquet file that is read from its first row to its last. */
export class ParquetFile {
  readonly name: string;
  readonly columns: readonly string[];
  readonly types: readonly string[];
  readonly numRows: number;
  readonly #path: string;
  readonly #signal: AbortSignal;
  #read = 0;

  private constructor(
    path: string,
    columns: readonly ParquetColumn[],
    numRows: number,
    signal: AbortSignal,
  ) {
    this.name = basename(path);
    this.#path = path;
    this.columns = columns.map(({ name }) => name);
    this.types = columns.map(({ type }) => type);
    this.numRows = numRows;
    this.#signal = signal;
  }

  /** Throws ImportFailure for what is no Parquet file. */
  static async open(path: string, signal: AbortSignal): Promise<ParquetFile> {
    // A file that is not there, or no regular one, is said as everywhere.
    await (await openSource(path)).close();
    try {
      const columns = (await plainColumns(path, signal)) ?? (await describedColumns(path, signal));
      const counted = `SELECT count(*) FROM ${parquetSource([path])}`;
      const [[count] = []] = await rowsOf(counted, signal);
      return new ParquetFile(path, columns, Number(count), signal);
    } catch (error) {
      signal.throwIfAborted();
      const what = `is not a whole Parquet file: ${shortMessage(error)}`;
      throw badFile(basename(path), what);
    }
  }

  /** How much of the file was read, of 1. */
  get fraction(): number {
    return this.numRows === 0 ? 1 : this.#read / this.numRows;
  }

  /** Rows in batches. Throws ImportFailure when the file is damaged. */
  async *rows(): AsyncGenerator<readonly ParquetRow[]> {
    const all = this.columns.map((_, at) => at);
    this.#read = 0;
    for await (const rows of this.#select(all, '')) {
      this.#read += rows.length;
      yield rows;
    }
  }

  /**
   * The first rows, in which numbers are told only of columns that may count the rows: a page of
   * every column is much of a wide file.
   */
  async first(count: number): Promise<readonly ParquetRow[]> {
    const counting = await this.#mayCount();
    const told = this.columns.map((_, at) => at);
    const needed = told.filter((at) => !isNumberType(this.types[at] ?? '') || counting.has(at));
    for await (const rows of this.#select(needed, `LIMIT ${count}`)) return rows;
    return [];
  }

  /** Columns as what is made of their names in a query. Throws ImportFailure as `rows` does. */
  async *columnsAs(
    columns: readonly (readonly [number, (name: string) => string])[],
  ): AsyncGenerator<DuckDBDataChunk> {
    const selected = columns.map(([at, made]) => made(quotedName(this.columns[at] ?? '')));
    const sql = `SELECT ${selected.join(', ')} FROM ${parquetSource([this.#path])}`;
    this.#read = 0;
    try {
      for await (const chunk of chunksOf(sql, this.#signal)) {
        this.#read += chunk.rowCount;
        yield chunk;
      }
    } catch (error) {
      throw this.#unreadable(error, this.#read);
    }
  }

  async *#select(columns: readonly number[], limit: string): AsyncGenerator<ParquetRow[]> {
    const queries = inQueries(columns).map((some) => {
      const selected = some.map((at) => selectedAs(this.columns[at] ?? '', this.types[at] ?? ''));
      const list = ['1', ...selected].join(', ');
      return `SELECT ${list} FROM ${parquetSource([this.#path])} ${limit}`;
    });
    let before = 0;
    try {
      for await (const chunks of chunksBeside(queries, this.#signal)) {
        const found = chunks.flatMap((chunk) =>
          Array.from({ length: chunk.columnCount - 1 }, (_, index) =>
            fieldsOf(chunk.getColumnVector(index + 1)),
          ),
        );
        const rowCount = chunks[0]?.rowCount ?? 0;
        const rows = Array.from({ length: rowCount }, (_, row) => {
          const fields = new Array<Field>(this.columns.length).fill('');
          for (const [index, at] of columns.entries()) fields[at] = found[index]?.[row] ?? '';
          return { line: before + row + 1, fields };
        });
        before += rowCount;
        yield rows;
      }
    } catch (error) {
      throw this.#unreadable(error, before);
    }
  }

  /** Columns whose least and largest numbers, as the file's end has them, do not say otherwise. */
  async #mayCount(): Promise<ReadonlySet<number>> {
    const least = 'min(TRY_CAST(stats_min_value AS DOUBLE))';
    const largest = 'max(TRY_CAST(stats_max_value AS DOUBLE))';
    const source = `parquet_metadata(${quotedPath(this.#path)})`;
    const sql = `SELECT path_in_schema, ${least}, ${largest} FROM ${source} GROUP BY 1`;
    const facts = new Map<string, readonly unknown[]>();
    for (const [name, ...range] of await rowsOf(sql, this.#signal)) facts.set(String(name), range);
    const at = this.columns.map((_, index) => index);
    const span = Math.max(0, this.numRows - 1);
    return new Set(
      at.filter((index) => {
        const [from = null, to = null] = facts.get(this.columns[index] ?? '') ?? [];
        if (typeof from !== 'number' || typeof to !== 'number') return true;
        return (from === 0 || from === 1) && to - from === span;
      }),
    );
  }

  #unreadable(error: unknown, rows: number): unknown {
    this.#signal.throwIfAborted();
    if (!(error instanceof Error) || error.name === 'ImportFailure') return error;
    const why = shortMessage(error);
    const isMemory = /allocate|out of memory/i.test(why);
    const remedy = isMemory ? '; write it in row groups of fewer rows' : '';
    const what = `cannot be read after row ${formatCount(rows)}: ${why}${remedy}`;
    return badFile(this.name, what);
  }
}

/**
 * The columns as the file's end lists them, where all are plain; null where one is a list, or may
 * have another name or type in queries.
 */
async function plainColumns(
  path: string,
  signal: AbortSignal,
): Promise<readonly ParquetColumn[] | null> {
  const facts = 'name, duckdb_type, num_children, repetition_type, converted_type';
  const sql = `SELECT ${facts} FROM parquet_schema(${quotedPath(path)})`;
  const [, ...listed] = await rowsOf(sql, signal);
  const names = new Set(listed.map(([name]) => String(name).toLowerCase()));
  const arePlain = listed.every(
    ([, type, children, repetition, converted]) =>
      type !== null && children === null && repetition !== 'REPEATED' && converted !== 'JSON',
  );
  if (!arePlain || names.size < listed.length || listed.length === 0) return null;
  return listed.map(([name, type]) => ({
    name: String(name),
    type: type === 'BLOB' ? 'VARCHAR' : String(type),
  }));
}

/** The columns as the library finds them, in a time that grows with the square of their number. */
async function describedColumns(
  path: string,
  signal: AbortSignal,
): Promise<readonly ParquetColumn[]> {
  const described = await rowsOf(`DESCRIBE SELECT * FROM ${parquetSource([path])}`, signal);
  return described.map(([name, type]) => ({ name: String(name), type: String(type) }));
}

/**
 * Source of a query; texts that a writer did not mark as UTF-8 are texts all the same, and what the
 * file's folders are called is no column of it.
 */
export function parquetSource(paths: readonly string[]): string {
  const options = 'binary_as_string = true, hive_partitioning = false';
  return `read_parquet([${paths.map(quotedPath).join(', ')}], ${options})`;
}

/** The first line of what DuckDB says, without its kind. */
function shortMessage(error: unknown): string {
  const [line = ''] = messageOf(error).split('\n');
  return line.replace(/^[A-Za-z ]+ Error: /, '');
}

/** A column in a query, as `fieldOf` takes it. */
export function selectedAs(name: string, type: string): string {
  const column = quotedName(name);
  if (smallNumber.test(type)) return `CAST(${column} AS DOUBLE)`;
  if (wholeNumber.test(type) || type === 'VARCHAR') return column;
  return isNumberList(type) ? `TRY_CAST(${column} AS DOUBLE[])` : `CAST(${column} AS VARCHAR)`;
}

function fieldsOf(vector: DuckDBVector): readonly Field[] {
  return Array.from({ length: vector.itemCount }, (_, row) => fieldOf(vector.getItem(row)));
}

/** A number that is none, as frames have where nothing is, is nothing. */
export function fieldOf(value: unknown): Field {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return Number.isNaN(value) ? '' : value;
  // Ids of 64 bits keep all of them.
  if (typeof value === 'bigint') {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : String(value);
  }
  if (value === null || value === undefined) return '';
  if (typeof value === 'object' && 'items' in value && Array.isArray(value.items)) {
    return value.items.map(fieldOf);
  }
  return String(value);
}
