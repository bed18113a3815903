import { createHash } from 'node:crypto';
import { messageOf } from '../base/errors.ts';
import type { DatasetTask } from '../records/dataset-record.ts';
import { checkHeader, floats } from './array-header.ts';
import type { ArrayRole, ArraySet, EdgeList } from './array-set.ts';
import { ByteProgress } from './byte-progress.ts';
import { converterOf, OutOfRange, type StoredType } from './convert-array.ts';
import { type CopyTask, copyArray, isCopyable } from './copy-array.ts';
import { type ArrayName, arrayNames, arrayTypes, type DatasetFacts } from './dataset-writer.ts';
import { EdgeSorter, type SortedRows, sideBySide } from './edge-sorter.ts';
import { BadWeights } from './edge-weights.ts';
import { ElementReader } from './element-reader.ts';
import { featureNamesProblem } from './feature-names.ts';
import { tableSorter, writeRows, writeTable } from './graph-writer.ts';
import type { ImportContext } from './import-context.ts';
import { labelNotices, taskOf, wholeNotice, writeLabels } from './label-arrays.ts';
import { checkMeta, type Meta } from './meta.ts';
import { nodeCountProblems } from './node-counts.ts';
import {
  elementCount,
  type NpyHeader,
  type NpySource,
  type NpyType,
  type NpyValues,
} from './npy.ts';
import { OrientationCheck } from './orientation.ts';
import { badFile, formatCount, ImportFailure } from './problems.ts';
import { isMaskArray, maskColumn, splitIds } from './split-ids.ts';

const splits = ['train', 'val', 'test'] as const;
type SplitName = (typeof splits)[number];

/** Arrays, whatever holds them, as a dataset. */
export class ArrayImport {
  readonly #context: ImportContext;
  readonly #set: ArraySet;
  /** Headers of the arrays that could be read. */
  readonly #headers = new Map<ArrayRole, NpyHeader>();
  /** SHA-256 of the elements as the source has them. */
  readonly #sums = new Map<ArrayRole, string>();
  readonly #orientation = new OrientationCheck();
  readonly #progress: ByteProgress;
  #task: DatasetTask = 'CLASSIFICATION';
  #numClasses = 0;
  /** A mask has several columns, of which one was chosen. */
  #isSplitChosen = false;
  readonly #masks = new Set<SplitName>();

  constructor(context: ImportContext, set: ArraySet) {
    this.#context = context;
    this.#set = set;
    this.#progress = new ByteProgress(context.progress, set.totalBytes);
  }

