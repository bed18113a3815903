import type { DatasetWriter } from './dataset-writer.ts';
import { EdgeSorter, type SortedRows } from './edge-sorter.ts';
import type { ImportContext } from './import-context.ts';
import { formatCount } from './problems.ts';

/** A list of edges that becomes the graph of a dataset. */

/** For a table of edges: each once, in both directions unless the user says `directed`. */
export function tableSorter(
  { writer, directed, native }: ImportContext,
  numNodes: number,
  isWeighted: boolean,
): EdgeSorter {
  const { folder } = writer;
  const rule = { keep: 'ONCE', bothWays: !directed } as const;
  return new EdgeSorter(native, { numNodes, isWeighted, folder, ...rule });
}

/** Rows as they pass by. */
type See = (rows: SortedRows) => void;

/** Writes `indptr`, `indices` and, of edges with weights, `edge_weights`. */
export async function writeRows(
  sorter: EdgeSorter,
  { isWeighted }: { readonly isWeighted: boolean },
  writer: DatasetWriter,
  see: See,
): Promise<void> {
  const indptr = await writer.begin('indptr');
  await indptr.append(BigInt64Array.of(0n));
  const weights = isWeighted ? await writer.begin('edge_weights') : null;
  let isBegun = false;
  for await (const rows of sorter.rows()) {
    const type = rows.indices instanceof Uint32Array ? 'uint32' : 'int32';
    const indices = isBegun ? writer.begun('indices') : await writer.begin('indices', type);
    isBegun = true;
    see(rows);
    await indptr.append(rows.ends);
    await indices.append(rows.indices);
    if (rows.weights !== null) await weights?.append(rows.weights);
  }
  await writer.end('indptr');
  await writer.end('indices');
  if (weights !== null) await writer.end('edge_weights');
}

/** Edges with another weight that are problems each; the others are counted. */
const conflictsListed = 3;
const conflictRemedy =
  ', and is stored in both directions; --directed (in Python directed=True) keeps two weights';

/** The graph of a table of edges, with what became of them as notices and problems. */
export async function writeTable(
  context: ImportContext,
  sorter: EdgeSorter,
  table: { readonly where: (line: number) => string; readonly isWeighted: boolean },
  see: See = () => undefined,
): Promise<void> {
  const { writer, problems, notices, directed } = context;
  await writeRows(sorter, table, writer, see);
  const remedy = directed ? '' : conflictRemedy;
  const conflicts = sorter.conflicts
    .toSorted((a, b) => a.line - b.line)
    .map(({ line, earlier }) => ({
      path: table.where(line),
      description: `lists the edge of ${table.where(earlier)} again with another weight${remedy}`,
    }));
  const shownOnes = conflicts.slice(0, conflictsListed);
  problems.addAll(shownOnes, shownOnes.length);
  const last = shownOnes.at(-1);
  if (last !== undefined && sorter.conflictCount > conflictsListed) {
    const more = formatCount(sorter.conflictCount - conflictsListed);
    problems.add(last.path, `is followed by ${more} more such edges`);
  }
  const listed = formatCount(sorter.edges);
  const entries = formatCount(sorter.entries);
  const way = directed
    ? 'one entry each, in the row of its target'
    : 'in both directions; --directed keeps theirs';
  notices.add(`${listed} edges listed, ${entries} entries stored: ${way}`);
  const { selfLoops, duplicates } = sorter;
  const dropped = [
    ...(selfLoops === 0 ? [] : [`${formatCount(selfLoops)} self-loops`]),
    ...(duplicates === 0 ? [] : [`${formatCount(duplicates)} repeated edges`]),
  ];
  if (dropped.length > 0) notices.add(`left out of the graph: ${dropped.join(' and ')}`);
}
