import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { messageOf } from '../base/errors.ts';
import { columnsCalled, lacksColumn, plainName } from './column-names.ts';
import { CsvFile, type CsvRow } from './csv-reader.ts';
import type { NodesForm } from './edge-list-files.ts';
import type { ImportContext } from './import-context.ts';
import type { NodeColumns } from './node-columns.ts';
import { badFile } from './problems.ts';
import { Table, type TableRow } from './table.ts';
import { type Field, shown, textOf } from './table-columns.ts';

/** What files of several collections say of nodes, as tables. */

interface NodeList {
  readonly form: Exclude<NodesForm, 'LABELS'>;
  readonly path: string;
  /** A file of lists of features by id, or null. */
  readonly features: string | null;
}

interface FoundNodes {
  readonly table: Table;
  readonly columns: NodeColumns;
}

const noSplit = { split: -1, masks: [] } as const;

/** Throws ImportFailure for a file that has another form. */
export async function nodeTable(context: ImportContext, list: NodeList): Promise<FoundNodes> {
  if (list.form === 'CONTENT') return await contentTable(context, list.path);
  if (list.form === 'FEATURE_LABEL') return await featureTable(context, list.path);
  return await targetTable(context, list);
}

/** LINQS: id, the features, label. */
async function contentTable(context: ImportContext, path: string): Promise<FoundNodes> {
  const file = basename(path);
  const separator = await CsvFile.separatorOf(path, context.signal);
  const csv = await CsvFile.open(path, context.signal, { separator });
  let width = 0;
  for await (const [first] of csv.rows()) {
    width = first?.fields.length ?? 0;
    if (width > 0) break;
  }
  if (width < 2) throw badFile(`${file}:1`, `has ${width} fields, expected id, features and label`);
  const words = Array.from({ length: width - 2 }, (_, at) => `word ${at}`);
  const table = Table.of(context, {
    ...{ file, columns: ['id', ...words, 'label'], rows: () => csv.rows() },
    get fraction() {
      return csv.fraction;
    },
  });
  const features = words.map((_, at) => at + 1);
  return { table, columns: { id: 0, labels: [width - 1], features, ...noSplit } };
}

/**
 * geom-gcn: a header, then id, features by commas, label by tabs. Features are numbers, as many in
 * each row; or, where rows differ, the positions of ones.
 */
async function featureTable(context: ImportContext, path: string): Promise<FoundNodes> {
  const file = basename(path);
  const csv = await CsvFile.open(path, context.signal, { separator: '\t' });
  const lengths = new Set<number>();
  let largest = 0;
  let isHeader = true;
  for await (const rows of csv.rows()) {
    for (const { fields } of rows) {
      const numbers = isHeader ? [] : (fields[1] ?? '').split(',');
      if (!isHeader) lengths.add(numbers.length);
      isHeader = false;
      for (const text of numbers) largest = Math.max(largest, Number(text) || 0);
    }
  }
  const arePositions = lengths.size > 1;
  const asList = (text: string): Field[] =>
    arePositions ? ones(text.split(','), largest + 1) : text.split(',');
  const rows = async function* (): AsyncGenerator<readonly (TableRow & CsvRow)[]> {
    let skip = 1;
    for await (const batch of csv.rows()) {
      yield batch.slice(skip).map((row) => {
        const [id = '', list = '', ...rest] = row.fields;
        const fields = row.fields.length < 3 ? row.fields : [id, asList(list), ...rest];
        return { ...row, fields } as TableRow & CsvRow;
      });
      skip = 0;
    }
  };
  const table = Table.of(context, {
    ...{ file, columns: ['node_id', 'feature', 'label'], rows },
    get fraction() {
      return csv.fraction;
    },
  });
  return { table, columns: { id: 0, labels: [2], features: [1], ...noSplit } };
}

/** `width` zeros, and ones at the positions. */
function ones(positions: readonly Field[], width: number): Field[] {
  const row = new Array<Field>(width).fill(0);
  for (const position of positions) {
    const at = Number(position);
    if (textOf(position) !== '' && at >= 0 && at < width) row[at] = 1;
  }
  return row;
}

const targetNames = ['target', 'label', 'page_type', 'mature', 'ml_target'];

/** MUSAE: a table with a header, and features by id in a file of JSON. */
async function targetTable(
  context: ImportContext,
  { path, features: featuresPath }: NodeList,
): Promise<FoundNodes> {
  const own = await Table.at(context, path);
  // Twitch's tables have two ids, of which the edges name the second, `new_id`.
  const [id = -1] = [...columnsCalled(own, ['new_id']), ...columnsCalled(own, ['id', 'node_id'])];
  const others = own.columns.map((_, at) => at).filter((at) => at !== id);
  const called = others.filter((at) => targetNames.includes(plainName(own.columns[at] ?? '')));
  const label = others.length === 1 ? others[0] : called[0];
  if (id < 0) lacksColumn(own, 'id', ['id']);
  if (label === undefined) lacksColumn(own, 'target', targetNames);
  const left = others.filter((at) => at !== label).map((at) => `'${shown(own.columns[at] ?? '')}'`);
  if (left.length > 0) context.notices.add(`${own.file}: left out ${left.join(', ')}`);
  const took = `'${shown(own.columns[label ?? 0] ?? '')}' for the label`;
  context.notices.add(`${own.file}: took '${own.columns[id] ?? ''}' for the id, ${took}`);
  const lists = featuresPath === null ? null : await featureLists(featuresPath);
  const rows = async function* (): AsyncGenerator<readonly TableRow[]> {
    for await (const batch of own.batches()) {
      yield batch.map(({ line, fields }) => {
        const name = textOf(fields[id] ?? '');
        const list = lists === null ? [] : [lists(name)];
        return { line, fields: [fields[id] ?? '', fields[label ?? 0] ?? '', ...list] };
      });
    }
  };
  const columns = ['id', 'label', ...(lists === null ? [] : ['feature'])];
  const table = Table.of(context, { file: own.file, columns, fraction: 1, rows });
  const features = lists === null ? [] : [2];
  return { table, columns: { id: 0, labels: [1], features, ...noSplit } };
}

/** Features of a node by its id: positions of ones, or numbers where one has a fraction. */
async function featureLists(path: string): Promise<(id: string) => Field[]> {
  const file = basename(path);
  let lists: Readonly<Record<string, unknown>>;
  try {
    lists = JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    throw badFile(file, `is no JSON: ${messageOf(error)}`);
  }
  let largest = -1;
  let areNumbers = false;
  for (const [id, list] of Object.entries(lists)) {
    if (!Array.isArray(list) || list.some((value) => typeof value !== 'number')) {
      throw badFile(file, `has no list of numbers for '${shown(id)}'`);
    }
    for (const value of list) {
      if (!Number.isInteger(value) || value < 0) areNumbers = true;
      largest = Math.max(largest, value);
    }
  }
  const listOf = (id: string) => (lists[id] as readonly number[] | undefined) ?? [];
  return (id) => (areNumbers ? [...listOf(id)] : ones(listOf(id), largest + 1));
}