  async run(): Promise<DatasetFacts> {
    const { problems, notices, called } = this.#context;
    for (const name of arrayNames) {
      if (this.#set.nameOf(name) !== null) called.set(`${name}.npy`, this.#set.pathOf(name));
    }
    this.#checkPresence();
    const byEdgeIndex = this.#set.nameOf('edge_index') !== null;
    const { edges } = this.#set;
    const isListed = byEdgeIndex || edges !== null;
    for (const name of arrayNames) {
      if (isListed && (name === 'indptr' || name === 'indices')) continue;
      if (isListed && name === 'edge_weights') continue;
      if (this.#set.nameOf(name) === null) continue;
      if (name === 'train' || name === 'val' || name === 'test') await this.#copySplit(name);
      else if (name === 'labels') await this.#copyLabels();
      else await this.#copy(name);
    }
    this.#checkSplitChoice();
    const isCounted = this.#checkNodes();
    // Ends beyond a number of nodes that is wrong would be told of the edges.
    if (isCounted && byEdgeIndex) await this.#copyEdgeIndex();
    else if (isCounted && edges !== null) await this.#copyEdges(edges);
    if (this.#hasSplits && this.#set.nameOf('test') === null) {
      await this.#context.writer.write('test', noIds);
    }
    this.#checkCounts();
    this.#checkMeta();
    problems.throwIfAny();
    const warning = this.#orientation.warning();
    if (warning !== null) notices.add(warning);
    const { meta, source } = this.#set;
    const hasClasses = this.#task === 'CLASSIFICATION' && !this.#isUnlabelled;
    const promised = hasClasses ? (meta?.counts.get('num_classes') ?? 0) : 0;
    return {
      task: this.#task,
      numClasses: Math.max(promised, this.#numClasses),
      numFeatures: this.#headers.get('features')?.shape[1] ?? 0,
      undirected: this.#set.undirected ?? meta?.undirected ?? false,
      classNames: this.#set.classNames ?? meta?.classNames ?? null,
      featureNames: this.#set.featureNames ?? meta?.featureNames ?? null,
      source,
    };
  }

  #checkPresence(): void {
    const { problems } = this.#context;
    const hasEdges = this.#set.nameOf('edge_index') !== null || this.#set.edges !== null;
    for (const name of arrayNames) {
      if (this.#set.nameOf(name) !== null || name === 'edge_weights') continue;
      if (hasEdges && (name === 'indptr' || name === 'indices')) continue;
      const isSplit = name === 'train' || name === 'val' || name === 'test';
      // What is missing altogether is made by completeDataset, or told there.
      if (name === 'features' || name === 'test' || (isSplit && !this.#hasSplits)) continue;
      if (name === 'labels' && this.#isUnlabelled) continue;
      problems.add(this.#set.pathOf(name), 'is missing');
    }
  }

  get #hasSplits(): boolean {
    return splits.some((name) => this.#set.nameOf(name) !== null);
  }

  /** There are no labels and no splits of labelled nodes: the graph is there to be predicted. */
  get #isUnlabelled(): boolean {
    const asked = this.#context.task ?? this.#set.task ?? 'CLASSIFICATION';
    return this.#set.nameOf('labels') === null && !this.#hasSplits && asked === 'CLASSIFICATION';
  }

  /** Nodes, as the labels say, or where there are none the features, or else meta.json. */
  get #nodeRows(): number | undefined {
    const array = this.#headers.get('labels') ?? this.#headers.get('features');
    return array?.shape[0] ?? this.#set.meta?.counts.get('num_nodes');
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
  #storedType(name: OtherName, type: NpyType): StoredType {
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

  async #copy(name: OtherName): Promise<void> {
    await this.#opened(name, async (source) => {
      const stored = this.#storedType(name, source.header.type);
      // What else is to be learnt from indptr is seen here.
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

  #begin(name: OtherName, columns: number, type: StoredType) {
    const { writer } = this.#context;
    if (name !== 'features') return writer.begin(name, type);
    return writer.beginFeatures(columns, type === 'float16' ? type : 'float32');
  }

  async #convert(name: OtherName, source: NpySource, stored: StoredType): Promise<void> {
    const { writer } = this.#context;
    const { type, shape } = source.header;
    const columns = shape[1] ?? 0;
    const target = await this.#begin(name, columns, stored);
    const convert = converterOf(type, stored);
    // What is stored as it came has the same sum.
    const hash = type === stored ? null : createHash('sha256');
    const outside = new OutOfRange();
    const bad = new BadWeights();
    for await (const block of source.blocks()) {
      hash?.update(block);
      const values = convert(block, (index, value) => outside.see(index, value));
      if (name === 'edge_weights') bad.see(block, values);
      await target.append(values);
      outside.advance(values.length);
      this.#see(name, values);
      this.#progress.advance(values.length);
    }
    const written = await writer.end(name);
    if (bad.count > 0) throw badFile(source.path, bad.describe());
    if (outside.count > 0) {
      const isFeatures = name === 'features';
      throw badFile(source.path, outside.describe(isFeatures ? columns : null, stored));
    }
    this.#sums.set(name, hash?.digest('hex') ?? written.sha256);
  }

  #see(name: ArrayName, values: NpyValues): void {
    if (name === 'indptr') this.#orientation.seeIndptr(values as BigInt64Array);
    if (name === 'indices') this.#orientation.seeIndices(values as Int32Array | Uint32Array);
  }

  async #copyLabels(): Promise<void> {
    const { writer, notices, problems } = this.#context;
    await this.#opened('labels', async (source) => {
      const { type } = source.header;
      const asked = this.#context.task ?? this.#set.task;
      const before = problems.count;
      this.#task = await taskOf(source, asked, () => this.#set.open('labels'));
      // What makes an array of a text finds its problems when it is scanned.
      if (problems.count > before) return;
      const hash = createHash('sha256');
      const written = await writeLabels(writer, this.#task, source, (block) => {
        hash.update(block);
        this.#progress.advance(block.length);
      });
      this.#numClasses = written.numClasses;
      this.#sums.set('labels', hash.digest('hex'));
      for (const notice of labelNotices(written, asked)) notices.add(`${source.path}: ${notice}`);
      if (asked !== null) return;
      const isFloatClass = this.#task === 'CLASSIFICATION' && floats.includes(type);
      if (isFloatClass && this.#set.keepsTypes) notices.add(`${source.path} ${wholeNotice}`);
    });
  }

