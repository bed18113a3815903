import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { messageOf } from '../base/errors.ts';
import { fileChunks } from './byte-streams.ts';
import { type ArrayName, arrayNames, arrayTypes, type DatasetFacts } from './dataset-writer.ts';
import { float16Max, float16Widener, roundToFloat16 } from './float16.ts';
import type { ImportContext } from './import-context.ts';
import {
  elementCount,
  type NpyHeader,
  type NpySource,
  type NpyType,
  type NpyValues,
  openNpyFile,
  openNpyStream,
} from './npy.ts';
import { readZipDirectory, readZipMember } from './npz.ts';
import { badFile, formatCount, ImportFailure } from './problems.ts';

/** A set of arrays by name: a folder of .npy files, or an .npz file. */
interface ArraySet {
  /** For people. */
  readonly source: string;
  has(name: ArrayName): boolean;
  /** How messages call an array of this set. */
  pathOf(name: ArrayName): string;
  open(name: ArrayName): Promise<NpySource>;
  readonly meta: Meta | null;
}

/** What a meta.json beside the arrays says; all of it is checked against them. */
interface Meta {
  readonly counts: ReadonlyMap<string, number>;
  readonly undirected: boolean;
  readonly classNames: readonly string[] | null;
  readonly sha256: ReadonlyMap<string, string>;
}

const optionalArrays: ReadonlySet<ArrayName> = new Set(['edge_weights']);
const acceptedTypes: Readonly<Record<'int32' | 'int64' | 'float32', readonly NpyType[]>> = {
  int32: ['int32', 'int64'],
  int64: ['int32', 'int64'],
  float32: ['float16', 'float32', 'float64'],
};

/** Imports a folder of .npy files, with or without a meta.json. */
export async function importNpyFolder(context: ImportContext): Promise<DatasetFacts> {
  const { source: folder, signal } = context;
  const names = join(folder, 'names.txt');
  const facts = await importArrays(context, {
    source: `npy folder ${basename(folder)}`,
    has: (name) => existsSync(join(folder, `${name}.npy`)),
    pathOf: (name) => `${name}.npy`,
    open: (name) => openNpyFile(join(folder, `${name}.npy`), signal),
    meta: await readMeta(context),
  });
  if (existsSync(names)) await copyNames(context, names);
  return facts;
}

/** Imports one .npz file with the arrays of a folder as members. */
export async function importNpzFile(context: ImportContext): Promise<DatasetFacts> {
  const { source: path, signal } = context;
  const file = basename(path);
  const members = await readZipDirectory(path);
  return await importArrays(context, {
    source: `npz file ${file}`,
    has: (name) => members.has(`${name}.npy`),
    pathOf: (name) => `${file}/${name}.npy`,
    open: (name) => {
      const member = members.get(`${name}.npy`);
      if (member === undefined) throw badFile(`${file}/${name}.npy`, 'is missing');
      const chunks = readZipMember(path, member, signal);
      return openNpyStream(`${file}/${name}.npy`, member.bytes, chunks, signal);
    },
    meta: null,
  });
}

async function importArrays(context: ImportContext, set: ArraySet): Promise<DatasetFacts> {
  const { problems, signal } = context;
  const headers = new Map<ArrayName, NpyHeader>();
  const sums = new Map<ArrayName, string>();
  const labels = new LabelRange();
  const progress = new ByteProgress(context, arrayNames.filter(set.has).length);
  for (const name of arrayNames) {
    if (!set.has(name)) {
      if (!optionalArrays.has(name)) problems.add(set.pathOf(name), 'is missing');
      continue;
    }
    try {
      const source = await set.open(name);
      try {
        checkHeader(name, source);
        headers.set(name, source.header);
        progress.begin(source);
        const sum = await copyArray(context, name, source, (values) => {
          if (name === 'labels') labels.see(values);
          progress.advance(values.length);
        });
        sums.set(name, sum);
      } finally {
        await source.close();
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ImportFailure)) throw error;
      problems.addAll(error.problems, error.problemCount);
    }
  }
  checkCounts(context, set, headers);
  checkMeta(context, set, headers);
  checkSums(context, set, sums);
  problems.throwIfAny();
  return {
    numClasses: Math.max(set.meta?.counts.get('num_classes') ?? 0, labels.largest + 1),
    numFeatures: headers.get('features')?.shape[1] ?? 0,
    undirected: set.meta?.undirected ?? false,
    classNames: set.meta?.classNames ?? null,
    source: set.source,
  };
}

