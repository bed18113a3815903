import { basename } from 'node:path';
import type { DatasetFacts } from './dataset-writer.ts';
import { importEdges } from './edge-import.ts';
import { type ImportContext, part } from './import-context.ts';
import { labelNotices } from './label-arrays.ts';
import { idProblem, NodeIds } from './node-ids.ts';
import { NumberList } from './number-list.ts';
import { formatCount } from './problems.ts';
import { Table, type TableRow } from './table.ts';
import { FeatureColumns, FeatureRows, type Field, shown, textOf } from './table-columns.ts';
import { labelColumns, type TableLabels, tableLabels } from './table-labels.ts';

/**
 * Imports a graph from two tables, `nodes` (id, label, split, and the features) and `edges`
 * (source, target, and perhaps weight): CSV files, plain or gzipped, or Parquet files.
 */

const splitNames = ['train', 'val', 'test'] as const;
type SplitName = (typeof splitNames)[number];

/** Rows of features gathered before they are written. */
const featureBlockValues = 1 << 18;
/** Of the features that a notice names. */
const columnsShown = 20;
/** Where the table of nodes ends, of 1. */
const nodesShare = 0.5;

export async function importTables(context: ImportContext): Promise<DatasetFacts> {
  const { problems, writer } = context;
  if (context.split !== null) {
    const what = `'${context.split}' is to choose one of several, and tables have one`;
    problems.add('split', what);
  }
  const nodes = await readNodes(context);
  await importEdges(part(context, nodesShare, 1), nodes.hasIds ? nodes.ids : null);
  problems.throwIfAny();
  const stored = await nodes.labels.store(writer);
  const { task, numClasses, classNames } = stored;
  for (const notice of labelNotices(stored, context.task)) context.notices.add(notice);
  for (const name of splitNames) {
    await writer.write(name, BigInt64Array.from(nodes.splits[name].toArray(), BigInt));
  }
  const names = nodes.ids.lines();
  if (names !== null) await writer.writeNames(names);
  return {
    task,
    numClasses,
    numFeatures: nodes.numFeatures,
    undirected: !context.directed,
    classNames,
    featureNames: null,
    source: `folder of tables ${basename(context.source)}`,
  };
}

interface Nodes {
  /** Whether the table has the column. */
  readonly hasIds: boolean;
  readonly ids: NodeIds;
  readonly labels: TableLabels;
  readonly splits: Readonly<Record<SplitName, NumberList<Uint32Array>>>;
  readonly numFeatures: number;
}

async function readNodes(context: ImportContext): Promise<Nodes> {
  const { writer, progress, problems, notices } = context;
  const table = await Table.open(context, 'nodes');
  const idAt = table.column('id');
  const labelsAt = labelColumns(table.columns);
  if (labelsAt.length === 0) table.column('label');
  const splitAt = table.column('split');
  const named = new Set([idAt, ...labelsAt, splitAt]);
  const featuresAt = table.columns.map((_, at) => at).filter((at) => !named.has(at));
  if (featuresAt.length === 0) table.headerProblem('has no feature column');
  const ids = new NodeIds();
  const labelled = { table, columns: labelsAt, task: context.task, writer };
  let labels: TableLabels | null = null;
  const splits = {
    train: new NumberList((capacity) => new Uint32Array(capacity)),
    val: new NumberList((capacity) => new Uint32Array(capacity)),
    test: new NumberList((capacity) => new Uint32Array(capacity)),
  };
  const dtype = context.featureDtype ?? 'float32';
  const columns = new FeatureColumns(table, dtype);
  let features: FeatureRows | null = null;
  let numFeatures = 0;
  for await (const rows of table.batches()) {
    labels ??= await tableLabels({ ...labelled, first: rows });
    if (features === null) {
      numFeatures = columns.count(rows[0], featuresAt);
      features = new FeatureRows(await writer.beginFeatures(numFeatures, dtype), dtype);
    }
    const target = features;
    const take = (value: number) => target.push(value);
    for (const row of rows) {
      const node = addId(table, row, row.fields[idAt], ids);
      const split = parseSplit(table, row, row.fields[splitAt]);
      for (const at of featuresAt) columns.parse(row, at, take);
      if (node === null) continue;
      const isLabelled = labels.push(row);
      if (split === null) continue;
      if (!isLabelled && labelsAt.length > 0)
        table.problem(row, `is in split '${split}' but has no label`);
      splits[split].push(node);
    }
    await target.flush(featureBlockValues);
    await labels.settle();
    const done = nodesShare * table.fraction;
    progress(done, `reading ${table.file}: ${formatCount(ids.size)} nodes`);
  }
  await features?.flush(0);
  if (features !== null) await writer.end('features');
  columns.addProblems();
  labels ??= await tableLabels({ ...labelled, first: [] });
  labels.addProblems();
  const names = featuresAt.map((at) => shown(table.columns[at] ?? ''));
  const more = names.length > columnsShown ? `, and ${names.length - columnsShown} more` : '';
  notices.add(`features are the columns ${names.slice(0, columnsShown).join(', ')}${more}`);
  if (ids.size === 0 && idAt >= 0) problems.add(table.file, 'has no node');
  return { hasIds: idAt >= 0, ids, labels, splits, numFeatures };
}

function addId(table: Table, row: TableRow, field: Field | undefined, ids: NodeIds): number | null {
  if (field === undefined) return null;
  const name = textOf(field);
  const wrong = idProblem(name);
  const node = wrong === null ? ids.add(name) : null;
  if (node !== null) return node;
  table.problem(row, `has the id '${shown(name)}' ${wrong ?? 'again, ids must be unique'}`);
  return null;
}

function parseSplit(table: Table, row: TableRow, text: Field | undefined): SplitName | null {
  if (text === undefined || text === '') return null;
  const split = splitNames.find((name) => name === text);
  if (split !== undefined) return split;
  table.problem(row, `has the split '${shown(text)}', expected train, val, test or nothing`);
  return null;
}