  async #copySplit(name: SplitName): Promise<void> {
    await this.#opened(name, async (source) => {
      const numNodes = this.#numNodes ?? this.#headers.get('labels')?.shape[0];
      const isMask = isMaskArray(this.#set.nameOf(name) ?? name, source.header, numNodes);
      if (isMask) this.#masks.add(name);
      const column = isMask ? maskColumn(source, this.#context.split) : 0;
      if (isMask && (source.header.shape[1] ?? 1) > 1) this.#isSplitChosen = true;
      const hash = createHash('sha256');
      const how = { column: isMask ? column : null, numNodes };
      const found = await splitIds(source, how, (block) => {
        hash.update(block);
        this.#progress.advance(block.length);
      });
      this.#orientation.seeSplit(found);
      await this.#context.writer.write(name, found);
      this.#sums.set(name, hash.digest('hex'));
    });
  }

  #checkSplitChoice(): void {
    const { split, problems } = this.#context;
    if (split === null || this.#isSplitChosen || problems.count > 0) return;
    problems.add('split', `'${split}' is to choose one of several, but no mask has columns`);
  }

  /** Edges that are listed elsewhere, once it is known how many nodes there are. */
  async #copyEdges(edges: EdgeList): Promise<void> {
    const numNodes = this.#nodeRows;
    if (numNodes !== undefined) await edges(numNodes);
  }

  /** PyTorch Geometric's [2, edges]: a column (source, target) becomes source in target's row. */
  async #copyEdgeIndex(): Promise<void> {
    const hasWeights = this.#set.nameOf('edge_weights') !== null;
    await this.#opened('edge_index', async (sources) => {
      const numNodes = this.#nodeRows;
      const numEdges = sources.header.shape[1] ?? 0;
      if (!hasWeights) return await this.#sortEdges(sources, null, { numNodes, numEdges });
      await this.#opened('edge_weights', async (weights) => {
        if (elementCount(weights.header.shape) !== numEdges) return;
        await this.#sortEdges(sources, weights, { numNodes, numEdges });
      });
    });
  }

  async #sortEdges(
    source: NpySource,
    weightSource: NpySource | null,
    { numNodes, numEdges }: { readonly numNodes: number | undefined; readonly numEdges: number },
  ): Promise<void> {
    const { writer, problems, native } = this.#context;
    if (numNodes === undefined) {
      const isGiven = this.#set.nameOf('labels') !== null || this.#set.nameOf('features') !== null;
      const why = 'without labels and features nobody knows how many nodes there are';
      if (!isGiven) problems.add(source.path, `${why}: say num_nodes in a meta.json beside it`);
      return;
    }
    const isWeighted = weightSource !== null;
    const rule = { keep: 'ALL', bothWays: false, folder: writer.folder } as const;
    const sorter = this.#set.isTable
      ? tableSorter(this.#context, numNodes, isWeighted)
      : new EdgeSorter(native, { numNodes, isWeighted, ...rule });
    // The lower row lies behind the whole upper one, so that the array is open twice.
    const second = await this.#set.open('edge_index');
    let edgeOfBad = '';
    const outside = (_: number, value: number | bigint) => problems.add(source.path, beyond(value));
    const sources = new ElementReader(source, 'uint32', outside);
    const targets = new ElementReader(second, 'uint32', outside);
    const bad = new BadWeights();
    const see = (given: NpyValues, read: Float32Array) => bad.see(given, read);
    const weights = weightSource && new ElementReader(weightSource, 'float32', noneIsOutside, see);
    try {
      await targets.skip(numEdges);
      for (let done = 0; done < numEdges; done += edgesAtOnce) {
        const count = Math.min(edgesAtOnce, numEdges - done);
        const ends = [await sources.take(count), await targets.take(count)] as const;
        for (const [row, ids] of ends.entries()) {
          const at = ids.findIndex((id) => id >= numNodes);
          if (at < 0) continue;
          const expected = `expected ids below the ${formatCount(numNodes)} nodes`;
          const place = `at row ${row}, column ${done + at}`;
          throw badFile(source.path, `has ${ids[at] ?? 0} ${place}, ${expected}`);
        }
        const of = await weights?.take(count);
        if (bad.count > 0) {
          const [source = 0, target = 0] = ends.map((ids) => ids[bad.index - done]);
          edgeOfBad ||= ` (the edge from ${source} to ${target})`;
        }
        const block = { ends: sideBySide(...ends), weights: of ?? null };
        sorter.addAll({ ...block, lines: new Uint32Array(), firstLine: 0 });
        await sorter.settle();
        this.#progress.advance(2 * count);
      }
      if (bad.count > 0) throw badFile(weightSource?.path ?? '', bad.describe(edgeOfBad));
      this.#orientation.expect(numNodes + 1);
      this.#orientation.seeIndptr(BigInt64Array.of(0n));
      const seeRows = ({ ends, indices }: SortedRows) => {
        this.#orientation.seeIndptr(ends);
        this.#orientation.seeIndices(indices);
      };
      const { isTable } = this.#set;
      const of = { where: (line: number) => `${source.path}:${line}`, isWeighted };
      await (isTable
        ? writeTable(this.#context, sorter, of, seeRows)
        : writeRows(sorter, of, writer, seeRows));
    } finally {
      await second.close();
      await sorter.close();
    }
  }

  /** Whether the arrays agree on how many nodes there are. */
  #checkNodes(): boolean {
    const { problems } = this.#context;
    const roles: readonly ArrayRole[] = ['indptr', 'features', 'labels', ...this.#masks];
    const arrays = roles.flatMap((role) => {
      const rows = this.#headers.get(role)?.shape[0];
      const isIndptr = role === 'indptr';
      return rows === undefined ? [] : [{ path: this.#set.pathOf(role), rows, isIndptr }];
    });
    const found = nodeCountProblems(arrays);
    for (const { path, description } of found) problems.add(path, description);
    const [first] = arrays;
    const isEmpty = first !== undefined && first.rows - (first.isIndptr ? 1 : 0) < 1;
    if (isEmpty && found.length === 0) problems.add(first.path, 'has no node');
    return found.length === 0;
  }

  /** Lengths of the arrays of edges; what their elements say is the validator's. */
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
    const edges = rows('indices') ?? this.#headers.get('edge_index')?.shape[1];
    if (edges === undefined) return;
    const graph = rows('indices') === undefined ? 'edge_index' : 'indices';
    expect('edge_weights', edges, `${pathOf(graph)} has ${formatCount(edges)}`);
  }

  /** Names of columns: as many as columns, each once. */
  #checkNames({ featureNames }: Meta): void {
    const columns = this.#headers.get('features')?.shape[1];
    if (featureNames === null || columns === undefined) return;
    const problem = featureNamesProblem(featureNames, columns);
    if (problem !== null) this.#context.problems.add('meta.json', problem);
  }

  #checkMeta(): void {
    const { meta } = this.#set;
    if (meta === null) return;
    this.#checkNames(meta);
    const rowsOf: readonly [string, ArrayName, number][] = [
      ['num_nodes', this.#isUnlabelled ? 'features' : 'labels', 0],
      ['num_edges', 'indices', 0],
      ['num_features', 'features', 1],
      ['split.train', 'train', 0],
      ['split.val', 'val', 0],
      ['split.test', 'test', 0],
    ];
    const counts = rowsOf.flatMap(([key, name, axis]) => {
      const count = this.#headers.get(name)?.shape[axis];
      return count === undefined ? [] : ([[key, { path: this.#set.pathOf(name), count }]] as const);
    });
    const read = { counts: new Map(counts), sums: this.#sums, numClasses: this.#numClasses };
    const labelsPath = this.#set.pathOf('labels');
    checkMeta(meta, { ...read, task: this.#task, labelsPath }, this.#context.problems);
  }
}

/** Arrays that are copied or converted as they are. */
type OtherName = Exclude<ArrayName, SplitName | 'labels'>;
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

const noneIsOutside = () => undefined;

/** Edges of an edge_index read at once: their sources and targets side by side. */
const edgesAtOnce = 1 << 16;
/** Ids that int32 has room for. */
const int32Ids = 2 ** 31;
const noIds = new BigInt64Array(0);

function beyond(value: number | bigint): string {
  return `has ${value}, which is no id of a node (uint32)`;
}
