import { basename } from 'node:path';
import { ignoredColumns } from './column-names.ts';
import type { DatasetFacts } from './dataset-writer.ts';
import { edgeColumns, importEdges } from './edge-import.ts';
import { type CodedRows, type FeatureBlock, NeedsRows } from './feature-blocks.ts';
import { firstOf } from './feature-names.ts';
import { float16Max } from './float16.ts';
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
/** Share of the progress at which the table of nodes ends. */
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
      await writer.write(name, asInt64(nodes.splits[name].toArray()));
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

/** Little-endian, as every host here is. */
function asInt64(numbers: Uint32Array): BigInt64Array {
  const wide = new BigInt64Array(numbers.length);
  const halves = new Uint32Array(wide.buffer);
  for (let at = 0; at < numbers.length; at += 1) halves[2 * at] = numbers[at] ?? 0;
  return wide;
}

/** Labels of a graph that has none: completeDataset writes labels that no node has. */
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

/** A batch of rows, and their features where they come as numbers already. */
type NodeBatch = Omit<FeatureBlock, 'features'> & { readonly features: Float32Array | null };

export async function readNodes(
  context: ImportContext,
  table: Table,
  found: NodeColumns,
): Promise<Nodes> {
  const { writer, notices } = context;
  table.readNumbers([...found.features, ...found.labels]);
  const counting = await countingColumns(table, found.features, notices);
  const columns = { ...found, features: found.features.filter((at) => !counting.has(at)) };
  const features = new FeatureColumns(table, context.featureDtype ?? 'float32');
  const width = features.count((await table.first())[0], columns.features);
  tellFeatures(
    context,
    columns.features.map((at) => featureName(table.columns[at] ?? '')),
  );
  const { id, labels, split, masks } = columns;
  const fields = [id, ...labels, split, ...masks.map(([, at]) => at)].filter((at) => at >= 0);
  const blocks = await table.blocks(fields, columns.features, width);
  if (blocks !== null) {
    try {
      return await new NodeReader(context, table, columns, features).read(blocks, width);
    } catch (error) {
      if (!(error instanceof NeedsRows)) throw error;
      await writer.discard('features');
    }
  }
  const rows = async function* (): AsyncGenerator<NodeBatch> {
    for await (const batch of table.batches()) {
      yield { rows: () => batch, coded: null, features: null };
    }
  };
  return await new NodeReader(context, table, columns, features).read(rows(), width);
}

class NodeReader {
  readonly #context: ImportContext;
  readonly #table: Table;
  readonly #columns: NodeColumns;
  readonly #features: FeatureColumns;
  readonly #splits: NodeSplits;
  readonly #ids: NodeIds;

  constructor(
    context: ImportContext,
    table: Table,
    columns: NodeColumns,
    features: FeatureColumns,
  ) {
    this.#context = context;
    this.#table = table;
    this.#columns = columns;
    this.#features = features;
    this.#splits = new NodeSplits(table, columns);
    this.#ids = new NodeIds(context.native);
  }

