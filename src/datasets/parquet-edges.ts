import type { DuckDBDataChunk } from '@duckdb/node-api';
import { type EdgeBlock, sideBySide } from './edge-sorter.ts';
import { weightProblem } from './edge-weights.ts';
import { NeedsRows } from './feature-blocks.ts';
import { isNumberType, isWholeType, type ParquetFile } from './parquet-reader.ts';
import type { EdgeFields } from './table-blocks.ts';

/** Large Parquet files of edges whose ends are numbers of nodes, column by column. */

/** No number of a node. */
const noNode = 2 ** 32 - 1;

/** Whether the columns have such numbers. */
export function hasEdgeBlocks(
  { types }: Pick<ParquetFile, 'types'>,
  { source, target, weight }: EdgeFields,
): boolean {
  const areWhole = [source, target].every((at) => isWholeType(types[at] ?? ''));
  return areWhole && (weight < 0 || isNumberType(types[weight] ?? ''));
}

/**
 * Edges of a part, after `before` rows; an end may be no node. Throws NeedsRows for a weight that
 * is none.
 */
export async function* parquetEdges(
  file: ParquetFile,
  { source, target, weight }: EdgeFields,
  before: number,
): AsyncGenerator<EdgeBlock> {
  const node = (column: string) => `coalesce(TRY_CAST(${column} AS UINTEGER), ${noNode}::UINTEGER)`;
  const wanted = [
    [source, node],
    [target, node],
    ...(weight < 0 ? [] : [[weight, (name: string) => `CAST(${name} AS DOUBLE)`] as const]),
  ] as const;
  let rows = before;
  for await (const chunk of file.columnsAs(wanted)) {
    yield {
      ends: sideBySide(nodesOf(chunk, 0), nodesOf(chunk, 1)),
      weights: weight < 0 ? null : weightsOf(chunk, 2),
      lines: Uint32Array.from({ length: chunk.rowCount }, (_, edge) => edge),
      firstLine: rows + 1,
    };
    rows += chunk.rowCount;
  }
}

/** What a vector of numbers has; its types keep it private, and getItem would copy one by one. */
interface NumberVector<Numbers> {
  readonly items: Numbers;
  readonly validity: { itemValid(row: number): boolean };
}

function nodesOf(chunk: DuckDBDataChunk, column: number): Uint32Array {
  const vector = chunk.getColumnVector(column) as unknown as NumberVector<Uint32Array>;
  return vector.items.slice(0, chunk.rowCount);
}

function weightsOf(chunk: DuckDBDataChunk, column: number): Float32Array {
  const vector = chunk.getColumnVector(column) as unknown as NumberVector<Float64Array>;
  const weights = new Float32Array(chunk.rowCount);
  for (let row = 0; row < weights.length; row += 1) {
    const given = vector.validity.itemValid(row) ? (vector.items[row] ?? 0) : Number.NaN;
    weights[row] = given;
    if (weightProblem(given, Math.fround(given)) !== null) throw new NeedsRows('no weight');
  }
  return weights;
}
