import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../base/errors.ts';
import { type ArrayRole, type ArraySet, folderArrays, npzArrays } from './array-set.ts';
import { ByteProgress } from './byte-progress.ts';
import { fileChunks } from './byte-streams.ts';
import { converterOf, OutOfRange, type StoredType } from './convert-array.ts';
import { type CopyTask, copyArray, isCopyable } from './copy-array.ts';
import { type ArrayName, arrayNames, arrayTypes, type DatasetFacts } from './dataset-writer.ts';
import { inNeighbours } from './graph.ts';
import type { ImportContext } from './import-context.ts';
import {
  elementCount,
  type NpyHeader,
  type NpySource,
  type NpyType,
  type NpyValues,
  npyIntegers,
} from './npy.ts';
import { OrientationCheck } from './orientation.ts';
import { badFile, formatCount, ImportFailure } from './problems.ts';

const splits = ['train', 'val', 'test'] as const;
type SplitName = (typeof splits)[number];

/** Imports a folder of .npy files, with or without a meta.json. */
export async function importNpyFolder(context: ImportContext): Promise<DatasetFacts> {
  const names = join(context.source, 'names.txt');
  const facts = await new ArrayImport(context, await folderArrays(context)).run();
  if (existsSync(names)) await copyNames(context, names);
  return facts;
}

/** Imports one .npz file with the arrays of a folder as members. */
export async function importNpzFile(context: ImportContext): Promise<DatasetFacts> {
  return await new ArrayImport(context, await npzArrays(context)).run();
}

class ArrayImport {
  readonly #context: ImportContext;
  readonly #set: ArraySet;
  /** Of the arrays that could be read. */
  readonly #headers = new Map<ArrayRole, NpyHeader>();
  /** SHA-256 of the elements as the source has them. */
  readonly #sums = new Map<ArrayRole, string>();
  readonly #orientation = new OrientationCheck();
  readonly #progress: ByteProgress;
  #largestLabel = -1;

  constructor(context: ImportContext, set: ArraySet) {
    this.#context = context;
    this.#set = set;
    this.#progress = new ByteProgress(context.progress, set.totalBytes);
  }

