import { columnsCalled, isIndexName, lacksColumn } from './column-names.ts';
import type { NoticeList } from './notices.ts';
import type { Table } from './table.ts';
import { shown } from './table-columns.ts';

/** Which columns of a table of edges are their ends and their weight. */

export interface EdgeColumns {
  readonly source: number;
  readonly target: number;
  /** -1: edges have none. */
  readonly weight: number;
}

/** What programs call the two ends, the usual names first. */
const endNames: readonly (readonly [string, string])[] = [
  ['source', 'target'],
  ['src', 'dst'],
  ['from', 'to'],
  ['source_id', 'target_id'],
  ['src_id', 'dst_id'],
  ['from_id', 'to_id'],
  ['fromnodeid', 'tonodeid'],
  ['from_node', 'to_node'],
  ['source_node', 'target_node'],
  ['id_1', 'id_2'],
  ['id1', 'id2'],
  ['node_1', 'node_2'],
  ['node1', 'node2'],
  ['node_id_1', 'node_id_2'],
  ['u', 'v'],
  ['head', 'tail'],
];
export const firstNames = endNames.map(([first]) => first);
export const secondNames = endNames.map(([, second]) => second);
const weightNames = [['weight'], ['edge_weight', 'weights', 'w']] as const;

/** Told from the names; null where an end is not clear, which is a problem then. */
export function edgeColumns(
  table: Table,
  ignored: ReadonlySet<number>,
  notices: NoticeList,
): EdgeColumns | null {
  const ends = endColumns(table, ignored);
  if (ends === null) return null;
  const { source, target } = ends;
  const taken = [
    ...(table.columns[source] === 'source' ? [] : [`${quoted(table, source)} for the source`]),
    ...(table.columns[target] === 'target' ? [] : [`${quoted(table, target)} for the target`]),
  ];
  let weight = -1;
  for (const names of weightNames) {
    const found = columnsCalled(table, names).filter((at) => !ignored.has(at));
    if (weight >= 0 || found.length !== 1) continue;
    weight = found[0] ?? -1;
    if (table.columns[weight] !== 'weight') taken.push(`${quoted(table, weight)} for the weight`);
  }
  if (taken.length > 0) notices.add(`${table.file}: took ${taken.join(', ')}`);
  const used = new Set([source, target, weight, ...ignored]);
  const others = table.columns.map((_, at) => at).filter((at) => !used.has(at));
  const indexes = others.filter((at) => isIndexName(table.columns[at] ?? ''));
  if (others.length > 0) {
    const names = others.map((at) => quoted(table, at)).join(', ');
    const why = indexes.length === others.length ? ', which numbers the rows' : '';
    const what = why === '' ? ': edges have a source, a target and perhaps a weight' : why;
    notices.add(`${table.file}: left out ${names}${what}`);
  }
  return { source, target, weight };
}

function quoted(table: Table, at: number): string {
  return `'${shown(table.columns[at] ?? '')}'`;
}

function endColumns(
  table: Table,
  ignored: ReadonlySet<number>,
): Pick<EdgeColumns, 'source' | 'target'> | null {
  const called = (names: readonly string[], type: string | null = null) =>
    columnsCalled(table, names, type).filter((at) => !ignored.has(at));
  const typed = [called([], 'start_id'), called([], 'end_id')] as const;
  const pairs = [typed, ...endNames.map(([a, b]) => [called([a]), called([b])] as const)];
  const whole = pairs.filter(([a, b]) => a.length === 1 && b.length === 1);
  const [pair, ...others] = whole;
  const isUsual = pair === pairs[0] || pair === pairs[1];
  if (pair === undefined) return mixedEnds(table, called);
  if (others.length > 0 && !isUsual) {
    const names = whole.map(([[a = 0], [b = 0]]) => `${quoted(table, a)} and ${quoted(table, b)}`);
    const remedy = 'call two of them source and target, or ignore the others (--ignore-columns)';
    table.headerProblem(`has the ends ${names.join(', or ')}: ${remedy}`);
    return null;
  }
  return { source: pair[0][0] ?? 0, target: pair[1][0] ?? 0 };
}

/** Ends by names of two pairs, where there is one of each sort. */
function mixedEnds(
  table: Table,
  called: (names: readonly string[], type: string) => readonly number[],
): Pick<EdgeColumns, 'source' | 'target'> | null {
  const [source, ...sources] = called(firstNames, 'start_id');
  const [target, ...targets] = called(secondNames, 'end_id');
  if (source !== undefined && target !== undefined && sources.length + targets.length === 0) {
    return { source, target };
  }
  lacksEnds(table);
  return null;
}

function lacksEnds(table: Table): void {
  const isData = table.columns.every((column) => /^-?\d+(\.\d+)?$/.test(column));
  if (isData && table.isText) {
    const line = table.columns.slice(0, 3).join(table.separator ?? ',');
    const remedy = 'put source and target in front, or import the file alone as an EDGE_LIST';
    table.headerProblem(`begins with '${shown(line)}', which is no header: ${remedy}`);
    return;
  }
  const firsts = endNames.map(([first]) => first);
  const seconds = endNames.map(([, second]) => second);
  if (columnsCalled(table, firsts, 'start_id').length === 0)
    lacksColumn(table, 'source', ['source']);
  else if (columnsCalled(table, seconds, 'end_id').length === 0) {
    lacksColumn(table, 'target', ['target']);
  } else lacksColumn(table, 'source', []);
}