/** Maps the bytes read to progress; every array counts alike, since only open ones have a size. */
class ByteProgress {
  readonly #context: ImportContext;
  readonly #arrays: number;
  #index = -1;
  #path = '';
  #total = 0;
  #done = 0;

  constructor(context: ImportContext, arrays: number) {
    this.#context = context;
    this.#arrays = arrays;
  }

  begin(source: NpySource): void {
    this.#index += 1;
    this.#path = source.path;
    this.#total = elementCount(source.header.shape);
    this.#done = 0;
    this.advance(0);
  }

  advance(elements: number): void {
    this.#done += elements;
    const part = this.#total === 0 ? 1 : this.#done / this.#total;
    const counts = `${formatCount(this.#done)} of ${formatCount(this.#total)} elements`;
    this.#context.progress((this.#index + part) / this.#arrays, `reading ${this.#path}: ${counts}`);
  }
}

function checkHeader(name: ArrayName, source: NpySource): void {
  const { type, shape } = source.header;
  const accepted = acceptedTypes[arrayTypes[name]];
  if (!accepted.includes(type)) {
    throw badFile(source.path, `has dtype ${type}, expected ${accepted.join(' or ')}`);
  }
  const axes = name === 'features' ? 2 : 1;
  if (shape.length !== axes) {
    const expected = axes === 2 ? '[nodes, features]' : 'one axis';
    throw badFile(source.path, `has shape (${shape.join(', ')}), expected ${expected}`);
  }
}

/** Answers the SHA-256 of the source's elements. */
async function copyArray(
  context: ImportContext,
  name: ArrayName,
  source: NpySource,
  onBlock: (written: NpyValues) => void,
): Promise<string> {
  const { writer } = context;
  const { type, shape } = source.header;
  const columns = shape[1] ?? 0;
  const dtype = context.featureDtype ?? (type === 'float16' ? type : 'float32');
  const isFeatures = name === 'features';
  const target = isFeatures ? await writer.beginFeatures(columns, dtype) : await writer.begin(name);
  const targetType = isFeatures ? dtype : arrayTypes[name];
  const convert = converterOf(type, targetType);
  const hash = type === targetType ? null : createHash('sha256');
  const outside = new OutOfRange();
  for await (const block of source.blocks()) {
    hash?.update(block);
    const values = convert(block, (index, value) => outside.see(index, value));
    await target.append(values);
    outside.advance(values.length);
    onBlock(values);
  }
  const written = await writer.end(name);
  if (outside.count === 0) return hash?.digest('hex') ?? written.sha256;
  throw badFile(source.path, outside.describe(isFeatures ? columns : null));
}

/** Elements that the type of a dataset has no room for: the first one, and how many. */
class OutOfRange {
  count = 0;
  #done = 0;
  #at = 0;
  #value: number | bigint = 0;

  see(index: number, value: number | bigint): void {
    if (this.count === 0) {
      this.#at = this.#done + index;
      this.#value = value;
    }
    this.count += 1;
  }

  advance(elements: number): void {
    this.#done += elements;
  }

  /** `columns` is null for a vector, which is one of int32. */
  describe(columns: number | null): string {
    const more = this.count > 1 ? ` and ${formatCount(this.count - 1)} more` : '';
    if (columns === null) return `has ${this.#value} at index ${this.#at}, beyond int32${more}`;
    const place = `row ${Math.floor(this.#at / columns)}, column ${this.#at % columns}`;
    return (
      `has ${this.#value} at ${place}${more}, beyond ${float16Max}, the largest float16: ` +
      'import the features as float32'
    );
  }
}

type OnOutOfRange = (index: number, value: number | bigint) => void;
type Converter = (block: NpyValues, onOutOfRange: OnOutOfRange) => NpyValues;

function converterOf(from: NpyType, to: NpyType): Converter {
  if (from === to) return (block) => block;
  if (to === 'float16') {
    return (block, outside) => roundToFloat16(block as Float32Array | Float64Array, outside);
  }
  if (from === 'float16') {
    const widenFloat16 = float16Widener();
    return (block) => widenFloat16(block as Uint16Array);
  }
  if (from === 'float64') return (block) => new Float32Array(block as Float64Array);
  return from === 'int32' ? widen : narrow;
}

/** int32 to int64, without a BigInt per element. */
function widen(block: NpyValues): BigInt64Array {
  const values = block as Int32Array;
  const words = new Int32Array(2 * values.length);
  for (const [index, value] of values.entries()) {
    words[2 * index] = value;
    words[2 * index + 1] = value >> 31;
  }
  return new BigInt64Array(words.buffer);
}

