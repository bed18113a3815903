import { realpath } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { parse } from 'yaml';
import { messageOf } from '../base/errors.ts';
import { fileProblem } from '../base/file-problem.ts';
import { isInside } from '../base/rooted.ts';
import type { DatasetTask } from '../records/dataset-record.ts';
import { ArrayImport } from './array-import.ts';
import { type ArraySet, arraySet } from './array-set.ts';
import { sourceText } from './byte-streams.ts';
import { converterOf } from './convert-array.ts';
import { shortPath, writePairs } from './csv-numbers.ts';
import type { DatasetFacts } from './dataset-writer.ts';
import { EdgeSorter } from './edge-sorter.ts';
import { ElementReader } from './element-reader.ts';
import { vectorSource } from './given-array.ts';
import { type ImportContext, part } from './import-context.ts';
import { elementCount, type NpySource, openNpyFile } from './npy.ts';
import { badFile, formatCount, ImportFailure, type ProblemList } from './problems.ts';
import type { ScratchRows } from './scratch-rows.ts';

/**
 * Imports a folder of GraphBolt's OnDiskDataset: `metadata.yaml`, which names .npy files of
 * features and of the nodes and labels of each set, and edges as .npy [2, edges] or CSV pairs. The
 * graph is taken as it is: an edge (u, v) stands in the row of v.
 */

const metadataName = 'metadata.yaml';
/** It names a few files, and YAML is slow to read. */
const metadataMaxBytes = 1 << 20;
const sets = { train: 'train_set', val: 'validation_set', test: 'test_set' } as const;
type SetName = keyof typeof sets;

/** Whether a folder is one, by the names in it. */
export function isGraphBoltFolder(names: ReadonlySet<string>): boolean {
  return names.has(metadataName);
}

export async function importGraphBolt(context: ImportContext): Promise<DatasetFacts> {
  const described = await readMetadata(context);
  const set = arraysOf(context, described, await labelsOf(context, described));
  const share = set.edges === null ? 1 : 0.5;
  return await new ArrayImport(part(context, 0, share), set).run();
}

/** What metadata.yaml says, with paths below the folder. */
interface Described {
  readonly numNodes: number;
  readonly edges: DataFile;
  readonly features: DataFile;
  /** As the task is called, where that says what is learnt. */
  readonly task: DatasetTask | null;
  readonly sets: ReadonlyMap<SetName, { readonly seeds: DataFile; readonly labels: DataFile }>;
}

interface DataFile {
  readonly path: string;
  readonly isCsv: boolean;
}

/** Labels of all nodes, as those of the sets have them. */
interface Labels {
  readonly rows: ScratchRows;
  readonly seeds: ReadonlyMap<SetName, NpySource>;
}

/** What the sets say of their nodes, in the order of nodes. */
async function labelsOf(context: ImportContext, { numNodes, sets }: Described): Promise<Labels> {
  const { signal, writer } = context;
  const seeds = new Map<SetName, NpySource>();
  const read: { readonly nodes: Uint32Array; readonly source: NpySource }[] = [];
  try {
    for (const [name, files] of sets) {
      const nodes = await vectorOf(context, files.seeds.path, numNodes);
      seeds.set(name, vectorSource(shortPath(files.seeds.path), 'uint32', nodes));
      const path = shortPath(files.labels.path);
      const source = { ...(await openNpyFile(files.labels.path, signal)), path };
      read.push({ nodes, source });
      checkLabels(source, nodes, shortPath(files.seeds.path));
    }
    const columns = commonColumns(read.map(({ source }) => source));
    const rows = await writer.scratch(columns);
    await rows.appendUnknown(numNodes);
    for (const { nodes, source } of read) await putLabels(rows, { nodes, source, columns });
    return { rows, seeds };
  } finally {
    for (const { source } of read) await source.close();
  }
}

/** Throws ImportFailure for labels that are not one row for each of the nodes. */
function checkLabels({ path, header }: NpySource, nodes: Uint32Array, of: string): void {
  const { type, shape } = header;
  if (shape.length > 2 || shape.length === 0 || shape[1] === 0) {
    throw badFile(path, `has ${type} (${shape.join(', ')}), expected [nodes] or [nodes, labels]`);
  }
  if (shape[0] === nodes.length) return;
  const lengths = `${formatCount(shape[0] ?? 0)} labels for ${formatCount(nodes.length)} nodes`;
  throw badFile(path, `has ${lengths} of ${of}`);
}

function commonColumns(all: readonly NpySource[]): number {
  const columnsOf = ({ header }: NpySource) => header.shape[1] ?? 1;
  const [first, ...others] = all;
  if (first === undefined) return 1;
  const other = others.find((source) => columnsOf(source) !== columnsOf(first));
  if (other === undefined) return columnsOf(first);
  const what = `has ${columnsOf(other)} labels a node, ${first.path} has ${columnsOf(first)}`;
  throw badFile(other.path, what);
}

