import { statSync } from 'node:fs';
import type { DuckDBDataChunk, DuckDBVector } from '@duckdb/node-api';
import type { Separator } from './csv-reader.ts';
import { chunksOf, quotedName, quotedPath, quotedText } from './duckdb.ts';
import {
  fieldOf,
  isNumberList,
  isNumberType,
  parquetSource,
  selectedAs,
} from './parquet-reader.ts';
import { type Field, truthOf } from './table-columns.ts';
import type { TablePart } from './table-files.ts';

/**
 * Tables of nodes as DuckDB reads them: the features of some thousand rows as one block of float32,
 * row after row, so that no number of a large table passes through JavaScript's hands. Only what is
 * right comes so. Whatever is wrong ends it: then the table is read again by rows, which can say
 * where and what.
 */

/** Smaller tables are read by rows before the library is loaded. */
export const blocksBytesMin = 1 << 23;
/**
 * The library prepares a query in some 8 ns for each pair of columns, and saves some 50 ns of each
 * byte: below so many bytes for each pair the rows of a wide table are sooner read one by one.
 */
const blocksBytesOfPair = 1 / 6;

interface BlockRow {
  readonly line: number;
  readonly fields: readonly Field[];
}

export interface FeatureBlock {
  /** With the fields that are no features; lines are not those of the file. */
  readonly rows: readonly BlockRow[];
  /** [rows, features]. */
  readonly features: Float32Array;
}

/** Rows have to be read one by one, to say what is wrong with them. */
export class NeedsRows extends Error {}

export interface BlockTable {
  readonly parts: readonly TablePart[];
  readonly columns: readonly string[];
  /** As DuckDB calls them; null in tables of text. */
  readonly types: readonly string[] | null;
  /** Null in Parquet files. */
  readonly separator: Separator | null;
  /** The table's first rows. */
  readonly first: readonly BlockRow[];
  readonly hasDecimalCommas: boolean;
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
export function hasBlocks(table: BlockTable, features: readonly number[]): boolean {
  const bytes = table.parts.reduce((sum, { path }) => sum + statSync(path).size, 0);
  if (features.length === 0 || bytes < blocksBytesMin || table.separator === ' ') return false;
  const { types } = table;
  if (types === null && bytes < blocksBytesOfPair * table.columns.length ** 2) return false;
  return (
    types === null ||
    features.every((at) => isNumberType(types[at] ?? '') || isNumberList(types[at] ?? ''))
  );
}

/** The table in blocks. Throws NeedsRows where anything in it is not as it should be. */
export async function* featureBlocks(
  table: BlockTable,
  wanted: Wanted,
  signal: AbortSignal,
): AsyncGenerator<FeatureBlock> {
  const sql = table.types === null ? textQuery(table, wanted) : parquetQuery(table, wanted);
  const rejected = table.types === null ? 'SELECT 1 FROM reject_errors LIMIT 1' : null;
  let rows = 0;
  try {
    for await (const chunk of chunksOf(sql, signal, rejected)) {
      yield blockOf(chunk, wanted, rows);
      rows += chunk.rowCount;
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

function blockOf(chunk: DuckDBDataChunk, { fields, width }: Wanted, before: number): FeatureBlock {
  const vector = chunk.getColumnVector(fields.length) as unknown as ArrayVector;
  for (let row = 0; row < chunk.rowCount; row += 1) {
    if (!vector.validity.itemValid(row)) throw new NeedsRows('a list of another length');
  }
  // The library's memory: it is gone with the next chunk.
  const features = vector.childData.items.slice(0, width * chunk.rowCount);
  if (!areFinite(features)) throw new NeedsRows('no finite number');
  const columns = fields.map((_, at) => chunk.getColumnVector(at));
  const rows = Array.from({ length: chunk.rowCount }, (_, row) => {
    const found: Field[] = [];
    for (const [index, at] of fields.entries()) found[at] = fieldOf(columns[index]?.getItem(row));
    return { line: before + row + 1, fields: found };
  });
  return { rows, features };
}

/** Zero times a number that is finite is zero; of others the sum of these is NaN. */
function areFinite(values: Float32Array): boolean {
  let sum = 0;
  for (let at = 0; at < values.length; at += 1) sum += 0 * (values[at] ?? 0);
  return sum === 0;
}

/** Columns by their positions: names may be anything. */
function textQuery(table: BlockTable, { fields, features, width }: Wanted): string {
  const areFeatures = new Set(features);
  const typeOf = (at: number) => {
    if (!areFeatures.has(at)) return 'VARCHAR';
    const texts = table.first.map((row) => row.fields[at] ?? '');
    const areTruths = texts.some((text) => Number.isNaN(Number(text)) && truthOf(text) !== null);
    return areTruths ? 'BOOLEAN' : 'FLOAT';
  };
  const types = table.columns.map((_, at) => typeOf(at));
  const columns = types.map((type, at) => `c${at}: '${type}'`).join(', ');
  const options = [
    'auto_detect = false, header = true, strict_mode = true',
    `delim = ${quotedText(table.separator ?? ',')}`,
    `quote = '"', escape = '"', columns = {${columns}}`,
    // Nothing is a text, or else no number.
    `nullstr = '\x01', store_rejects = true, rejects_limit = 1`,
    ...(table.hasDecimalCommas ? [`decimal_separator = ','`] : []),
  ];
  const paths = table.parts.map(({ path }) => quotedPath(path)).join(', ');
  const numbers = features.map((at) => (types[at] === 'FLOAT' ? `c${at}` : `c${at}::INT::FLOAT`));
  const selected = fields.map((at) => `c${at}`);
  selected.push(`[${numbers.join(', ')}]::FLOAT[${width}]`);
  return `SELECT ${selected.join(', ')} FROM read_csv([${paths}], ${options.join(', ')})`;
}

function parquetQuery(table: BlockTable, { fields, features, width }: Wanted): string {
  const typeOf = (at: number) => table.types?.[at] ?? '';
  const nameOf = (at: number) => quotedName(table.columns[at] ?? '');
  const selected = fields.map((at) => selectedAs(table.columns[at] ?? '', typeOf(at)));
  const nothing = `'nan'::FLOAT`;
  const number = (at: number) => `coalesce(TRY_CAST(${nameOf(at)} AS FLOAT), ${nothing})`;
  if (features.some((at) => isNumberList(typeOf(at)))) {
    // A list of another length is NULL, and so is the row then.
    const lists = features.map((at) => {
      if (!isNumberList(typeOf(at))) return `[${number(at)}]`;
      const list = `TRY_CAST(${nameOf(at)} AS FLOAT[])`;
      const length = (table.first[0]?.fields[at] as readonly Field[] | undefined)?.length ?? 0;
      const whole = `list_transform(${list}, lambda x: coalesce(x, ${nothing}))`;
      return `CASE WHEN len(${list}) = ${length} THEN ${whole} END`;
    });
    selected.push(`TRY_CAST(flatten([${lists.join(', ')}]) AS FLOAT[${width}])`);
  } else selected.push(`[${features.map(number).join(', ')}]::FLOAT[${width}]`);
  return `SELECT ${selected.join(', ')} FROM ${parquetSource(table.parts.map(({ path }) => path))}`;
}
