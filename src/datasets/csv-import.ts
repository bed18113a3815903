import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { FeatureColumns, FeatureRows, LabelColumn, parseNumber, shown } from './csv-columns.ts';
import { CsvFile, type CsvRow } from './csv-reader.ts';
import type { DatasetFacts } from './dataset-writer.ts';
import { storedGraph } from './graph.ts';
import type { ImportContext } from './import-context.ts';
import { NumberList } from './number-list.ts';
import { badFile, formatCount, type ProblemList } from './problems.ts';

/**
 * Imports a graph from two tables, `nodes.csv` (id, label, split, and the features) and `edges.csv`
 * (source, target, and perhaps weight), either of them gzipped.
 */

const splitNames = ['train', 'val', 'test'] as const;
type SplitName = (typeof splitNames)[number];

/** Rows of features gathered before they are written. */
const featureBlockValues = 1 << 18;
/** Of the features that a notice names. */
const columnsShown = 20;
/** Where each file ends, of 1. */
const shares = { nodes: 0.45, edges: 0.9 } as const;

export async function importCsvFolder(context: ImportContext): Promise<DatasetFacts> {
  const { problems, writer } = context;
  const nodes = await readNodes(context);
  const edges = await readEdges(context, nodes.ids);
  problems.throwIfAny();
  const { labels, classNames, numClasses } = nodes.labels.finish();
  await writer.write('labels', labels);
  for (const name of splitNames) {
    await writer.write(name, BigInt64Array.from(nodes.splits[name].toArray(), BigInt));
  }
  await writer.writeNames(nodeNames(nodes.ids));
  await writeGraph(context, nodes.ids.size, edges);
  return {
    numClasses,
    numFeatures: nodes.numFeatures,
    undirected: !context.directed,
    classNames,
    source: `csv folder ${basename(context.source)}`,
  };
}

/** What the file of a table may be called. */
export function csvNames(table: string): readonly string[] {
  return [`${table}.csv`, `${table}.csv.gz`];
}

/** The plain or gzipped file of a table, or null. */
function csvPath(folder: string, table: 'nodes' | 'edges'): string | null {
  const candidates = csvNames(table).map((name) => join(folder, name));
  return candidates.find((path) => existsSync(path)) ?? null;
}

/** A table: its header first, then its rows; malformed rows become problems and are left out. */
class CsvTable {
  readonly file: string;
  readonly columns: readonly string[];
  readonly #source: CsvFile;
  readonly #rows: AsyncGenerator<CsvRow[]>;
  readonly #first: readonly CsvRow[];
  readonly #problems: ProblemList;

  private constructor(
    source: CsvFile,
    columns: readonly string[],
    first: readonly CsvRow[],
    rows: AsyncGenerator<CsvRow[]>,
    problems: ProblemList,
  ) {
    this.file = source.name;
    this.#source = source;
    this.columns = columns;
    this.#first = first;
    this.#rows = rows;
    this.#problems = problems;
  }

  static async open(context: ImportContext, table: 'nodes' | 'edges'): Promise<CsvTable> {
    const { source, signal, problems } = context;
    const path = csvPath(source, table);
    if (path === null) throw badFile(`${table}.csv`, `is missing in ${source}`);
    const csv = await CsvFile.open(path, signal);
    const file = csv.name;
    const rows = csv.rows();
    const first = await rows.next();
    if (first.done === true) throw badFile(file, 'is empty, expected a header line');
    const [header, ...rest] = first.value;
    const columns = header?.fields.map((field) => field.trim()) ?? [];
    const repeated = columns.find((column, at) => columns.indexOf(column) < at);
    const isBad = (header?.problem ?? null) !== null || repeated !== undefined;
    if (isBad) {
      await rows.return(undefined);
      const problem = header?.problem ?? `has the column '${repeated}' twice`;
      throw badFile(`${file}:${header?.line ?? 1}`, problem);
    }
    return new CsvTable(csv, columns, rest, rows, problems);
  }

  /** How much of the file was read, of 1. */
  get fraction(): number {
    return this.#source.fraction;
  }

  /** Position of a column; a missing one is a problem and -1. */
  column(name: string): number {
    const at = this.columns.indexOf(name);
    if (at < 0) {
      const found = this.columns.map((column) => `'${shown(column)}'`).join(', ');
      this.#problems.add(`${this.file}:1`, `has no column '${name}', its header is ${found}`);
    }
    return at;
  }

