import type { EdgeSorter } from './edge-sorter.ts';
import { weightProblem } from './edge-weights.ts';
import { tableSorter, writeTable } from './graph-writer.ts';
import type { ImportContext } from './import-context.ts';
import type { NodeIds } from './node-ids.ts';
import { formatCount } from './problems.ts';
import { Table, type TableRow } from './table.ts';
import { type Field, parseNumber, shown, textOf } from './table-columns.ts';

/** The table `edges` of a source: source, target, and perhaps weight. */

/** Where reading ends and sorting begins, of 1. */
const readShare = 0.8;

/**
 * The graph of the table `edges`, whose ends are `ids`; null where they could not be read, which is
 * a problem already. Throws ImportFailure for problems of lines.
 */
export async function importEdges(context: ImportContext, ids: NodeIds | null): Promise<void> {
  const { progress, problems } = context;
  const table = await Table.open(context, 'edges');
  const sourceAt = table.column('source');
  const targetAt = table.column('target');
  const weightAt = table.columns.indexOf('weight');
  const known = new Set(['source', 'target', 'weight']);
  for (const column of table.columns.filter((name) => !known.has(name))) {
    const expected = 'expected source, target and perhaps weight';
    table.headerProblem(`has the column '${shown(column)}', ${expected}`);
  }
  const isWeighted = weightAt >= 0;
  const sorter = tableSorter(context, ids?.size ?? 1, isWeighted);
  try {
    for await (const rows of table.batches()) {
      for (const row of rows) {
        const source = nodeOf(table, row, 'source', row.fields[sourceAt], ids);
        const target = nodeOf(table, row, 'target', row.fields[targetAt], ids);
        const weight = isWeighted ? parseWeight(table, row, row.fields[weightAt] ?? '') : 0;
        sorter.add(source, target, weight, row.line);
      }
      await sorter.settle();
      const done = readShare * table.fraction;
      progress(done, `reading ${table.file}: ${formatCount(sorter.edges)} edges`);
    }
    problems.throwIfAny();
    await sortEdges(context, sorter, { file: table.file, isWeighted });
  } finally {
    await sorter.close();
  }
}

async function sortEdges(
  context: ImportContext,
  sorter: EdgeSorter,
  table: { readonly file: string; readonly isWeighted: boolean },
): Promise<void> {
  context.progress(readShare, `building the graph of ${formatCount(sorter.edges)} edges`);
  await writeTable(context, sorter, table);
  context.problems.throwIfAny();
}

function nodeOf(
  table: Table,
  row: TableRow,
  column: string,
  name: Field | undefined,
  ids: NodeIds | null,
): number {
  if (name === undefined || ids === null) return 0;
  const node = ids.numberOf(typeof name === 'number' ? name : textOf(name));
  if (node !== undefined) return node;
  table.problem(row, `has the ${column} '${shown(name)}', which is no id of the nodes`);
  return 0;
}

const notANumber = 'expected a number of 0 or more';

function parseWeight(table: Table, row: TableRow, text: Field): number {
  const value = parseNumber(text);
  const given = typeof text === 'number' ? text : Number(textOf(text));
  const isBeyond = Number.isFinite(given) && Math.fround(given) === Number.POSITIVE_INFINITY;
  const isNumber = value !== null || isBeyond;
  const why = isNumber ? weightProblem(given, Math.fround(given)) : notANumber;
  if (why === null && value !== null) return value;
  table.problem(row, `has the weight '${shown(text)}', ${why}`);
  return 0;
}
