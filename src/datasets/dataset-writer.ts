import { createHash } from 'node:crypto';
import { link, open, realpath, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder } from '../base/atomic-file.ts';
import type {
  DatasetLinks,
  DatasetManifest,
  DatasetTask,
  FeatureDtype,
  ImportStory,
  TypedManifest,
  TypedStory,
} from '../records/dataset-record.ts';
import { columnStatisticsOf } from './column-statistics.ts';
import { type NpyType, NpyWriter, type NpyWritten } from './npy.ts';
import { ScratchRows } from './scratch-rows.ts';

/**
 * The arrays of a dataset folder, in the order in which they are listed (docs/formats). Features
 * may be float16, too, and indices uint32; labels are those of a classification.
 */
export const arrayTypes = {
  indptr: 'int64',
  indices: 'int32',
  features: 'float32',
  labels: 'int32',
  train: 'int64',
  val: 'int64',
  test: 'int64',
  edge_weights: 'float32',
} as const satisfies Readonly<Record<string, NpyType>>;

export type ArrayName = keyof typeof arrayTypes;

export const arrayNames = Object.keys(arrayTypes) as readonly ArrayName[];

/** Arrays of datasets with links: uint32 [links, 2]; negatives [links, k] or [pairs, 2]; labels;
 * weights of those of training. */
export const linkArrayNames = [
  ...(['links_train', 'links_val', 'links_test'] as const),
  ...(['links_val_negatives', 'links_test_negatives'] as const),
  ...(['links_val_negative_pairs', 'links_test_negative_pairs'] as const),
  ...(['links_train_labels', 'links_val_labels', 'links_test_labels'] as const),
  'links_train_weights',
] as const;
export type LinkArrayName = (typeof linkArrayNames)[number];

/** Types of stored labels, of nodes and of links. */
export const labelTypes = {
  CLASSIFICATION: 'int32',
  MULTI_LABEL: 'uint8',
  REGRESSION: 'float32',
} as const satisfies Readonly<Record<DatasetTask, NpyType>>;

/** What is known of each link of a side. */
export interface LinkLabelArray {
  readonly task: DatasetTask;
  /** Null: a class each. */
  readonly columns: number | null;
  readonly values: Int32Array | Uint8Array | Float32Array;
}

/** What an importer knows that the arrays do not say. */
export interface DatasetFacts {
  readonly task: DatasetTask;
  /** 1 + the largest label, or more; labels a node may have; targets it has. 0: unlabelled.ts. */
  readonly numClasses: number;
  readonly numFeatures: number;
  readonly undirected: boolean;
  readonly classNames: readonly string[] | null;
  /** One a column of features; null where the source does not say. */
  readonly featureNames: readonly string[] | null;
  /** Sources of its format never have a split of nodes, so that chance makes one. */
  readonly hasNoSplits?: boolean | undefined;
  /** Where it came from, for people. */
  readonly source: string;
}

/** A finished folder. */
export interface DatasetWritten {
  readonly manifest: DatasetManifest | TypedManifest;
  /** What a user should know of the import, a sentence each. */
  readonly notices: readonly string[];
  /** SHA-256 of dataset.json. */
  readonly digest: string;
  /** Bytes of all files. */
  readonly bytes: number;
}

function* factNotices({ split, num_edges, num_classes }: DatasetManifest): Generator<string> {
  if (num_edges === 0) yield 'the graph has no edge: a node is known by its own features alone';
  // Nobody trains where there are no labels.
  if (num_classes === 0) return;
  if (split.val === 0) {
    yield 'there is no validation split: the last epoch counts as the best, none ends a job early';
  }
  if (split.test === 0) yield 'there is no test split: jobs report validation metrics only';
}

/** Writes the files of one dataset into an existing, empty folder. */
export class DatasetWriter {
  readonly folder: string;
  readonly #open = new Map<ArrayName | LinkArrayName, NpyWriter>();
  readonly #written = new Map<ArrayName | LinkArrayName, NpyWritten>();
  /** What is known of links; null: that they are some. */
  #linkLabels: NonNullable<DatasetLinks['labels']> | null = null;
  /** Links that are edges of the graph; null: there are no links. */
  #inGraph: DatasetLinks['in_graph'] | null = null;
  #negatives = { val: 0, test: 0 };
  #featureDtype: FeatureDtype = 'float32';
  #namesBytes = 0;
  readonly #scratch: ScratchRows[] = [];

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Begins an array other than the features and labels. */
  async begin(
    name: Exclude<ArrayName, 'features' | 'labels'>,
    type: NpyType = arrayTypes[name],
  ): Promise<NpyWriter> {
    return await this.#begin(name, type, null);
  }

  /** Begins the features; what is appended must be of `dtype`. */
  async beginFeatures(columns: number, dtype: FeatureDtype): Promise<NpyWriter> {
    this.#featureDtype = dtype;
    return await this.#begin('features', dtype, columns);
  }

