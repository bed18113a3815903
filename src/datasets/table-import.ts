import { basename } from 'node:path';
import { ignoredColumns } from './column-names.ts';
import type { DatasetFacts } from './dataset-writer.ts';
import { edgeColumns, importEdges } from './edge-import.ts';
import { type ImportContext, part } from './import-context.ts';
import { labelNotices } from './label-arrays.ts';
import {
  countingColumns,
  featureName,
  type NodeColumns,
  nodeColumns,
  type SplitName,
  splitNames,
  splitOfText,
} from './node-columns.ts';
import { idProblem, NodeIds } from './node-ids.ts';
import { NumberList } from './number-list.ts';
import { badFile, formatCount, ImportFailure } from './problems.ts';
import { Table, type TableRow } from './table.ts';
import {
  FeatureColumns,
  FeatureRows,
  type Field,
  shown,
  textOf,
  truthOf,
} from './table-columns.ts';
import { type StoredLabels, type TableLabels, tableLabels } from './table-labels.ts';

/**
 * Imports a graph from two tables, `nodes` (id, label, split, and the features) and `edges`
 * (source, target, and perhaps weight): files of text or Parquet files.
 */

/** Rows of features gathered before they are written. */
const featureBlockValues = 1 << 18;
/** Of the features that a notice names. */
const columnsShown = 20;
/** Where the table of nodes ends, of 1. */
const nodesShare = 0.5;

export async function importTables(context: ImportContext): Promise<DatasetFacts> {
  const { problems, notices } = context;
  if (context.split !== null) {
    const what = `'${context.split}' is to choose one of several, and tables have one`;
    problems.add('split', what);
  }
  const [nodeTable, edgeTable] = await openBoth(context);
  const ignored = ignoredColumns(context, [nodeTable, edgeTable]);
  const columns = nodeColumns(nodeTable, ignored(nodeTable), notices);
  const ends = edgeColumns(edgeTable, ignored(edgeTable), notices);
  if (columns.id < 0 || ends === null || columns.labels.length === 0) problems.throwIfAny();
  const nodes = await readNodes(context, nodeTable, columns);
  const ids = nodes.areWhole ? nodes.ids : null;
  if (ends !== null) await importEdges(part(context, nodesShare, 1), edgeTable, ends, ids);
  problems.throwIfAny();
  const facts = await storeNodes(context, nodes);
  return { ...facts, source: `folder of tables ${basename(context.source)}` };
}

/** Writes what is held of the nodes; REQUIRES: the source has no problem. */
export async function storeNodes(
  context: ImportContext,
  nodes: Nodes,
): Promise<Omit<DatasetFacts, 'source'>> {
  const { writer, notices } = context;
  const stored = nodes.labels === null ? noLabels : await nodes.labels.store(writer);
  const { task, numClasses, classNames } = stored;
  if (nodes.labels !== null) {
    for (const notice of labelNotices(stored, context.task)) notices.add(notice);
  }
  if (nodes.splits !== null) {
    for (const name of splitNames) {
      await writer.write(name, BigInt64Array.from(nodes.splits[name].toArray(), BigInt));
    }
  }
  const names = nodes.ids.lines();
  if (names !== null) await writer.writeNames(names);
  return {
    task,
    numClasses,
    numFeatures: nodes.featureNames.length,
    undirected: !context.directed,
    classNames,
    featureNames: nodes.featureNames,
  };
}

/** Of a graph that completeDataset gives labels that no node has. */
const noLabels: StoredLabels = {
  ...{ task: 'CLASSIFICATION', numClasses: 0, classNames: null },
  ...{ isOneHot: false, gaps: null },
};

/** Both tables; throws ImportFailure with what is wrong with either. */
async function openBoth(context: ImportContext): Promise<readonly [Table, Table]> {
  const opened = await Promise.allSettled([
    Table.open(context, 'nodes'),
    Table.open(context, 'edges'),
  ]);
  for (const each of opened) {
    if (each.status === 'fulfilled') continue;
    if (!(each.reason instanceof ImportFailure)) throw each.reason;
    context.problems.addAll(each.reason.problems, each.reason.problemCount);
  }
  const [nodes, edges] = opened;
  if (nodes.status === 'fulfilled' && edges.status === 'fulfilled') {
    return [nodes.value, edges.value];
  }
  context.problems.throwIfAny();
  throw badFile(context.source, 'has tables that cannot be read');
}

type Splits = Readonly<Record<SplitName, NumberList<Uint32Array>>>;

export interface Nodes {
  /** Whether every row's id could be read, so that others are of no node. */
  readonly areWhole: boolean;
  readonly ids: NodeIds;
  /** Null: the table has none, and the graph is there to be predicted. */
  readonly labels: TableLabels | null;
  /** Null: the table says nothing of splits. */
  readonly splits: Splits | null;
  /** One a feature. */
  readonly featureNames: readonly string[];
}

