import type { TextBatch } from '../native/contract.ts';
import { type FeatureBlock, NeedsRows } from './feature-blocks.ts';
import type { NodeIds } from './node-ids.ts';
import { type Field, featureOf, parseNumber } from './table-columns.ts';

/** What native code read of a table of text, as its importers take it up. */

interface BlockRow {
  readonly line: number;
  readonly fields: readonly Field[];
}

/** Columns that are read, by their positions in the table, ascending. */
interface ReadColumns {
  readonly texts: readonly number[];
  readonly numbers: readonly number[];
  /** What folders say for every row, behind the others. */
  readonly folders: readonly (readonly [number, string])[];
}

/** Rows that are not plain, by their places in the batch; their fields are whole and are texts. */
export type OddRows = ReadonlyMap<number, BlockRow>;

export function featureBlock(batch: TextBatch, columns: ReadColumns, odd: OddRows): FeatureBlock {
  const texts = batch.texts.map((text) => text.split('\n'));
  const rows: BlockRow[] = [];
  for (let row = 0; row < batch.numRows; row += 1) {
    const fields: Field[] = [];
    for (const [index, at] of columns.texts.entries()) fields[at] = texts[index]?.[row] ?? '';
    for (const [at, value] of columns.folders) fields[at] = value;
    rows.push(odd.get(row) ?? { line: batch.firstLine + (batch.lines[row] ?? 0), fields });
  }
  const features = batch.numbers;
  for (const [row, { fields }] of odd) {
    const begin = row * columns.numbers.length;
    for (const [index, at] of columns.numbers.entries()) {
      const value = featureOf(fields[at] ?? '');
      if (value === null) throw new NeedsRows('a feature that is no number');
      features[begin + index] = value;
    }
  }
  return { rows, features };
}

/** Edges by columns: all of them are right. */
export interface EdgeBlock {
  readonly sources: Uint32Array;
  readonly targets: Uint32Array;
  /** Null where edges have none. */
  readonly weights: Float32Array | null;
  readonly lineOf: (edge: number) => number;
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
  const { numRows, wholes, lines, firstLine } = batch;
  // Columns of one kind stand in the order of the table.
  const order = source < target ? [0, 1] : [1, 0];
  const [sources, targets] = order.map((index) => {
    const nodes = new Uint32Array(numRows);
    if (wholes.length > 0) {
      for (let row = 0; row < numRows; row += 1) {
        const node = wholes[2 * row + index] ?? 0;
        if (node >= ids.size) throw new NeedsRows('an end that is no node');
        nodes[row] = node;
      }
    } else if (numRows > 0) {
      const texts = (batch.texts[index] ?? '').split('\n');
      for (const [row, text] of texts.entries()) {
        if (!odd.has(row)) nodes[row] = nodeOf(text, ids);
      }
    }
    return nodes;
  });
  if (sources === undefined || targets === undefined) throw new NeedsRows('no ends');
  const weights = weight < 0 ? null : batch.numbers;
  for (const [row, { fields }] of odd) {
    sources[row] = nodeOf(fields[source], ids);
    targets[row] = nodeOf(fields[target], ids);
    if (weights !== null) weights[row] = weightOf(fields[weight] ?? '');
  }
  return { sources, targets, weights, lineOf: (edge) => firstLine + (lines[edge] ?? 0) };
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