function narrow(block: NpyValues, onOutOfRange: OnOutOfRange): Int32Array {
  const words = new Int32Array(block.buffer, block.byteOffset, 2 * block.length);
  const values = new Int32Array(block.length);
  for (let index = 0; index < values.length; index += 1) {
    const low = words[2 * index] ?? 0;
    if (words[2 * index + 1] !== low >> 31) {
      onOutOfRange(index, (block as BigInt64Array)[index] ?? 0n);
    }
    values[index] = low;
  }
  return values;
}

class LabelRange {
  largest = -1;

  see(values: NpyValues): void {
    for (const value of values as Int32Array) if (value > this.largest) this.largest = value;
  }
}

/** The lengths of the arrays against each other; what their elements say is the validator's. */
function checkCounts(
  context: ImportContext,
  set: ArraySet,
  headers: ReadonlyMap<ArrayName, NpyHeader>,
): void {
  const rows = (name: ArrayName) => headers.get(name)?.shape[0];
  const expect = (name: ArrayName, count: number, because: string) => {
    const found = rows(name);
    if (found === undefined || found === count) return;
    const lengths = `has ${formatCount(found)} rows, expected ${formatCount(count)}`;
    context.problems.add(set.pathOf(name), `${lengths} because ${because}`);
  };
  const indptrRows = rows('indptr');
  if (indptrRows !== undefined) {
    const nodes = indptrRows - 1;
    const because = `${set.pathOf('indptr')} has ${formatCount(indptrRows)} rows`;
    if (nodes < 1) context.problems.add(set.pathOf('indptr'), 'has no node');
    expect('labels', nodes, because);
    expect('features', nodes, because);
  }
  const edges = rows('indices');
  if (edges !== undefined) {
    expect('edge_weights', edges, `${set.pathOf('indices')} has ${formatCount(edges)}`);
  }
}

/** The counts of meta.json against what was read. */
function checkMeta(
  context: ImportContext,
  set: ArraySet,
  headers: ReadonlyMap<ArrayName, NpyHeader>,
): void {
  if (set.meta === null) return;
  const rowsOf: readonly [string, ArrayName, number][] = [
    ['num_nodes', 'labels', 0],
    ['num_edges', 'indices', 0],
    ['num_features', 'features', 1],
    ['split.train', 'train', 0],
    ['split.val', 'val', 0],
    ['split.test', 'test', 0],
  ];
  for (const [key, name, axis] of rowsOf) {
    const promised = set.meta.counts.get(key);
    const found = headers.get(name)?.shape[axis];
    if (promised === undefined || found === undefined || promised === found) continue;
    const counts = `${formatCount(promised)}, but ${set.pathOf(name)} has ${formatCount(found)}`;
    context.problems.add('meta.json', `says ${key} is ${counts}`);
  }
}

/** The checksums of meta.json against those of the arrays beside it. */
function checkSums(
  { problems }: ImportContext,
  set: ArraySet,
  sums: ReadonlyMap<ArrayName, string>,
): void {
  for (const [name, sum] of sums) {
    const promised = set.meta?.sha256.get(name);
    if (promised === undefined || promised === sum) continue;
    const found = `the one of the array is ${sum}`;
    problems.add(`${name}.npy`, `was changed: meta.json has SHA-256 ${promised}, ${found}`);
  }
}

async function readMeta(context: ImportContext): Promise<Meta | null> {
  const path = join(context.source, 'meta.json');
  if (!existsSync(path)) return null;
  let parsed: unknown;
  try {
    parsed = JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    throw badFile('meta.json', `is not JSON: ${messageOf(error)}`);
  }
  const root = fieldsOf(parsed);
  const split = fieldsOf(root.get('split'));
  const numbers: [string, unknown][] = [
    ...root,
    ...[...split].map(([key, value]): [string, unknown] => [`split.${key}`, value]),
  ];
  const classNames = root.get('class_names');
  const isNames = (names: unknown): names is string[] =>
    Array.isArray(names) && names.every((name) => typeof name === 'string');
  return {
    counts: new Map(numbers.filter((entry): entry is [string, number] => isCount(entry[1]))),
    undirected: root.get('undirected') === true,
    classNames: isNames(classNames) ? classNames : null,
    sha256: new Map(
      [...fieldsOf(root.get('sha256'))].filter(
        (entry): entry is [string, string] => typeof entry[1] === 'string',
      ),
    ),
  };
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function fieldsOf(value: unknown): ReadonlyMap<string, unknown> {
  return new Map(typeof value === 'object' && value !== null ? Object.entries(value) : []);
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