  async run(): Promise<DatasetFacts> {
    const { problems, notices } = this.#context;
    this.#checkPresence();
    const byEdgeIndex = this.#set.nameOf('edge_index') !== null;
    for (const name of arrayNames) {
      if (byEdgeIndex && (name === 'indptr' || name === 'indices')) continue;
      if (byEdgeIndex && name === 'edge_weights') continue;
      if (this.#set.nameOf(name) === null) continue;
      if (name === 'train' || name === 'val' || name === 'test') await this.#copySplit(name);
      else await this.#copy(name);
    }
    if (byEdgeIndex) await this.#copyEdgeIndex();
    if (this.#set.nameOf('test') === null) await this.#context.writer.write('test', noIds);
    this.#checkCounts();
    this.#checkMeta();
    problems.throwIfAny();
    const warning = this.#orientation.warning();
    if (warning !== null) notices.add(warning);
    const { meta, source } = this.#set;
    return {
      numClasses: Math.max(meta?.counts.get('num_classes') ?? 0, this.#largestLabel + 1),
      numFeatures: this.#headers.get('features')?.shape[1] ?? 0,
      undirected: meta?.undirected ?? false,
      classNames: meta?.classNames ?? null,
      source,
    };
  }

  #checkPresence(): void {
    const { problems, notices } = this.#context;
    const hasEdges = this.#set.nameOf('edge_index') !== null;
    for (const name of arrayNames) {
      if (this.#set.nameOf(name) !== null || name === 'edge_weights') continue;
      if (hasEdges && (name === 'indptr' || name === 'indices')) continue;
      if (name !== 'test') problems.add(this.#set.pathOf(name), 'is missing');
      else notices.add('there is no test split: jobs report validation accuracy only');
    }
  }

  /** Runs `work` on an opened array; what is wrong with the array becomes problems. */
  async #opened(role: ArrayRole, work: (source: NpySource) => Promise<void>): Promise<void> {
    const { problems, signal } = this.#context;
    try {
      const source = await this.#set.open(role);
      try {
        checkHeader(role, source);
        this.#progress.begin(source);
        await work(source);
        this.#headers.set(role, source.header);
      } finally {
        await source.close();
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ImportFailure)) throw error;
      problems.addAll(error.problems, error.problemCount);
    }
  }

  /** In what type an array of `type` is stored: ids and features keep theirs where they can. */
  #storedType(name: Exclude<ArrayName, SplitName>, type: NpyType): StoredType {
    if (name === 'features') {
      return this.#context.featureDtype ?? (type === 'float16' ? type : 'float32');
    }
    if (name !== 'indices') return arrayTypes[name];
    if (type === 'uint32') return type;
    return (this.#numNodes ?? 0) > int32Ids ? 'uint32' : 'int32';
  }

  /** As indptr says, once it was read. */
  get #numNodes(): number | undefined {
    const rows = this.#headers.get('indptr')?.shape[0];
    return rows === undefined ? undefined : rows - 1;
  }

  async #copy(name: Exclude<ArrayName, SplitName>): Promise<void> {
    await this.#opened(name, async (source) => {
      const stored = this.#storedType(name, source.header.type);
      // What else is to be learnt from indptr and labels is seen here.
      const isBulk = name === 'indices' || name === 'features' || name === 'edge_weights';
      if (name === 'indptr') this.#orientation.expect(source.header.shape[0] ?? 0);
      if (isBulk && isCopyable(source, stored)) await this.#copyWhole(name, source, stored);
      else await this.#convert(name, source, stored);
    });
  }

  /** Native code does all that is to be done with each byte, or reads a file that is linked. */
  async #copyWhole(name: BulkName, source: CopyTask['source'], stored: StoredType): Promise<void> {
    const { writer, native, signal, link, checked } = this.#context;
    const [rows = 0, columns = 0] = source.header.shape;
    if (link) {
      await writer.link(name, source.place.file).catch((error: unknown) => {
        const remedy = 'import it without link, which copies it';
        throw badFile(source.path, `cannot be linked: ${messageOf(error)}: ${remedy}`);
      });
    }
    const target = link ? null : await this.#begin(name, columns, stored);
    const numNodes = name === 'indices' ? this.#numNodes : undefined;
    const { handle, sha256, bytes, isClean } = await copyArray({
      ...{ native, source, signal, rule: ruleOf(name, stored, numNodes) },
      target: target === null ? null : { fd: target.fd, at: target.dataAt },
      numNodes: numNodes ?? 0,
      onCopied: (elements) => this.#progress.advance(elements),
    });
    if (target === null) {
      await writer.linked(name, rows, sha256, stored === 'float16' ? stored : 'float32');
    } else {
      target.adopt(bytes, sha256);
      await writer.end(name);
    }
    this.#sums.set(name, sha256);
    if (isClean && name !== 'edge_weights') checked.add(`${name}.npy`);
    if (numNodes !== undefined) {
      this.#orientation.seeNamed((nodes) => native.arrayCopyUnnamed(handle, nodes));
    }
  }

  #begin(name: Exclude<ArrayName, SplitName>, columns: number, type: StoredType) {
    const { writer } = this.#context;
    if (name !== 'features') return writer.begin(name, type);
    return writer.beginFeatures(columns, type === 'float16' ? type : 'float32');
  }

  async #convert(
    name: Exclude<ArrayName, SplitName>,
    source: NpySource,
    stored: StoredType,
  ): Promise<void> {
    const { writer } = this.#context;
    const { type, shape } = source.header;
    const columns = shape[1] ?? 0;
    const target = await this.#begin(name, columns, stored);
    const convert = converterOf(type, stored);
    // What is stored as it came has the same sum.
    const hash = type === stored ? null : createHash('sha256');
    const outside = new OutOfRange();
    for await (const block of source.blocks()) {
      hash?.update(block);
      const values = convert(block, (index, value) => outside.see(index, value));
      await target.append(values);
      outside.advance(values.length);
      this.#see(name, values);
      this.#progress.advance(values.length);
    }
    const written = await writer.end(name);
    if (outside.count > 0) {
      const isFeatures = name === 'features';
      throw badFile(source.path, outside.describe(isFeatures ? columns : null, stored));
    }
    this.#sums.set(name, hash?.digest('hex') ?? written.sha256);
  }

  #see(name: ArrayName, values: NpyValues): void {
    if (name === 'indptr') this.#orientation.seeIndptr(values as BigInt64Array);
    if (name === 'indices') this.#orientation.seeIndices(values as Int32Array | Uint32Array);
    if (name !== 'labels') return;
    for (const label of values as Int32Array) {
      if (label > this.#largestLabel) this.#largestLabel = label;
    }
  }

  /** A list of ids in any order, or a mask with an element for each node. */
  async #copySplit(name: SplitName): Promise<void> {
    await this.#opened(name, async (source) => {
      const { type, shape } = source.header;
      const hash = createHash('sha256');
      const ids = new BigInt64Array(type === 'bool' ? 0 : elementCount(shape));
      const marked: number[] = [];
      const convert = converterOf(type, 'int64');
      let at = 0;
      for await (const block of source.blocks()) {
        hash.update(block);
        if (type === 'bool') {
          for (const [index, isIn] of (block as Uint8Array).entries()) {
            if (isIn !== 0) marked.push(at + index);
          }
        } else ids.set(convert(block, () => undefined) as BigInt64Array, at);
        at += block.length;
        this.#progress.advance(block.length);
      }
      const found = type === 'bool' ? BigInt64Array.from(marked, BigInt) : ids.sort();
      this.#orientation.seeSplit(found);
      await this.#context.writer.write(name, found);
      this.#sums.set(name, hash.digest('hex'));
    });
  }

  /** PyTorch Geometric's [2, edges]: a column (source, target) becomes source in target's row. */
  async #copyEdgeIndex(): Promise<void> {
    const { writer, problems } = this.#context;
    const numNodes = this.#headers.get('labels')?.shape[0];
    const weights = await this.#readEdgeWeights();
    await this.#opened('edge_index', async (source) => {
      const numEdges = source.header.shape[1] ?? 0;
      const ends = new Uint32Array(2 * numEdges);
      const convert = converterOf(source.header.type, 'uint32');
      let at = 0;
      for await (const block of source.blocks()) {
        const values = convert(block, (_, value) => problems.add(source.path, beyond(value)));
        ends.set(values as Uint32Array, at);
        at += values.length;
        this.#progress.advance(values.length);
      }
      if (numNodes === undefined) return;
      const outside = ends.findIndex((id) => id >= numNodes);
      if (outside >= 0) {
        const expected = `expected ids below the ${formatCount(numNodes)} nodes`;
        const found = `${ends[outside] ?? 0} ${placeOf(outside, numEdges)}`;
        throw badFile(source.path, `has ${found}, ${expected}`);
      }
      if (weights !== null && weights.length !== numEdges) return;
      const sources = ends.slice(0, numEdges);
      const targets = ends.slice(numEdges);
      const graph = inNeighbours({ numNodes, sources, targets, weights });
      this.#orientation.seeIndptr(graph.indptr);
      this.#orientation.seeIndices(graph.indices);
      await writer.write('indptr', graph.indptr);
      await writer.write('indices', graph.indices);
      if (graph.weights !== null) await writer.write('edge_weights', graph.weights);
    });
  }

  async #readEdgeWeights(): Promise<Float32Array | null> {
    if (this.#set.nameOf('edge_weights') === null) return null;
    let weights: Float32Array | null = null;
    await this.#opened('edge_weights', async (source) => {
      const all = new Float32Array(elementCount(source.header.shape));
      const convert = converterOf(source.header.type, 'float32');
      let at = 0;
      for await (const block of source.blocks()) {
        all.set(convert(block, () => undefined) as Float32Array, at);
        at += block.length;
        this.#progress.advance(block.length);
      }
      weights = all;
    });
    return weights;
  }

  /** The lengths of the arrays against each other; what their elements say is the validator's. */
  #checkCounts(): void {
    const { problems } = this.#context;
    const rows = (role: ArrayRole) => this.#headers.get(role)?.shape[0];
    const pathOf = (role: ArrayRole) => this.#set.pathOf(role);
    const expect = (role: ArrayRole, count: number, because: string) => {
      const found = rows(role);
      if (found === undefined || found === count) return;
      const lengths = `has ${formatCount(found)} rows, expected ${formatCount(count)}`;
      problems.add(pathOf(role), `${lengths} because ${because}`);
    };
    const indptrRows = rows('indptr');
    const ruler = indptrRows === undefined ? 'labels' : 'indptr';
    const nodes = indptrRows === undefined ? rows('labels') : indptrRows - 1;
    if (nodes !== undefined) {
      const because = `${pathOf(ruler)} has ${formatCount(rows(ruler) ?? 0)} rows`;
      if (nodes < 1) problems.add(pathOf(ruler), 'has no node');
      expect('labels', nodes, because);
      expect('features', nodes, because);
      const masks = splits.filter((name) => this.#headers.get(name)?.type === 'bool');
      for (const name of masks) expect(name, nodes, because);
    }
    const edges = rows('indices') ?? this.#headers.get('edge_index')?.shape[1];
    if (edges === undefined) return;
    const graph = rows('indices') === undefined ? 'edge_index' : 'indices';
    expect('edge_weights', edges, `${pathOf(graph)} has ${formatCount(edges)}`);
  }

  /** The counts and checksums of meta.json against what was read. */
  #checkMeta(): void {
    const { problems } = this.#context;
    const { meta } = this.#set;
    if (meta === null) return;
    const rowsOf: readonly [string, ArrayName, number][] = [
      ['num_nodes', 'labels', 0],
      ['num_edges', 'indices', 0],
      ['num_features', 'features', 1],
      ['split.train', 'train', 0],
      ['split.val', 'val', 0],
      ['split.test', 'test', 0],
    ];
    for (const [key, name, axis] of rowsOf) {
      const promised = meta.counts.get(key);
      const found = this.#headers.get(name)?.shape[axis];
      if (promised === undefined || found === undefined || promised === found) continue;
      const counts = `${formatCount(promised)}, but ${this.#set.pathOf(name)} has`;
      problems.add('meta.json', `says ${key} is ${counts} ${formatCount(found)}`);
    }
    for (const [name, sum] of this.#sums) {
      const promised = meta.sha256.get(name);
      if (promised === undefined || promised === sum) continue;
      const found = `the one of the array is ${sum}`;
      problems.add(`${name}.npy`, `was changed: meta.json has SHA-256 ${promised}, ${found}`);
    }
  }
}