  problem(row: CsvRow, description: string): void {
    this.#problems.add(`${this.file}:${row.line}`, description);
  }

  /** Batches of rows that have as many fields as the header. */
  async *batches(): AsyncGenerator<readonly CsvRow[]> {
    try {
      yield this.#wellFormed(this.#first);
      for await (const rows of this.#rows) yield this.#wellFormed(rows);
    } finally {
      await this.#rows.return(undefined);
    }
  }

  #wellFormed(rows: readonly CsvRow[]): readonly CsvRow[] {
    return rows.filter((row) => {
      if (row.problem !== null) {
        this.problem(row, row.problem);
        return false;
      }
      if (row.fields.length === this.columns.length) return true;
      const header = `the ${this.columns.length} of the header`;
      this.problem(row, `has ${row.fields.length} fields, expected ${header}`);
      return false;
    });
  }
}

interface Nodes {
  /** Node id of every name, in order. */
  readonly ids: ReadonlyMap<string, number>;
  readonly labels: LabelColumn;
  readonly splits: Readonly<Record<SplitName, NumberList<Uint32Array>>>;
  readonly numFeatures: number;
}

async function readNodes(context: ImportContext): Promise<Nodes> {
  const { writer, progress, problems, notices } = context;
  const table = await CsvTable.open(context, 'nodes');
  const idAt = table.column('id');
  const labelAt = table.column('label');
  const splitAt = table.column('split');
  const named = new Set([idAt, labelAt, splitAt]);
  const featuresAt = table.columns.map((_, at) => at).filter((at) => !named.has(at));
  if (featuresAt.length === 0) problems.add(`${table.file}:1`, 'has no feature column');
  const ids = new Map<string, number>();
  const labels = new LabelColumn();
  const splits = {
    train: new NumberList((capacity) => new Uint32Array(capacity)),
    val: new NumberList((capacity) => new Uint32Array(capacity)),
    test: new NumberList((capacity) => new Uint32Array(capacity)),
  };
  const dtype = context.featureDtype ?? 'float32';
  const columns = new FeatureColumns(table, dtype);
  const features = new FeatureRows(await writer.beginFeatures(featuresAt.length, dtype), dtype);
  for await (const rows of table.batches()) {
    for (const row of rows) {
      const node = addId(table, row, row.fields[idAt], ids);
      const split = parseSplit(table, row, row.fields[splitAt]);
      if (split !== null && row.fields[labelAt] === '') {
        table.problem(row, `is in split '${split}' but has no label`);
      }
      for (const at of featuresAt) features.push(columns.parse(row, at));
      if (node === null) continue;
      labels.push(table, row, row.fields[labelAt] ?? '');
      if (split !== null) splits[split].push(node);
    }
    await features.flush(featureBlockValues);
    const done = shares.nodes * table.fraction;
    progress(done, `reading ${table.file}: ${formatCount(ids.size)} nodes`);
  }
  await features.flush(0);
  await writer.end('features');
  columns.addProblems();
  const names = featuresAt.map((at) => shown(table.columns[at] ?? ''));
  const more = names.length > columnsShown ? `, and ${names.length - columnsShown} more` : '';
  notices.add(`features are the columns ${names.slice(0, columnsShown).join(', ')}${more}`);
  if (ids.size === 0) problems.add(table.file, 'has no node');
  return { ids, labels, splits, numFeatures: featuresAt.length };
}

function addId(
  table: CsvTable,
  row: CsvRow,
  name: string | undefined,
  ids: Map<string, number>,
): number | null {
  if (name === undefined) return null;
  if (ids.has(name)) {
    table.problem(row, `has the id '${shown(name)}' again, ids must be unique`);
    return null;
  }
  if (/[\r\n]/.test(name)) table.problem(row, `has the id '${shown(name)}' with a line break`);
  const node = ids.size;
  ids.set(name, node);
  return node;
}

function parseSplit(table: CsvTable, row: CsvRow, text: string | undefined): SplitName | null {
  if (text === undefined || text === '') return null;
  const split = splitNames.find((name) => name === text);
  if (split !== undefined) return split;
  table.problem(row, `has the split '${shown(text)}', expected train, val, test or nothing`);
  return null;
}

interface Edges {
  readonly file: string;
  readonly sources: NumberList<Uint32Array>;
  readonly targets: NumberList<Uint32Array>;
  /** Null where the table has no column of weights. */
  readonly weights: NumberList<Float32Array> | null;
  /** Of each edge, for problems that show later. */
  readonly lines: NumberList<Uint32Array>;
}

