import type { DuckDBDataChunk } from '@duckdb/node-api';
import { weightProblem } from './edge-weights.ts';
import { NeedsRows } from './feature-blocks.ts';
import type { NodeIds } from './node-ids.ts';
import { isNumberType, isWholeType, type ParquetFile } from './parquet-reader.ts';
import type { EdgeBlock, EdgeFields } from './table-blocks.ts';

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

/** Edges of a part, after `before` rows. Throws NeedsRows for an end or a weight that is none. */
export async function* parquetEdges(
  file: ParquetFile,
  { source, target, weight }: EdgeFields,
  ids: NodeIds,
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
    const first = rows + 1;
    yield {
      sources: nodesOf(chunk, 0, ids),
      targets: nodesOf(chunk, 1, ids),
      weights: weight < 0 ? null : weightsOf(chunk, 2),
      lineOf: (edge) => first + edge,
    };
    rows += chunk.rowCount;
  }
}

/** What a vector of numbers has; its types keep it private, and getItem would copy one by one. */
interface NumberVector<Numbers> {
  readonly items: Numbers;
  readonly validity: { itemValid(row: number): boolean };
}

function nodesOf(chunk: DuckDBDataChunk, column: number, ids: NodeIds): Uint32Array {
  const vector = chunk.getColumnVector(column) as unknown as NumberVector<Uint32Array>;
  const nodes = vector.items.slice(0, chunk.rowCount);
  for (const node of nodes) if (node >= ids.size) throw new NeedsRows('an end that is no node');
  return nodes;
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
