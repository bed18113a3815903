import { type EdgeColumns, edgeColumns } from './edge-columns.ts';
import type { EdgeSorter } from './edge-sorter.ts';
import { weightProblem } from './edge-weights.ts';
import { NeedsRows } from './feature-blocks.ts';
import { tableSorter, writeTable } from './graph-writer.ts';
import type { ImportContext } from './import-context.ts';
import type { NodeIds } from './node-ids.ts';
import { formatCount } from './problems.ts';
import type { Table, TableRow } from './table.ts';
import { type Field, parseNumber, shown, textOf } from './table-columns.ts';

export { type EdgeColumns, edgeColumns };

/** The table `edges` of a source: source, target, and perhaps weight. */

/** Where reading ends and sorting begins, of 1. */
const readShare = 0.8;
/** Rows whose problems wait. */
const waitingMax = 1000;
/** Ids that a message shows. */
const idsShown = 3;

/**
 * The graph of a table of edges, whose ends are `ids`; null where not all could be read, which is
 * a problem already. Throws ImportFailure for problems of lines.
 */
export async function importEdges(
  context: ImportContext,
  table: Table,
  columns: EdgeColumns,
  ids: NodeIds | null,
): Promise<void> {
  const { problems } = context;
  const isWeighted = columns.weight >= 0;
  if (isWeighted) table.readNumbers([columns.weight]);
  const sorter =
    (await edgesByBlocks(context, table, columns, ids)) ??
    (await edgesByRows(context, table, columns, ids));
  try {
    problems.throwIfAny();
    await sortEdges(context, sorter, table, isWeighted);
  } finally {
    await sorter.close();
  }
}

/** Null where there are no blocks, or something in them has to be said by its line. */
async function edgesByBlocks(
  context: ImportContext,
  table: Table,
  columns: EdgeColumns,
  ids: NodeIds | null,
): Promise<EdgeSorter | null> {
  if (ids === null) return null;
  const sorter = tableSorter(context, ids.size, columns.weight >= 0);
  try {
    const blocks = await table.edgeBlocks(columns, ids, sorter);
    if (blocks === null) {
      await sorter.close();
      return null;
    }
    for await (const block of blocks) {
      if (block !== null && !sorter.addAll(block)) throw new NeedsRows('an end that is no node');
      await sorter.settle();
      tellRead(context, table, sorter);
    }
    return sorter;
  } catch (error) {
    await sorter.close();
    if (!(error instanceof NeedsRows)) throw error;
    return null;
  }
}

async function edgesByRows(
  context: ImportContext,
  table: Table,
  columns: EdgeColumns,
  ids: NodeIds | null,
): Promise<EdgeSorter> {
  const isWeighted = columns.weight >= 0;
  const sorter = tableSorter(context, ids?.size ?? 1, isWeighted);
  const ends = new EndFinder(table, ids);
  try {
    for await (const rows of table.batches()) {
      for (const row of rows) {
        const source = ends.nodeOf(row, 'source', row.fields[columns.source]);
        const target = ends.nodeOf(row, 'target', row.fields[columns.target]);
        const text = row.fields[columns.weight] ?? '';
        const weight = isWeighted ? parseWeight(table, row, text) : 0;
        sorter.add(source, target, weight, row.line);
      }
      await sorter.settle();
      tellRead(context, table, sorter);
    }
    ends.addProblems();
    table.countProblems();
    return sorter;
  } catch (error) {
    await sorter.close();
    throw error;
  }
}

function tellRead({ progress }: ImportContext, table: Table, { edges }: EdgeSorter): void {
  progress(readShare * table.fraction, `reading ${table.file}: ${formatCount(edges)} edges`);
}

async function sortEdges(
  context: ImportContext,
  sorter: EdgeSorter,
  table: Table,
  isWeighted: boolean,
): Promise<void> {
  context.progress(readShare, `building the graph of ${formatCount(sorter.edges)} edges`);
  const where = (line: number) => table.where(line);
  await writeTable(context, sorter, { where, isWeighted });
  context.problems.throwIfAny();
}

/** Numbers of the nodes that edges name; a name of none is a problem. */
class EndFinder {
  readonly #table: Table;
  readonly #ids: NodeIds | null;
  /** Problems that wait for the first end that is known: without one there is one cause. */
  #waiting: (() => void)[] | null = [];
  #first: { readonly row: TableRow; readonly what: string } | null = null;
  #unknown = 0;

  constructor(table: Table, ids: NodeIds | null) {
    this.#table = table;
    this.#ids = ids;
  }

  nodeOf(row: TableRow, column: string, name: Field | undefined): number {
    if (name === undefined || this.#ids === null) return 0;
    const node = this.#ids.numberOf(typeof name === 'number' ? name : textOf(name));
    if (node === undefined) {
      this.#miss(row, `has the ${column} '${shown(name)}'`);
      return 0;
    }
    for (const tell of this.#waiting ?? []) tell();
    this.#waiting = null;
    return node;
  }

  #miss(row: TableRow, what: string): void {
    this.#unknown += 1;
    this.#first ??= { row, what };
    const tell = () => {
      const description = `${what}, which is no id of the nodes`;
      this.#table.problem(row, description, 'with an end that is no id of the nodes');
    };
    if (this.#waiting === null) tell();
    else if (this.#waiting.length < waitingMax) this.#waiting.push(tell);
  }

  /** After the last row: where no end is known that is one problem. */
  addProblems(): void {
    if (this.#waiting === null || this.#first === null || this.#ids === null) return;
    const { row, what } = this.#first;
    const some = this.#ids.first(idsShown).map((id) => `'${shown(id)}'`);
    const more = this.#ids.size > idsShown ? ' and so on' : '';
    const none = `and none of ${formatCount(this.#unknown)} ends is an id of the nodes`;
    this.#table.problem(row, `${what}, ${none}: these are ${some.join(', ')}${more}`);
  }
}

const notANumber = 'expected a number of 0 or more';

function parseWeight(table: Table, row: TableRow, text: Field): number {
  const value = parseNumber(text);
  const given = typeof text === 'number' ? text : Number(textOf(text));
  const isBeyond = Number.isFinite(given) && Math.fround(given) === Number.POSITIVE_INFINITY;
  const isNumber = value !== null || isBeyond;
  const why = isNumber ? weightProblem(given, Math.fround(given)) : notANumber;
  if (why === null && value !== null) return value;
  const what = `has the weight '${shown(text)}', ${why}`;
  table.problem(row, what, 'with a weight that is none');
  return 0;
}