async function readEdges(context: ImportContext, ids: ReadonlyMap<string, number>): Promise<Edges> {
  const { progress, problems } = context;
  const table = await CsvTable.open(context, 'edges');
  const sourceAt = table.column('source');
  const targetAt = table.column('target');
  const weightAt = table.columns.indexOf('weight');
  const known = new Set(['source', 'target', 'weight']);
  for (const column of table.columns.filter((name) => !known.has(name))) {
    const expected = 'expected source, target and perhaps weight';
    problems.add(`${table.file}:1`, `has the column '${shown(column)}', ${expected}`);
  }
  const edges: Edges = {
    file: table.file,
    sources: new NumberList((capacity) => new Uint32Array(capacity)),
    targets: new NumberList((capacity) => new Uint32Array(capacity)),
    weights: weightAt < 0 ? null : new NumberList((capacity) => new Float32Array(capacity)),
    lines: new NumberList((capacity) => new Uint32Array(capacity)),
  };
  for await (const rows of table.batches()) {
    for (const row of rows) {
      const source = nodeOf(table, row, 'source', row.fields[sourceAt], ids);
      const target = nodeOf(table, row, 'target', row.fields[targetAt], ids);
      edges.weights?.push(parseWeight(table, row, row.fields[weightAt] ?? ''));
      edges.sources.push(source);
      edges.targets.push(target);
      edges.lines.push(row.line);
    }
    const done = shares.nodes + (shares.edges - shares.nodes) * table.fraction;
    progress(done, `reading ${table.file}: ${formatCount(edges.sources.length)} edges`);
  }
  return edges;
}

function nodeOf(
  table: CsvTable,
  row: CsvRow,
  column: string,
  name: string | undefined,
  ids: ReadonlyMap<string, number>,
): number {
  if (name === undefined) return 0;
  const node = ids.get(name);
  if (node !== undefined) return node;
  table.problem(row, `has the ${column} '${shown(name)}', which is no id of the nodes`);
  return 0;
}

function parseWeight(table: CsvTable, row: CsvRow, text: string): number {
  const value = parseNumber(text);
  if (value !== null && value >= 0) return value;
  table.problem(row, `has the weight '${shown(text)}', expected a number of 0 or more`);
  return 0;
}

function* nodeNames(ids: ReadonlyMap<string, number>): Generator<Uint8Array> {
  const namesPerChunk = 10_000;
  let chunk: string[] = [];
  for (const name of ids.keys()) {
    chunk.push(`${name}\n`);
    if (chunk.length < namesPerChunk) continue;
    yield Buffer.from(chunk.join(''), 'utf8');
    chunk = [];
  }
  yield Buffer.from(chunk.join(''), 'utf8');
}

async function writeGraph(context: ImportContext, numNodes: number, edges: Edges): Promise<void> {
  const { writer, progress, problems, notices, directed } = context;
  const listed = formatCount(edges.sources.length);
  progress(shares.edges, `building the graph of ${listed} edges`);
  const graph = storedGraph({
    numNodes,
    sources: edges.sources.toArray(),
    targets: edges.targets.toArray(),
    weights: edges.weights?.toArray() ?? null,
    directed,
  });
  for (let at = 0; at < graph.conflicts.length; at += 2) {
    const first = edges.lines.at(graph.conflicts[at] ?? 0);
    const again = edges.lines.at(graph.conflicts[at + 1] ?? 0);
    const path = `${edges.file}:${again}`;
    problems.add(path, `lists the edge of line ${first} again with another weight`);
  }
  problems.throwIfAny();
  const entries = formatCount(graph.indices.length);
  const way = directed
    ? 'one entry each, in the row of its target'
    : 'in both directions; --directed keeps theirs';
  notices.add(`${listed} edges listed, ${entries} entries stored: ${way}`);
  const dropped = [
    ...(graph.selfLoops === 0 ? [] : [`${formatCount(graph.selfLoops)} self-loops`]),
    ...(graph.duplicates === 0 ? [] : [`${formatCount(graph.duplicates)} repeated edges`]),
  ];
  if (dropped.length > 0) notices.add(`left out of the graph: ${dropped.join(' and ')}`);
  await writer.write('indptr', graph.indptr);
  await writer.write('indices', graph.indices);
  if (graph.weights !== null) await writer.write('edge_weights', graph.weights);
}