export async function readNodes(
  context: ImportContext,
  table: Table,
  found: NodeColumns,
): Promise<Nodes> {
  const { writer, progress, problems, notices } = context;
  table.readNumbers([...found.features, ...found.labels]);
  const counting = await countingColumns(table, found.features, notices);
  const featuresAt = found.features.filter((at) => !counting.has(at));
  const ids = new NodeIds();
  const labelled = { table, columns: found.labels, task: context.task, writer, notices };
  let labels: TableLabels | null = null;
  const splits = new NodeSplits(table, found);
  const dtype = context.featureDtype ?? 'float32';
  const columns = new FeatureColumns(table, dtype);
  let features: FeatureRows | null = null;
  for await (const rows of table.batches()) {
    labels ??= await tableLabels({ ...labelled, first: rows });
    if (features === null && featuresAt.length > 0) {
      const numFeatures = columns.count(rows[0], featuresAt);
      features = new FeatureRows(await writer.beginFeatures(numFeatures, dtype), dtype);
    }
    const target = features;
    const take = (value: number) => target?.push(value);
    for (const row of rows) {
      const node = addId(table, row, row.fields[found.id], ids);
      const split = splits.of(row);
      for (const at of featuresAt) columns.parse(row, at, take);
      if (node === null) continue;
      const isLabelled = labels.push(row);
      if (split === null) continue;
      if (!isLabelled && found.labels.length > 0) {
        const what = `is in split '${split}' but has no label`;
        table.problem(row, what, 'that are in a split but have no label');
      }
      splits.add(split, node);
    }
    await target?.flush(featureBlockValues);
    await labels.settle();
    const done = nodesShare * table.fraction;
    progress(done, `reading ${table.file}: ${formatCount(ids.size)} nodes`);
  }
  await features?.flush(0);
  if (features !== null) await writer.end('features');
  columns.addProblems();
  table.countProblems();
  labels ??= await tableLabels({ ...labelled, first: [] });
  labels.addProblems();
  const names = columns.names(featuresAt, featureName);
  tellFeatures(
    context,
    featuresAt.map((at) => featureName(table.columns[at] ?? '')),
  );
  if (ids.size === 0 && !table.hasLeftOut) problems.add(table.file, 'has no node');
  const areWhole = !table.hasLeftOut;
  const known = found.labels.length === 0 ? null : labels;
  return { areWhole, ids, labels: known, splits: splits.found, featureNames: names };
}

function tellFeatures({ notices }: ImportContext, columns: readonly string[]): void {
  if (columns.length === 0) return;
  const names = columns.slice(0, columnsShown).map(shown).join(', ');
  const more = columns.length > columnsShown ? `, and ${columns.length - columnsShown} more` : '';
  notices.add(`features are the columns ${names}${more}`);
}

function addId(table: Table, row: TableRow, field: Field | undefined, ids: NodeIds): number | null {
  if (field === undefined) return null;
  const name = textOf(field);
  const wrong = idProblem(name);
  const node = wrong === null ? ids.add(name) : null;
  if (node !== null) return node;
  const what = `has the id '${shown(name)}' ${wrong ?? 'again, ids must be unique'}`;
  table.problem(row, what, `with such an id${wrong === null ? ', listed before' : ''}`);
  return null;
}

/** The split of each node: a column of texts, columns of masks, or both, which must agree. */
class NodeSplits {
  readonly #table: Table;
  readonly #columns: NodeColumns;
  readonly #nodes: Splits = {
    train: new NumberList((capacity) => new Uint32Array(capacity)),
    val: new NumberList((capacity) => new Uint32Array(capacity)),
    test: new NumberList((capacity) => new Uint32Array(capacity)),
  };

  constructor(table: Table, columns: NodeColumns) {
    this.#table = table;
    this.#columns = columns;
  }

  /** Null where the table says nothing of splits. */
  get found(): Splits | null {
    const { split, masks } = this.#columns;
    return split < 0 && masks.length === 0 ? null : this.#nodes;
  }

  add(split: SplitName, node: number): void {
    this.#nodes[split].push(node);
  }

  of(row: TableRow): SplitName | null {
    const { split, masks } = this.#columns;
    const named = split < 0 ? null : this.#named(row, row.fields[split] ?? '');
    if (masks.length === 0) return named;
    const marked = masks.filter(([name, at]) => this.#isMarked(row, name, row.fields[at] ?? ''));
    const [first = null, second = null] = marked.map(([name]) => name);
    if (first !== null && second !== null) {
      const what = `is in the masks of '${first}' and of '${second}', expected one`;
      this.#table.problem(row, what, 'that are in two masks');
    }
    // A table may have masks of some splits only.
    const isTold = named === null || masks.some(([name]) => name === named);
    if (split >= 0 && isTold && named !== first) {
      const [text, mask] = [named ?? 'none', first ?? 'none'];
      const remedy = 'leave one of them out (--ignore-columns)';
      const what = `has the split '${text}', and its masks say '${mask}': ${remedy}`;
      this.#table.problem(row, what, 'whose split and masks disagree');
    }
    return named ?? first;
  }

  #named(row: TableRow, field: Field): SplitName | null {
    const text = textOf(field);
    if (text.trim() === '') return null;
    const split = splitOfText(text);
    if (split !== null) return split;
    const what = `has the split '${shown(text)}', expected train, val, test or nothing`;
    this.#table.problem(row, what, 'with a split that is none');
    return null;
  }

  #isMarked(row: TableRow, name: SplitName, field: Field): boolean {
    const value = textOf(field) === '' ? 0 : truthOf(field);
    if (value !== null) return value === 1;
    const expected = 'expected 0 and 1, or true and false';
    const what = `has '${shown(field)}' in the mask of '${name}', ${expected}`;
    this.#table.problem(row, what, 'with a mask that is none');
    return false;
  }
}
