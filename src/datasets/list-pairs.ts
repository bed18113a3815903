import { basename } from 'node:path';
import { writeFileAtomic } from '../base/atomic-file.ts';
import { messageOf } from '../base/errors.ts';
import type { Problem } from '../records/dataset-record.ts';
import { fileLines } from './byte-streams.ts';
import { firstNames, secondNames } from './edge-columns.ts';
import { openEdgeList } from './edge-list-rows.ts';
import { type NativeIds, NodeIds } from './node-ids.ts';
import { formatNpyHeader, npyIntegers, openNpyFile } from './npy.ts';
import { NumberList } from './number-list.ts';
import { ParquetFile } from './parquet-reader.ts';
import { ImportFailure } from './problems.ts';
import type { Field } from './table-columns.ts';

/** A user's pairs of nodes, read, checked and written as native code wants them. */

export interface PairsOptions {
  /** A .npy of integers, [2, pairs] or [pairs, 2], a Parquet file, or text with a pair a line. */
  readonly file: string;
  /** What the dataset calls its nodes, a line each; null: it has no names. */
  readonly names: string | null;
  readonly numNodes: number;
  /** Receives a .npy of uint32, [pairs, 2], in their order. */
  readonly output: string;
}

export interface PairsFound {
  readonly pairs: number;
  /** Then nothing was written. */
  readonly problems: readonly Problem[];
}

const problemsMax = 20;

/** Rejects with the system's error where the pairs cannot be written. */
export async function listPairs(options: PairsOptions, native: NativeIds): Promise<PairsFound> {
  const { file, names, numNodes, output } = options;
  const problems: Problem[] = [];
  let ends: Uint32Array = new Uint32Array();
  try {
    const nodes = new KnownNodes(
      names === null ? null : await NodeIds.named(native, fileLines(names)),
      numNodes,
    );
    const found = new Ends(file, nodes, problems);
    if (file.endsWith('.npy')) await readArray(file, found);
    else if (file.endsWith('.parquet')) await readParquet(file, found);
    else await readText(file, found);
    ends = found.all();
  } catch (error) {
    if (error instanceof ImportFailure) problems.push(...error.problems);
    else problems.push({ path: file, description: `cannot be read: ${messageOf(error)}` });
  }
  if (ends.length === 0 && problems.length === 0) {
    problems.push({ path: file, description: 'has no pairs' });
  }
  const pairs = ends.length / 2;
  if (problems.length > 0) return { pairs, problems: problems.slice(0, problemsMax) };
  const header = formatNpyHeader({ type: 'uint32', shape: [pairs, 2] });
  await writeFileAtomic(output, [header, new Uint8Array(ends.buffer, ends.byteOffset, 8 * pairs)]);
  return { pairs, problems };
}

/** What a pair may name: a node's id, or its number where that is no id. */
class KnownNodes {
  readonly #ids: NodeIds | null;
  readonly #numNodes: number;

  constructor(ids: NodeIds | null, numNodes: number) {
    this.#ids = ids;
    this.#numNodes = numNodes;
  }

  /** Undefined where there is none. */
  of(end: Field | bigint): number | undefined {
    // An array has numbers alone, which are no ids.
    if (typeof end === 'bigint') return this.#inGraph(Number(end));
    const text = typeof end === 'string' ? end.trim() : String(end);
    return this.#ids?.numberOf(text) ?? this.#inGraph(/^\d{1,10}$/.test(text) ? Number(text) : -1);
  }

  get expected(): string {
    const what = this.#ids === null ? 'a node, an integer' : 'the id of a node, or its number';
    return `expected ${what} from 0 to ${this.#numNodes - 1}`;
  }

  #inGraph(node: number): number | undefined {
    return Number.isInteger(node) && node >= 0 && node < this.#numNodes ? node : undefined;
  }
}

