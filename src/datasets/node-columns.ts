import { nearestOf } from '../spec/nearest.ts';
import {
  columnsCalled,
  headingOf,
  isIndexName,
  isNoNumber,
  isRowNumberName,
  lacksColumn,
  plainName,
} from './column-names.ts';
import { firstOf } from './feature-names.ts';
import type { NoticeList } from './notices.ts';
import type { Table, TableRow } from './table.ts';
import { isDecimal, shown, textOf } from './table-columns.ts';

/** Which columns of a table of nodes are its ids, its labels, its split and its features. */

export const splitNames = ['train', 'val', 'test'] as const;
export type SplitName = (typeof splitNames)[number];

export interface NodeColumns {
  /** -1: the table has none, which is a problem already. */
  readonly id: number;
  /** Empty: the table has none. */
  readonly labels: readonly number[];
  /** -1: none. */
  readonly split: number;
  /** Columns that say of each node whether it is in a split. */
  readonly masks: readonly (readonly [SplitName, number])[];
  readonly features: readonly number[];
}

const idNames = [['id', '_id'], ['node_id', 'nodeid', 'node'], ['name']] as const;
const labelNames = [['label'], ['labels', 'y', 'class', 'target']] as const;
const severalPrefix = 'label_';
const maskNames: Readonly<Record<SplitName, readonly string[]>> = {
  train: ['train_mask'],
  val: ['val_mask', 'valid_mask', 'validation_mask', 'dev_mask'],
  test: ['test_mask'],
};
/** So few rows count by chance, unless the column's name says that they do. */
const countingRowsMin = 8;

/** Told from the names; what is not clear is a problem, what was chosen of several a notice. */
export function nodeColumns(
  table: Table,
  ignored: ReadonlySet<number>,
  notices: NoticeList,
): NodeColumns {
  const taken: string[] = [];
  const free = (found: readonly number[]) => found.filter((at) => !ignored.has(at));
  const nameOf = (at: number) => `'${shown(table.columns[at] ?? '')}'`;
  const one = (what: string, names: readonly (readonly string[])[], type: string | null) => {
    for (const [rank, group] of names.entries()) {
      const found = free(columnsCalled(table, group, rank === 0 ? type : null));
      const [at = -1, ...more] = found;
      if (more.length > 0) {
        const several = found.map(nameOf).join(' and ');
        const remedy = `call one of them '${what}', or ignore the other (--ignore-columns)`;
        table.headerProblem(`has the columns ${several}, and one is to be the ${what}: ${remedy}`);
      }
      if (at < 0) continue;
      if (table.columns[at] !== what) taken.push(`${nameOf(at)} for the ${what}`);
      return at;
    }
    return -1;
  };
  let id = one('id', idNames, 'id');
  if (id < 0 && !ignored.has(0) && isIndexName(table.columns[0] ?? 'x')) {
    id = 0;
    taken.push(`the first column, ${nameOf(0)}, for the id`);
  }
  if (id < 0) lacksColumn(table, 'id', ['id', 'node_id']);
  const labels = labelColumns(table, free, one);
  const split = one('split', [['split']], null);
  const masks = splitNames.flatMap((name): (readonly [SplitName, number])[] => {
    const at = one(`${name}_mask`, [maskNames[name]], null);
    return at < 0 ? [] : [[name, at]];
  });
  if (labels.length === 0) checkUnlabelled(table, split >= 0 || masks.length > 0);
  if (taken.length > 0) notices.add(`${table.file}: took ${taken.join(', ')}`);
  const named = new Set([...ignored, id, ...labels, split, ...masks.map(([, at]) => at)]);
  const rest = table.columns.map((_, at) => at).filter((at) => !named.has(at));
  return { id, labels, split, masks, features: namedFeatures(table, rest, notices) };
}

