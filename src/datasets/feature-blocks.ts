import type { DuckDBDataChunk, DuckDBVector } from '@duckdb/node-api';
import { chunksBeside, inQueries, quotedName, quotedText } from './duckdb.ts';
import {
  fieldOf,
  isNumberList,
  isNumberType,
  parquetSource,
  selectedAs,
} from './parquet-reader.ts';
import type { Field } from './table-columns.ts';
import { bytesOf, type TablePart } from './table-files.ts';

/**
 * Parquet files of nodes as DuckDB reads them: the features of some thousand rows as one block
 * of float32, row after row, so that no number of a large table passes through JavaScript's
 * hands. Only what is right comes so. Whatever is wrong ends it: then the table is read again by
 * rows, which can say where and what.
 */

/** Smaller files are read by rows: starting a query takes as long. */
export const blocksBytesMin = 1 << 23;

interface BlockRow {
  readonly line: number;
  readonly fields: readonly Field[];
}

/** Nodes by columns: all of them are as they should be, as far as one row tells. */
export interface CodedRows {
  readonly numRows: number;
  /** Whole numbers, or texts by line feeds. */
  readonly ids: Uint32Array | string;
  /** For each column, by its position: a number a row, the same for the same text. */
  readonly codes: ReadonlyMap<number, Uint32Array>;
  /** What codes mean; another one in each part of a table. */
  readonly texts: ReadonlyMap<number, readonly string[]>;
  readonly rowAt: (row: number) => BlockRow;
}

export interface FeatureBlock {
  /** With the fields that are no features. */
  readonly rows: () => readonly BlockRow[];
  /** The same by columns; null where they come as rows only. */
  readonly coded: CodedRows | null;
  /** [rows, features]. */
  readonly features: Float32Array;
}

/** Rows have to be read one by one, to say what is wrong with them. */
export class NeedsRows extends Error {}

export interface BlockTable {
  readonly parts: readonly TablePart[];
  readonly columns: readonly string[];
  /** As DuckDB calls them; those of folders have none. */
  readonly types: readonly string[];
  /** The table's first rows. */
  readonly first: readonly BlockRow[];
}

/** What is read of it. */
interface Wanted {
  /** Columns of fields, and of features: positions. */
  readonly fields: readonly number[];
  readonly features: readonly number[];
  /** Numbers a row. */
  readonly width: number;
}

/** Whether a table is large enough, and all of it such that blocks can be read. */
export function hasBlocks({ parts, types }: BlockTable, features: readonly number[]): boolean {
  if (features.length === 0 || bytesOf(parts) < blocksBytesMin) return false;
  return features.every((at) => isNumberType(types[at] ?? '') || isNumberList(types[at] ?? ''));
}

