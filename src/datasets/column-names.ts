import { nearestOf } from '../spec/nearest.ts';
import { firstOf } from './feature-names.ts';
import type { ImportContext } from './import-context.ts';
import type { Table } from './table.ts';
import { shown } from './table-columns.ts';

/** What the columns of tables are called, here and in programs that write such tables. */

/** A header as Neo4j and Neptune write them: `age:int`, `personId:ID(Person)`, `~label`. */
const typed = /^(.*?):([a-z_]+)(\(.*\))?(\{.*\})?(\[\])?$/i;
const numberTypes = new Set(
  'int integer long float double boolean bool byte short vector'.split(' '),
);
const otherTypes = new Set(
  (
    'id start_id end_id label type ignore string char date datetime localdatetime localtime time ' +
    'duration point'
  ).split(' '),
);

export interface Heading {
  /** Without its type. */
  readonly name: string;
  /** In small letters; null where the header gives none. */
  readonly type: string | null;
}

export function headingOf(column: string): Heading {
  const [, name = '', type = ''] = typed.exec(column) ?? [];
  const known = type.toLowerCase();
  return numberTypes.has(known) || otherTypes.has(known)
    ? { name, type: known }
    : { name: column, type: null };
}

/** Whether the header says that a column has no numbers. */
export function isNoNumber({ type }: Heading): boolean {
  return type !== null && otherTypes.has(type);
}

/** As names are compared: letters' case, and how words are joined, are ignored. */
export function plainName(column: string): string {
  return headingOf(column).name.toLowerCase().replace(/^~/, '').replace(/[ .-]/g, '_');
}

/** What frames call a column of row numbers when it has no name of its own. */
export function isIndexName(column: string): boolean {
  return /^(|unnamed: ?\d+|index|level_0)$/i.test(column);
}

/** Names that tables give to a column of row numbers. */
export function isRowNumberName(column: string): boolean {
  return /^(idx|row|rows|row_?(id|no|num|nr|number|index)|no|nr|num|number|#|seq|serial)$/.test(
    plainName(column),
  );
}

/** Positions of the columns that bear one of the names or the type. */
export function columnsCalled(
  table: Pick<Table, 'columns'>,
  names: readonly string[],
  type: string | null = null,
): readonly number[] {
  const at = table.columns.map((_, index) => index);
  return at.filter((index) => {
    const column = table.columns[index] ?? '';
    if (type !== null && headingOf(column).type === type) return true;
    return names.includes(plainName(column));
  });
}

/** Adds a problem about a column that a table must have. */
export function lacksColumn(table: Table, name: string, known: readonly string[]): void {
  const found = firstOf(table.columns.map((column) => `'${shown(column)}'`));
  const its = table.isText ? 'its header is' : 'it has';
  const near = nearColumn(table, known);
  const hint = near === null ? '' : `; is '${shown(near)}' what you mean`;
  table.headerProblem(`has no column '${name}', ${its} ${found}${hint}`);
}

/** The column that may be meant by one of the names; null: none. */
function nearColumn(table: Table, known: readonly string[]): string | null {
  const others = table.columns.filter((column) => column !== '');
  const near = known.map((each) => nearestOf(each, others));
  return near.find((each) => each !== null && each.length > 2) ?? null;
}

/** Positions of the columns that the request leaves out; a name of neither table is a problem. */
export function ignoredColumns(
  { ignoredColumns: asked, problems }: ImportContext,
  tables: readonly Table[],
): (table: Table) => ReadonlySet<number> {
  const all = tables.flatMap(({ columns }) => columns);
  const known = new Set(all);
  for (const name of asked) {
    if (known.has(name)) continue;
    const near = nearestOf(name, all);
    const hint = near === null ? `they are ${firstOf(all)}` : `did you mean '${near}'?`;
    problems.add('ignored_columns', `the tables have no column '${name}': ${hint}`);
  }
  const left = new Set(asked);
  return ({ columns }) =>
    new Set(columns.map((_, at) => at).filter((at) => left.has(columns[at] ?? '')));
}