/** A `label` makes others features; without one `label_…` are several, or a usual name is it. */
function labelColumns(
  table: Table,
  free: (found: readonly number[]) => readonly number[],
  one: (what: string, names: readonly (readonly string[])[], type: string | null) => number,
): readonly number[] {
  const several = free(table.columns.map((_, at) => at)).filter((at) =>
    table.columns[at]?.toLowerCase().startsWith(severalPrefix),
  );
  const hasOne = free(columnsCalled(table, ['label'])).length > 0;
  if (!hasOne && several.length > 0) return several;
  const at = one('label', labelNames, null);
  if (at >= 0) return [at];
  const typed = one('label', [[]], 'label');
  if (typed >= 0) return [typed];
  return [];
}

/** A table without labels is one to be predicted, unless its names say that it should have some. */
function checkUnlabelled(table: Table, hasSplit: boolean): void {
  const others = table.columns.filter((column) => column !== '');
  const isMisspelt = nearestOf('label', others) !== null;
  if (hasSplit || isMisspelt) lacksColumn(table, 'label', ['label', 'class', 'target']);
}

/** Without those that number the rows, and without those whose header says that they are texts. */
function namedFeatures(
  table: Table,
  columns: readonly number[],
  notices: NoticeList,
): readonly number[] {
  const isText = (at: number) => isNoNumber(headingOf(table.columns[at] ?? ''));
  const nameOf = (at: number) => `'${shown(table.columns[at] ?? '')}'`;
  const texts = columns.filter(isText).map(nameOf);
  if (texts.length > 0) {
    notices.add(`${table.file}: left out the columns of texts ${firstOf(texts)}`);
  }
  const numbers = columns.filter((at) => !isText(at));
  const isIndex = (at: number) => isIndexName(table.columns[at] ?? '');
  const indexes = numbers.filter(isIndex);
  if (indexes.length > 0) {
    const names = firstOf(indexes.map(nameOf));
    notices.add(`${table.file}: left out ${names}, which numbers the rows and is no feature`);
  }
  return numbers.filter((at) => !isIndex(at));
}

/**
 * Features that only count the rows, from 0 or 1: they are left out, with a notice. Reads
 * the table to its end only where one counts as far as its first rows go.
 */
export async function countingColumns(
  table: Table,
  features: readonly number[],
  notices: NoticeList,
): Promise<ReadonlySet<number>> {
  const count = new RowCount(features);
  for (const row of await table.first()) count.see(row);
  if (count.columns.length > 0) {
    count.restart();
    for await (const batch of table.batches({ quiet: true })) {
      for (const row of batch) count.see(row);
      if (count.columns.length === 0) break;
    }
  }
  const { columns: counting, rows } = count;
  const found = counting.filter((at) => {
    const least = isRowNumberName(table.columns[at] ?? '') ? 2 : countingRowsMin;
    return rows >= least;
  });
  for (const at of found) {
    const what = `'${shown(table.columns[at] ?? '')}', which counts the rows and is no feature`;
    const remedy = 'to keep it as one, divide it by the number of rows';
    notices.add(`${table.file}: left out the column ${what}; ${remedy}`);
  }
  return new Set(found);
}

/** Columns that count as far as rows were seen. */
class RowCount {
  columns: readonly number[];
  rows = 0;
  /** 0 or 1, of each column. */
  readonly #from = new Map<number, number>();

  constructor(columns: readonly number[]) {
    this.columns = columns;
  }

  restart(): void {
    this.rows = 0;
  }

  see({ fields }: TableRow): void {
    this.columns = this.columns.filter((at) => {
      const text = textOf(fields[at] ?? '');
      if (!isDecimal(text)) return false;
      const value = Number(text) - this.rows;
      if (this.rows === 0) this.#from.set(at, value);
      return value === this.#from.get(at) && (value === 0 || value === 1);
    });
    this.rows += 1;
  }
}

/** As a feature is called: without the type that its header gives. */
export function featureName(column: string): string {
  return headingOf(column).name;
}

const splitTexts: Readonly<Record<string, SplitName>> = {
  ...{ train: 'train', training: 'train', val: 'val', valid: 'val', validation: 'val', dev: 'val' },
  ...{ test: 'test', testing: 'test' },
};

/** The split that a text names; null where it names none. */
export function splitOfText(text: string): SplitName | null {
  return splitTexts[plainName(text.trim())] ?? null;
}