/** The table in blocks. Throws NeedsRows where anything in it is not as it should be. */
export async function* featureBlocks(
  table: BlockTable,
  wanted: Wanted,
  signal: AbortSignal,
): AsyncGenerator<FeatureBlock> {
  let rows = 0;
  try {
    const groups = inQueries(wanted.features).map((features) => ({
      ...{ features, width: features.reduce((sum, at) => sum + widthOf(table, at), 0) },
    }));
    for (const part of table.parts) {
      const queries = groups.map((group, index) => {
        const fields = index === 0 ? wanted.fields : [];
        return partQuery(part, table, { ...group, fields });
      });
      for await (const chunks of chunksBeside(queries, signal)) {
        const [first] = chunks;
        if (first === undefined) continue;
        const features = chunks.map((chunk, index) => {
          const at = index === 0 ? wanted.fields.length : 0;
          return featuresOf(chunk, at, groups[index]?.width ?? 0);
        });
        const own = rowsIn(first, wanted.fields, rows);
        yield { rows: () => own, coded: null, features: joined(features, wanted, first) };
        rows += first.rowCount;
      }
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof NeedsRows ? error : new NeedsRows('not read', { cause: error });
  }
}

/** What a vector of arrays has; its types keep it private, and getItem would copy by numbers. */
interface ArrayVector extends DuckDBVector {
  readonly validity: { itemValid(row: number): boolean };
  readonly childData: { readonly items: Float32Array };
}

/** Numbers of a row in a column. */
function widthOf({ types, first }: BlockTable, at: number): number {
  if (!isNumberList(types[at] ?? '')) return 1;
  return (first[0]?.fields[at] as readonly Field[] | undefined)?.length ?? 0;
}

function featuresOf(chunk: DuckDBDataChunk, column: number, width: number): Float32Array {
  const vector = chunk.getColumnVector(column) as unknown as ArrayVector;
  for (let row = 0; row < chunk.rowCount; row += 1) {
    if (!vector.validity.itemValid(row)) throw new NeedsRows('a list of another length');
  }
  // The library's memory: it is gone with the next chunk.
  const features = vector.childData.items.slice(0, width * chunk.rowCount);
  if (!areFinite(features)) throw new NeedsRows('no finite number');
  return features;
}

/** Features of several queries, row after row. */
function joined(
  groups: readonly Float32Array[],
  { width }: Wanted,
  { rowCount }: DuckDBDataChunk,
): Float32Array {
  const [first] = groups;
  if (groups.length === 1 && first !== undefined) return first;
  const whole = new Float32Array(rowCount * width);
  for (let row = 0; row < rowCount; row += 1) {
    let at = row * width;
    for (const group of groups) {
      const own = group.length / rowCount;
      whole.set(group.subarray(row * own, (row + 1) * own), at);
      at += own;
    }
  }
  return whole;
}

function rowsIn(
  chunk: DuckDBDataChunk,
  fields: readonly number[],
  before: number,
): readonly BlockRow[] {
  const columns = fields.map((_, at) => chunk.getColumnVector(at));
  return Array.from({ length: chunk.rowCount }, (_, row) => {
    const found: Field[] = [];
    for (const [index, at] of fields.entries()) found[at] = fieldOf(columns[index]?.getItem(row));
    return { line: before + row + 1, fields: found };
  });
}

/** Zero times a number that is finite is zero; of others the sum of these is NaN. */
function areFinite(values: Float32Array): boolean {
  let sum = 0;
  for (let at = 0; at < values.length; at += 1) sum += 0 * (values[at] ?? 0);
  return sum === 0;
}

function partQuery(
  { path, keys }: TablePart,
  table: BlockTable,
  { fields, features, width }: Wanted,
): string {
  const typeOf = (at: number) => table.types[at] ?? '';
  const nameOf = (at: number) => quotedName(table.columns[at] ?? '');
  const own = table.columns.length - keys.length;
  const selected = fields.map((at) => {
    const [, key] = keys[at - own] ?? [];
    return key === undefined ? selectedAs(table.columns[at] ?? '', typeOf(at)) : quotedText(key);
  });
  const nothing = `'nan'::FLOAT`;
  const number = (at: number) => `coalesce(TRY_CAST(${nameOf(at)} AS FLOAT), ${nothing})`;
  if (features.some((at) => isNumberList(typeOf(at)))) {
    // A list of another length is NULL, and so is the row then.
    const lists = features.map((at) => {
      if (!isNumberList(typeOf(at))) return `[${number(at)}]`;
      const list = `TRY_CAST(${nameOf(at)} AS FLOAT[])`;
      const length = widthOf(table, at);
      const whole = `list_transform(${list}, lambda x: coalesce(x, ${nothing}))`;
      return `CASE WHEN len(${list}) = ${length} THEN ${whole} END`;
    });
    selected.push(`TRY_CAST(flatten([${lists.join(', ')}]) AS FLOAT[${width}])`);
  } else selected.push(`[${features.map(number).join(', ')}]::FLOAT[${width}]`);
  return `SELECT ${selected.join(', ')} FROM ${parquetSource([path])}`;
}