type BulkName = 'indices' | 'features' | 'edge_weights';

/** What native code can say of elements as they pass by. */
function ruleOf(
  name: BulkName,
  stored: StoredType,
  numNodes: number | undefined,
): CopyTask['rule'] {
  if (name === 'indices' && numNodes !== undefined) return 'NODES';
  if (name !== 'features') return 'ANY';
  return stored === 'float16' ? 'FINITE_FLOAT16' : 'FINITE_FLOAT32';
}

/** Ids that int32 has room for. */
const int32Ids = 2 ** 31;
const noIds = new BigInt64Array(0);

function beyond(value: number | bigint): string {
  return `has ${value}, which is no id of a node (uint32)`;
}

function placeOf(at: number, numEdges: number): string {
  return `at row ${at < numEdges ? 0 : 1}, column ${at % numEdges}`;
}

const floats: readonly NpyType[] = ['float16', 'float32', 'float64'];

function checkHeader(role: ArrayRole, source: NpySource): void {
  const { type, shape } = source.header;
  const isFloat = floats.includes(type);
  const refuse = (expected: string) => {
    throw badFile(source.path, `has dtype ${type}, expected ${expected}`);
  };
  if (role === 'labels') checkLabels(source);
  else if (role === 'edge_weights') {
    if (!isFloat) refuse(floats.join(', '));
  } else if (role === 'train' || role === 'val' || role === 'test') {
    if (isFloat) refuse('node ids (integers) or a mask (bool)');
  } else if (role !== 'features' && (isFloat || type === 'bool')) refuse(npyIntegers.join(', '));
  const axes = role === 'features' || role === 'edge_index' ? 2 : 1;
  const isColumn = shape.length === 2 && shape[1] === 1 && axes === 1;
  const isShort = role === 'edge_index' && shape[0] !== 2;
  if ((shape.length === axes || isColumn) && !isShort) return;
  const names = { features: '[nodes, features]', edge_index: '[2, edges]' } as const;
  const expected = role === 'features' || role === 'edge_index' ? names[role] : 'one axis';
  throw badFile(source.path, `has shape (${shape.join(', ')}), expected ${expected}`);
}