  /** Reads `batches` to their end; features are `width` numbers a row. */
  async read(batches: AsyncGenerator<NodeBatch>, width: number): Promise<Nodes> {
    const { writer, task, notices, problems, progress } = this.#context;
    const table = this.#table;
    const labelled = { table, columns: this.#columns.labels, task, writer, notices };
    let labels: TableLabels | null = null;
    const target = await this.#beginFeatures(width);
    for await (const { rows, coded, features } of batches) {
      const all = coded === null ? rows() : [];
      labels ??= await tableLabels({ ...labelled, first: all });
      if (coded !== null) this.#seeColumns(coded, labels);
      for (const row of all) this.#see(row, labels, features === null ? target : null);
      if (features !== null) await this.#write(features, target);
      await target?.flush(featureBlockValues);
      await labels.settle();
      const done = nodesShare * table.fraction;
      progress(done, `reading ${table.file}: ${formatCount(this.#ids.size)} nodes`);
    }
    await target?.flush(0);
    if (target !== null) await writer.end('features');
    this.#features.addProblems();
    table.countProblems();
    labels ??= await tableLabels({ ...labelled, first: [] });
    labels.addProblems();
    if (this.#ids.size === 0 && !table.hasLeftOut) problems.add(table.file, 'has no node');
    const featureNames = this.#features.names(this.#columns.features, featureName);
    const areWhole = !table.hasLeftOut;
    return { areWhole, ids: this.#ids, labels, splits: this.#splits.found, featureNames };
  }

  async #beginFeatures(width: number): Promise<FeatureRows | null> {
    if (this.#columns.features.length === 0) return null;
    const dtype = this.#context.featureDtype ?? 'float32';
    return new FeatureRows(await this.#context.writer.beginFeatures(width, dtype), dtype);
  }

  /** A node: its features are `target`'s where they do not come in blocks. */
  #see(row: TableRow, labels: TableLabels, target: FeatureRows | null): void {
    const node = addId(this.#table, row, row.fields[this.#columns.id], this.#ids);
    const split = this.#splits.of(row);
    if (target !== null) this.#parse(row, target);
    if (node === null) return;
    const isLabelled = labels.push(row);
    if (split === null) return;
    if (!isLabelled && this.#columns.labels.length > 0) {
      const what = `is in split '${split}' but has no label`;
      this.#table.problem(row, what, 'that are in a split but have no label');
    }
    this.#splits.add(split, node);
  }

  /** Nodes without a problem; for any other NeedsRows is thrown. */
  #seeColumns(coded: CodedRows, labels: TableLabels): void {
    const { numRows, ids } = coded;
    const first = this.#ids.size;
    const added = typeof ids === 'string' ? this.#ids.addTexts(ids) : this.#ids.addWholes(ids);
    if (added < numRows) throw new NeedsRows('an id that is none, or that was there');
    const splitOf = this.#splits.ofColumns(coded);
    const isLabelled = labels.ofColumns(coded);
    const needsLabel = this.#columns.labels.length > 0;
    for (let row = 0; row < numRows; row += 1) {
      const hasLabel = isLabelled(row);
      const split = splitOf(row);
      if (split === null) continue;
      if (!hasLabel && needsLabel) throw new NeedsRows('a split without a label');
      this.#splits.add(split, first + row);
    }
  }

  #parse(row: TableRow, target: FeatureRows): void {
    const take = (value: number) => target.push(value);
    for (const at of this.#columns.features) this.#features.parse(row, at, take);
  }

  async #write(features: Float32Array, target: FeatureRows | null): Promise<void> {
    const isNarrow = this.#context.featureDtype === 'float16';
    if (isNarrow && features.some((value) => Math.abs(value) > float16Max)) {
      throw new NeedsRows('a number beyond float16');
    }
    await target?.write(features);
  }
}

function tellFeatures({ notices }: ImportContext, columns: readonly string[]): void {
  if (columns.length === 0) return;
  notices.add(`features are the columns ${firstOf(columns.map(shown))}`);
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
  /** What texts say, of which there are few. */
  readonly #known = new Map<string, SplitName | null>();
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

  /** The same by rows of columns. */
  ofColumns({ codes, texts, rowAt }: CodedRows): (row: number) => SplitName | null {
    const { split, masks } = this.#columns;
    const own = codes.get(split);
    if (masks.length > 0) return (row) => this.of(rowAt(row));
    if (own === undefined) return () => null;
    const known = (texts.get(split) ?? []).map((text) => this.#known.get(text));
    return (row) => {
      const code = own[row] ?? 0;
      const found = known[code];
      if (found !== undefined) return found;
      const named = this.of(rowAt(row));
      known[code] = named;
      return named;
    };
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
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const split = text.trim() === '' ? null : splitOfText(text);
    if (split !== null || text.trim() === '') {
      this.#known.set(text, split);
      return split;
    }
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