/** Rows that are read at once. */
const valuesAtOnce = 1 << 16;

async function putLabels(
  rows: ScratchRows,
  {
    nodes,
    source,
    columns,
  }: { readonly nodes: Uint32Array; readonly source: NpySource; readonly columns: number },
): Promise<void> {
  const reader = new ElementReader(source, 'float32', () => undefined);
  const most = Math.max(1, Math.floor(valuesAtOnce / columns));
  for (let done = 0; done < nodes.length; done += most) {
    const count = Math.min(most, nodes.length - done);
    const values = await reader.take(count * columns);
    // Nodes that follow each other, as most do, are written together.
    for (let from = 0; from < count; ) {
      const node = nodes[done + from] ?? 0;
      let to = from + 1;
      while (to < count && nodes[done + to] === node + to - from) to += 1;
      await rows.put(node, values.subarray(from * columns, to * columns));
      from = to;
    }
  }
}

function arraysOf(context: ImportContext, described: Described, labels: Labels): ArraySet {
  const { edges, features } = described;
  const { signal } = context;
  const members = new Map<string, () => Promise<NpySource>>();
  members.set('features', () => openNpyFile(features.path, signal));
  if (!edges.isCsv) members.set('edge_index', () => openNpyFile(edges.path, signal));
  members.set('labels', async () => labels.rows.source(metadataName));
  for (const [name, seeds] of labels.seeds) members.set(name, async () => seeds);
  const opened = (name: string) => members.get(name);
  return arraySet(context, {
    source: `GraphBolt folder ${basename(context.source)}`,
    names: [...members.keys()],
    pathOf: (name) => (name === 'features' ? shortPath(features.path) : metadataName),
    bytesOf: (name) => (name === 'features' ? 1 : 0),
    open: async (name) => {
      const found = opened(name);
      if (found === undefined) throw badFile(name, 'is missing');
      return await found();
    },
    task: described.task,
    edges: edges.isCsv ? (nodes) => writeCsv(part(context, 0.5, 1), edges.path, nodes) : null,
  });
}

async function writeCsv(context: ImportContext, path: string, numNodes: number): Promise<void> {
  const { folder } = context.writer;
  const rule = { isWeighted: false, keep: 'ALL', bothWays: false } as const;
  const sorter = new EdgeSorter(context.native, { numNodes, folder, ...rule });
  await writePairs(context, path, { sorter, numNodes });
}

/** Node ids of a .npy file: [n] or [n, 1], each below a bound. */
async function vectorOf(
  { signal }: ImportContext,
  path: string,
  below: number,
): Promise<Uint32Array> {
  const source = await openNpyFile(path, signal);
  try {
    const { type, shape } = source.header;
    const isVector = shape.length === 1 || (shape.length === 2 && shape[1] === 1);
    if (type === 'bool' || type.startsWith('float') || !isVector) {
      const found = `${type} (${shape.join(', ')})`;
      throw badFile(shortPath(path), `has ${found}, expected a vector of integers`);
    }
    const values = new Uint32Array(elementCount(shape));
    const convert = converterOf(type, 'uint32');
    const refuse = (index: number, value: number | bigint): never => {
      const expected = `expected a number from 0 to below ${formatCount(below)}`;
      throw badFile(shortPath(path), `has ${value} at index ${index}, ${expected}`);
    };
    let at = 0;
    for await (const block of source.blocks()) {
      const start = at;
      const converted = convert(block, (index, value) => refuse(start + index, value));
      for (const value of converted as Uint32Array) {
        if (value >= below) refuse(at, value);
        values[at] = value;
        at += 1;
      }
    }
    if (values.length > 2 && values.every((value) => value <= 1)) {
      const found = `has ${formatCount(values.length)} values of 0 and 1, which are a mask`;
      throw badFile(shortPath(path), `${found}: expected the numbers of its nodes, each once`);
    }
    return values;
  } finally {
    await source.close();
  }
}