/** Sources and destinations in turn. */
class Ends {
  readonly #file: string;
  readonly #nodes: KnownNodes;
  readonly #problems: Problem[];
  readonly #list = new NumberList((capacity) => new Uint32Array(capacity));

  constructor(file: string, nodes: KnownNodes, problems: Problem[]) {
    this.#file = file;
    this.#nodes = nodes;
    this.#problems = problems;
  }

  take(end: Field | bigint, place: () => string): void {
    const node = this.#nodes.of(end);
    if (node !== undefined) this.#list.push(node);
    else this.refuse(place(), `${shown(end)}: ${this.#nodes.expected}`);
  }

  refuse(place: string, description: string): void {
    if (this.#problems.length >= problemsMax) return;
    this.#problems.push({ path: this.#file, description: `${place}: ${description}` });
  }

  isKnown(end: Field): boolean {
    return this.#nodes.of(end) !== undefined;
  }

  all(): Uint32Array {
    return this.#list.toArray();
  }
}

function shown(end: Field | bigint): string {
  return typeof end === 'string' ? JSON.stringify(end.slice(0, 40)) : String(end);
}

async function readArray(file: string, ends: Ends): Promise<void> {
  const source = await openNpyFile(file, new AbortController().signal);
  const { type, shape } = source.header;
  const [rows = 0, columns = 0] = shape;
  const isPairs = shape.length === 2 && (rows === 2 || columns === 2);
  if (!isPairs || !npyIntegers.some((each) => each === type)) {
    await source.close();
    const found = `${type} of shape (${shape.join(', ')})`;
    throw new Error(`${found}; expected integers of shape [2, pairs] or [pairs, 2]`);
  }
  const values = new BigInt64Array(rows * columns);
  let at = 0;
  for await (const block of source.blocks()) {
    for (const id of block) values[at++] = BigInt(id);
  }
  // [2, 2] is two sources, then their destinations, as an import has it.
  const isByEnd = rows === 2;
  const pairs = isByEnd ? columns : rows;
  for (let pair = 0; pair < pairs; pair += 1) {
    const places = isByEnd ? [pair, pairs + pair] : [2 * pair, 2 * pair + 1];
    for (const place of places) ends.take(values[place] ?? -1n, () => `pair ${pair}`);
  }
}

async function readParquet(file: string, ends: Ends): Promise<void> {
  const parquet = await ParquetFile.open(file, new AbortController().signal);
  const { columns } = parquet;
  const [source, target] = endsOf(columns);
  if (columns.length < 2) {
    throw new Error(`has ${columns.length} columns; expected two, a source and a destination`);
  }
  for await (const rows of parquet.rows()) {
    for (const { line, fields } of rows) {
      for (const at of [source, target]) ends.take(fields[at] ?? '', () => `row ${line}`);
    }
  }
}

/** Columns by their names, else the first two. */
function endsOf(columns: readonly string[]): readonly [number, number] {
  const names = columns.map((name) => name.toLowerCase());
  const source = names.findIndex((name) => firstNames.includes(name));
  const target = names.findIndex((name) => secondNames.includes(name));
  return source < 0 || target < 0 ? [0, 1] : [source, target];
}

async function readText(file: string, ends: Ends): Promise<void> {
  const list = await openEdgeList({ signal: new AbortController().signal }, file);
  const { source, target } = list.ends;
  let isFirst = true;
  for await (const rows of list.rows()) {
    for (const { line, fields, problem } of rows) {
      const place = () => `${basename(file)}:${line}`;
      const isHeader = isFirst && !fields.some((field) => ends.isKnown(field));
      isFirst = false;
      // Names of columns that are no nodes.
      if (isHeader && fields.length >= 2 && !fields.some((field) => /^[\d-]/.test(field))) continue;
      if (problem !== null) ends.refuse(place(), problem);
      else if (fields.length < 2) ends.refuse(place(), 'expected two nodes');
      else for (const at of [source, target]) ends.take(fields[at] ?? '', place);
    }
  }
}
