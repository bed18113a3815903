import type { TextBatch } from '../native/contract.ts';
import type { EdgeBlock } from './edge-sorter.ts';
import { type FeatureBlock, NeedsRows } from './feature-blocks.ts';
import type { NodeIds } from './node-ids.ts';
import { type Field, featureOf, parseNumber } from './table-columns.ts';

/** What native code read of a table of text, as its importers take it up. */

interface BlockRow {
  readonly line: number;
  readonly fields: readonly Field[];
}

/** Rows that are not plain, by their places in the batch; their fields are whole and are texts. */
export type OddRows = ReadonlyMap<number, BlockRow>;

/** Columns that are read, by their positions in the table, ascending. */
export interface ReadColumns {
  readonly texts: readonly number[];
  /** Of whole numbers and of codes. */
  readonly wholes: readonly number[];
  readonly numbers: readonly number[];
}

/** What a batch of nodes has: rows are made of it where somebody asks for them. */
export interface ReadNodes {
  readonly batch: TextBatch;
  readonly odd: OddRows;
  /** The texts of each column of codes so far, by its position; of one of whole numbers none. */
  readonly coded: ReadonlyMap<number, readonly string[]>;
  /** What folders say for every row, behind the others. */
  readonly folders: readonly (readonly [number, string])[];
  /** What becomes of a row's fields. */
  readonly made: (row: BlockRow) => BlockRow;
}

export function featureBlock(read: ReadNodes, columns: ReadColumns, id: number): FeatureBlock {
  const { batch, odd } = read;
  const features = batch.numbers;
  for (const [row, { fields }] of odd) {
    const begin = row * columns.numbers.length;
    for (const [index, at] of columns.numbers.entries()) {
      const value = featureOf(fields[at] ?? '');
      if (value === null) throw new NeedsRows('a feature that is no number');
      features[begin + index] = value;
    }
  }
  const rowAt = rowsOf(read, columns);
  const rows = () => Array.from({ length: batch.numRows }, (_, row) => rowAt(row));
  const areCoded = odd.size === 0 && columns.texts.every((at) => at === id);
  if (!areCoded || batch.numRows === 0) return { rows, coded: null, features };
  const codes = new Map<number, Uint32Array>();
  for (const [index, at] of columns.wholes.entries()) {
    codes.set(at, everyOf(batch.wholes, columns.wholes.length, index));
  }
  const ids = codes.get(id) ?? batch.texts[0] ?? '';
  return {
    rows,
    coded: { numRows: batch.numRows, ids, codes, texts: read.coded, rowAt },
    features,
  };
}

function rowsOf(read: ReadNodes, columns: ReadColumns): (row: number) => BlockRow {
  const { batch, odd, coded, folders, made } = read;
  const { wholes, texts, firstLine, lines } = batch;
  let cut: readonly (readonly string[])[] | null = null;
  return (row) => {
    cut ??= texts.map((text) => text.split('\n'));
    const fields: Field[] = [];
    for (const [index, at] of columns.texts.entries()) fields[at] = cut[index]?.[row] ?? '';
    for (const [index, at] of columns.wholes.entries()) {
      const whole = wholes[row * columns.wholes.length + index] ?? 0;
      const codes = coded.get(at);
      const text = codes === undefined ? String(whole) : codes[whole];
      if (text === undefined) throw new Error(`column ${at} has a code that no text came with`);
      fields[at] = text;
    }
    for (const [at, value] of folders) fields[at] = value;
    return odd.get(row) ?? made({ line: firstLine + (lines[row] ?? 0), fields });
  };
}

function everyOf(values: Uint32Array, step: number, from: number): Uint32Array {
  if (step === 1) return values;
  const found = new Uint32Array(values.length / step);
  for (let at = 0; at < found.length; at += 1) found[at] = values[at * step + from] ?? 0;
  return found;
}

/** Columns of ends and of weights, by their positions; -1: there are no weights. */
export interface EdgeFields {
  readonly source: number;
  readonly target: number;
  readonly weight: number;
}

export function edgeBlock(
  batch: TextBatch,
  { source, target, weight }: EdgeFields,
  ids: NodeIds,
  odd: OddRows,
): EdgeBlock {
  const { wholes: ends, lines, firstLine } = batch;
  const weights = weight < 0 ? null : batch.numbers;
  for (const [row, { fields }] of odd) {
    ends[2 * row] = nodeOf(fields[source], ids);
    ends[2 * row + 1] = nodeOf(fields[target], ids);
    if (weights !== null) weights[row] = weightOf(fields[weight] ?? '');
  }
  return { ends, weights, lines, firstLine };
}

function nodeOf(field: Field | undefined, ids: NodeIds): number {
  const node = typeof field === 'object' ? undefined : ids.numberOf(field ?? '');
  if (node === undefined) throw new NeedsRows('an end that is no node');
  return node;
}

function weightOf(field: Field): number {
  const value = parseNumber(field);
  if (value === null || value < 0 || (value === 0 && Number(field) !== 0)) {
    throw new NeedsRows('a weight that is none');
  }
  return value;
}