/** Throws ImportFailure with everything that is wrong with it. */
async function readMetadata(context: ImportContext): Promise<Described> {
  const { source, problems } = context;
  const text = await sourceText(join(source, metadataName), metadataMaxBytes);
  let root: unknown;
  try {
    root = parse(text);
  } catch (error) {
    throw badFile(metadataName, `is not YAML: ${messageOf(error)}`);
  }
  const yaml = new Yaml(problems, source);
  const graph = yaml.field(root, 'graph');
  if (graph === undefined && yaml.field(root, 'graph_topology') !== undefined) {
    const remedy = 'import the folder above it, which GraphBolt made this one from';
    throw badFile(metadataName, `describes preprocessed files: ${remedy}`);
  }
  const nodes = yaml.only(graph, 'graph.nodes', 'nodes', 'types of nodes');
  const edges = yaml.only(graph, 'graph.edges', 'edges', 'types of edges');
  const numNodes = yaml.count(nodes, 'graph.nodes[0].num');
  const edgeFile = await yaml.file(edges, 'graph.edges[0]', true);
  const feature = featureOf(context, yaml, yaml.list(yaml.field(root, 'feature_data')));
  const features = await yaml.file(feature, 'feature_data', false);
  const task = yaml.list(yaml.field(root, 'tasks'))[0];
  const found = new Map<SetName, { seeds: DataFile; labels: DataFile }>();
  for (const [name, key] of Object.entries(sets) as [SetName, string][]) {
    const set = yaml.field(task, key);
    if (set === undefined && name === 'test') continue;
    const path = `tasks[0].${key}`;
    const data = yaml.list(yaml.field(yaml.only(task, path, key, 'types of nodes'), 'data'));
    const named = (...names: string[]) =>
      data.find((one) => names.includes(String(yaml.field(one, 'name'))));
    const seeds = await yaml.file(named('seeds', 'seed_nodes'), `${path}: seeds`, false);
    const labels = await yaml.file(named('labels'), `${path}: labels`, false);
    if (seeds !== null && labels !== null) found.set(name, { seeds, labels });
  }
  problems.throwIfAny();
  if (numNodes === null || edgeFile === null || features === null) throw new ImportFailure([]);
  const name = String(yaml.field(task, 'name'));
  const said = /regress/i.test(name) ? 'REGRESSION' : null;
  return { numNodes, edges: edgeFile, features, sets: found, task: said };
}

/** The entry of node features: the one called feat, else the first. */
function featureOf({ notices }: ImportContext, yaml: Yaml, all: readonly unknown[]): unknown {
  const ofNodes = all.filter((one) => yaml.field(one, 'domain') === 'node');
  const nameOf = (one: unknown) => String(yaml.field(one, 'name'));
  const chosen = ofNodes.find((one) => nameOf(one) === 'feat') ?? ofNodes[0];
  for (const other of all) {
    if (other === chosen) continue;
    const why =
      yaml.field(other, 'domain') === 'node'
        ? 'append its columns to feat to use them'
        : 'models here read no edge features';
    notices.add(`feature_data ${nameOf(other)} is not used: ${why}`);
  }
  return chosen;
}

/** What somebody wrote, with a problem for each field that is not what it should be. */
class Yaml {
  readonly #problems: ProblemList;
  readonly #root: string;

  constructor(problems: ProblemList, root: string) {
    this.#problems = problems;
    this.#root = root;
  }

  field(value: unknown, key: string): unknown {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? new Map<string, unknown>(Object.entries(value)).get(key) : undefined;
  }

  list(value: unknown): readonly unknown[] {
    return Array.isArray(value) ? value : [];
  }

  /** The one element of the list `key`. */
  only(parent: unknown, path: string, key: string, what: string): unknown {
    const all = this.list(this.field(parent, key));
    if (all.length === 0) this.#wrong(path, 'is missing, expected a list of one');
    if (all.length > 1) this.#wrong(path, `has ${all.length} ${what}: gnnd learns from one`);
    return all[0];
  }

  count(parent: unknown, path: string): number | null {
    const value = this.field(parent, path.slice(path.lastIndexOf('.') + 1));
    if (Number.isSafeInteger(value) && Number(value) > 0) return Number(value);
    this.#wrong(path, `is ${JSON.stringify(value) ?? 'missing'}, expected a count of nodes`);
    return null;
  }

  /** The file that a description names. */
  async file(value: unknown, at: string, mayBeCsv: boolean): Promise<DataFile | null> {
    const path = this.field(value, 'path');
    const format = this.field(value, 'format');
    if (typeof path !== 'string') {
      this.#wrong(at, 'names no path');
      return null;
    }
    const isCsv = format === 'csv' && mayBeCsv;
    if (!isCsv && format !== 'numpy') {
      const expected = mayBeCsv ? 'numpy or csv' : 'numpy';
      const remedy = format === 'torch' ? ': numpy.save(path, torch.load(path).numpy())' : '';
      this.#wrong(at, `has format ${String(format)}, expected ${expected}${remedy}`);
      return null;
    }
    try {
      const real = await realpath(join(this.#root, path));
      if (isInside(await realpath(this.#root), real)) return { path: real, isCsv };
      this.#wrong(at, `names ${path}, which is not in the folder`);
    } catch (error) {
      this.#wrong(at, `names ${path}, which cannot be read: ${fileProblem(error)}`);
    }
    return null;
  }

  #wrong(path: string, description: string): void {
    this.#problems.add(`${metadataName}: ${path}`, description);
  }
}