  /** Begins the labels, whose type and columns the task decides (null: a vector). */
  async beginLabels(
    type: 'int32' | 'uint8' | 'float32',
    columns: number | null,
  ): Promise<NpyWriter> {
    return await this.#begin('labels', type, columns);
  }

  /** Rows on their way into the dataset; released by close(). */
  async scratch(columns: number): Promise<ScratchRows> {
    const rows = await ScratchRows.create(this.folder, columns);
    this.#scratch.push(rows);
    return rows;
  }

  /** Writes an array of links, or of negatives of each. */
  async writeLinks(
    name: LinkArrayName,
    { columns, values }: { readonly columns: number; readonly values: Uint32Array },
  ): Promise<void> {
    const writer = await this.#begin(name, 'uint32', columns);
    await writer.append(values);
    await this.end(name);
    if (name === 'links_val_negatives') this.#negatives.val = columns;
    if (name === 'links_test_negatives') this.#negatives.test = columns;
  }

  /** Writes what is known of the links of a side, as labels of nodes are written. */
  async writeLinkLabels(
    name: LinkArrayName,
    { task, columns, values }: LinkLabelArray,
  ): Promise<void> {
    const writer = await this.#begin(name, labelTypes[task], columns);
    await writer.append(values);
    await this.end(name);
  }

  /** Writes how much each training link counts. */
  async writeLinkWeights(weights: Float32Array): Promise<void> {
    const writer = await this.#begin('links_train_weights', 'float32', null);
    await writer.append(weights);
    await this.end('links_train_weights');
  }

  /** Says how many classes, labels or numbers links have. */
  linkLabelsOf(labels: NonNullable<DatasetLinks['labels']>): void {
    this.#linkLabels = labels;
  }

  /** Says how many of the links that models are judged by are edges of the graph. */
  linksInGraph(found: DatasetLinks['in_graph']): void {
    this.#inGraph = found;
  }