/** What gnnd learns is one class a node: says so to those who bring something else. */
function checkLabels({ path, header: { type, shape } }: NpySource): void {
  if (floats.includes(type)) {
    const what = `has dtype ${type}, expected class numbers (integers, -1 for none)`;
    const remedy = 'for classes kept as floats: labels.astype("int64")';
    throw badFile(path, `${what}: regression on node values is not there; ${remedy}`);
  }
  if (shape.length === 2 && shape[1] !== 1) {
    const what = `has shape (${shape.join(', ')}), expected one class a node`;
    throw badFile(
      path,
      `${what}: several labels a node are not there; train a job for each column`,
    );
  }
}

async function copyNames(context: ImportContext, path: string): Promise<void> {
  const { writer, problems, signal } = context;
  const nodes = writer.written('labels')?.rows ?? 0;
  let lines = 0;
  let last = 0;
  const chunks = async function* (): AsyncGenerator<Uint8Array> {
    for await (const chunk of fileChunks(path)) {
      signal.throwIfAborted();
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines += 1;
      last = chunk.at(-1) ?? last;
      yield chunk;
    }
  };
  await writer.writeNames(chunks());
  if (last !== 10 && (await stat(path)).size > 0) lines += 1;
  if (lines !== nodes) {
    const expected = `expected one for each of the ${formatCount(nodes)} nodes`;
    problems.add('names.txt', `has ${formatCount(lines)} lines, ${expected}`);
  }
}