  #pathOf(name: ArrayName | LinkArrayName): string {
    return join(this.folder, `${name}.npy`);
  }

  /** Makes a .npy file that holds the array as it is to be stored part of the dataset. */
  async link(name: ArrayName, source: string): Promise<void> {
    // What a link leads to, not the link: that may lead elsewhere tomorrow.
    await link(await realpath(source), this.#pathOf(name));
  }

  /** What a file that was linked holds; `dtype` is that of features. */
  async linked(name: ArrayName, rows: number, sha256: string, dtype: FeatureDtype): Promise<void> {
    if (name === 'features') this.#featureDtype = dtype;
    const { size } = await stat(this.#pathOf(name));
    this.#written.set(name, { rows, bytes: size, sha256 });
  }

  async #begin(
    name: ArrayName | LinkArrayName,
    type: NpyType,
    columns: number | null,
  ): Promise<NpyWriter> {
    const writer = await NpyWriter.create(this.#pathOf(name), type, columns);
    this.#open.set(name, writer);
    return writer;
  }

  /** Takes back an array that was begun and perhaps ended. */
  async discard(name: ArrayName): Promise<void> {
    const writer = this.#open.get(name);
    await writer?.close();
    const isThere = writer !== undefined || this.#written.has(name);
    this.#open.delete(name);
    this.#written.delete(name);
    if (isThere) await unlink(this.#pathOf(name));
  }

  /** Ends an array that was begun, and makes it durable. */
  async end(name: ArrayName | LinkArrayName): Promise<NpyWritten> {
    const written = await this.begun(name).finish();
    this.#open.delete(name);
    this.#written.set(name, written);
    return written;
  }

  /** An array that was begun and not ended. */
  begun(name: ArrayName | LinkArrayName): NpyWriter {
    const writer = this.#open.get(name);
    if (writer === undefined) throw new Error(`array ${name} was not begun`);
    return writer;
  }

  /** Writes a whole array that is in memory. */
  async write(
    name: Exclude<ArrayName, 'features' | 'labels'>,
    values: Int32Array | Uint32Array | BigInt64Array | Float32Array,
  ): Promise<NpyWritten> {
    const writer = await this.begin(
      name,
      values instanceof Uint32Array ? 'uint32' : arrayTypes[name],
    );
    await writer.append(values);
    return await this.end(name);
  }

  /** `chunks` together are one name a line, in the order of the nodes. */
  async writeNames(chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<void> {
    this.#namesBytes = await writeWhole(join(this.folder, 'names.txt'), chunks);
  }

  /** Takes back what writeNames wrote. */
  async dropNames(): Promise<void> {
    await unlink(join(this.folder, 'names.txt'));
    this.#namesBytes = 0;
  }

  /** All arrays that were ended. */
  get arrays(): ReadonlyMap<ArrayName | LinkArrayName, NpyWritten> {
    return this.#written;
  }

  get featureDtype(): FeatureDtype {
    return this.#featureDtype;
  }

  /** Links and what they bring; null: there are none. */
  get links(): DatasetLinks | null {
    return this.#inGraph === null ? null : this.#linkCounts(this.#inGraph);
  }

  /** What was written of an array, or null. */
  written(name: ArrayName | LinkArrayName): NpyWritten | null {
    return this.#written.get(name) ?? null;
  }

  /** Writes import.json and dataset.json; the folder is then whole and durable. */
  async finish(
    datasetName: string,
    facts: DatasetFacts,
    notices: readonly string[],
  ): Promise<DatasetWritten> {
    const rows = (name: ArrayName | LinkArrayName) => this.#written.get(name)?.rows ?? 0;
    const manifest: DatasetManifest = {
      format: 'gnnd-dataset',
      version: 1,
      num_nodes: rows('features'),
      num_edges: rows('indices'),
      num_features: facts.numFeatures,
      feature_dtype: this.#featureDtype,
      ...(facts.task === 'CLASSIFICATION' ? {} : { task: facts.task }),
      num_classes: facts.numClasses,
      split: { train: rows('train'), val: rows('val'), test: rows('test') },
      sha256: Object.fromEntries([...this.#written].map(([n, { sha256 }]) => [`${n}.npy`, sha256])),
      ...(facts.classNames === null ? {} : { class_names: facts.classNames }),
      ...(this.links === null ? {} : { links: this.links }),
    };
    const { source, undirected, featureNames } = facts;
    const all = [...notices, ...factNotices(manifest)];
    const named = featureNames === null ? {} : { feature_names: featureNames };
    const columns = await columnStatisticsOf(this.folder, {
      rows: rows('features'),
      columns: facts.numFeatures,
      dtype: this.#featureDtype,
    });
    const origin = { name: datasetName, source, undirected, ...named };
    const story: ImportStory = { ...origin, columns, notices: all };
    const texts = await writeTexts(this.folder, manifest, story);
    return { manifest, notices: all, digest: texts.digest, bytes: this.bytes + texts.bytes };
  }

  /** Of all that was written so far. */
  get bytes(): number {
    return [...this.#written.values()].reduce((sum, { bytes }) => sum + bytes, this.#namesBytes);
  }

  #linkCounts(inGraph: DatasetLinks['in_graph']): DatasetLinks {
    const rows = (name: LinkArrayName) => this.#written.get(name)?.rows ?? 0;
    const pool = {
      val: rows('links_val_negative_pairs'),
      test: rows('links_test_negative_pairs'),
    };
    return {
      ...{ train: rows('links_train'), val: rows('links_val'), test: rows('links_test') },
      negatives: this.#negatives,
      ...(pool.test === 0 ? {} : { pool }),
      in_graph: inGraph,
      ...(this.#linkLabels === null ? {} : { labels: this.#linkLabels }),
      ...(this.#written.has('links_train_weights') ? { weighted: true } : {}),
    };
  }

  /** Releases what is still open. */
  async close(): Promise<void> {
    for (const rows of this.#scratch.splice(0)) await rows.close();
    for (const writer of this.#open.values()) await writer.close();
    this.#open.clear();
  }
}

/** Writes a file that is there once, durable and read-only; answers its bytes. */
export async function writeWhole(
  path: string,
  chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<number> {
  const file = await open(path, 'wx', 0o440);
  let bytes = 0;
  try {
    for await (const chunk of chunks) {
      await file.appendFile(chunk);
      bytes += chunk.length;
    }
    await file.sync();
  } finally {
    await file.close();
  }
  return bytes;
}

/** Ends a dataset's folder, which is whole and durable then; answers its digest. */
export async function writeTexts(
  folder: string,
  manifest: DatasetManifest | TypedManifest,
  story: ImportStory | TypedStory,
): Promise<{ readonly digest: string; readonly bytes: number }> {
  const told = await writeWhole(join(folder, 'import.json'), [jsonBytes(story)]);
  const text = jsonBytes(manifest);
  const bytes = told + (await writeWhole(join(folder, 'dataset.json'), [text]));
  syncFolder(folder);
  return { digest: digestOf(text), bytes };
}

function jsonBytes(value: unknown): Buffer {
  return Buffer.from(canonicalJson(value), 'utf8');
}

/**
 * The digest of a dataset: SHA-256 of the bytes of its dataset.json. The same for the same arrays,
 * under whatever name and from whatever format they came.
 */
export function digestOf(manifestBytes: Uint8Array): string {
  return createHash('sha256').update(manifestBytes).digest('hex');
}

/** JSON with the keys of every object sorted, so that equal values have equal bytes. */
export function canonicalJson(value: unknown): string {
  return `${JSON.stringify(sorted(value), null, 2)}\n`;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, field]) => [key, sorted(field)]));
}
