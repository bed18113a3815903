import { writeFileAtomic } from '../base/atomic-file.ts';
import { messageOf } from '../base/errors.ts';
import { fileLines } from '../datasets/byte-streams.ts';
import { idCharsMax } from '../datasets/node-ids.ts';
import { formatNpyHeader, npyIntegers, openNpyFile } from '../datasets/npy.ts';
import { ImportFailure } from '../datasets/problems.ts';
import type { Problem } from '../records/dataset-record.ts';

/** A user's list of nodes, read, checked and written as native code wants it. */

export interface TargetsOptions {
  /** A .npy vector of integers, or text with an id a line; empty: `ids` are the list. */
  readonly file: string;
  readonly ids: readonly string[];
  /** What the dataset calls its nodes, a line each; null: it has no names. */
  readonly names: string | null;
  readonly numNodes: number;
  /** Receives a .npy of uint32, ascending, each once. */
  readonly output: string;
}

export interface TargetsFound {
  readonly nodes: number;
  /** Then nothing was written. */
  readonly problems: readonly Problem[];
}

const problemsMax = 20;
const lineMax = idCharsMax;

/** Rejects with the system's error where the list cannot be written. */
export async function listTargets(options: TargetsOptions): Promise<TargetsFound> {
  const { file, ids, names, numNodes, output } = options;
  const wanted = new NodeBits(numNodes);
  const problems: Problem[] = [];
  const take = (id: bigint | number | null, place: string, shown: string) => {
    if (id !== null && id >= 0 && id < numNodes) wanted.add(Number(id));
    else if (problems.length < problemsMax) {
      const expected = names === null ? 'a node, an integer' : 'the id of a node, or its number';
      const description = `${place}: ${shown}: expected ${expected} from 0 to ${numNodes - 1}`;
      problems.push({ path: file, description });
    }
  };
  try {
    const given = file === '' ? itemsOf(ids) : linesOf(file);
    if (file.endsWith('.npy')) await readArray(file, take);
    else if (names === null) {
      for await (const { text, place } of given) take(numberOf(text), place, quoted(text));
    } else await readNames(given, names, take);
  } catch (error) {
    if (error instanceof ImportFailure) problems.push(...error.problems);
    else problems.push({ path: file, description: `cannot be read: ${messageOf(error)}` });
  }
  if (wanted.count === 0 && problems.length === 0) {
    problems.push({ path: file, description: 'lists no node' });
  }
  if (problems.length === 0) await writeFileAtomic(output, wanted.npy());
  return { nodes: wanted.count, problems };
}

type Take = (id: bigint | number | null, place: string, shown: string) => void;

async function readArray(file: string, take: Take): Promise<void> {
  const source = await openNpyFile(file, new AbortController().signal);
  const { type, shape } = source.header;
  if (shape.length !== 1 || !npyIntegers.some((each) => each === type)) {
    await source.close();
    const found = `${type} of shape (${shape.join(', ')})`;
    throw new Error(`${found}; expected a vector of integers`);
  }
  let at = 0;
  for await (const block of source.blocks()) {
    for (const id of block) {
      take(id, `[${at}]`, String(id));
      at += 1;
    }
  }
}

/** One of a list, and where in it. */
interface Given {
  readonly text: string;
  readonly place: string;
}

/** Lines that are not empty, without what is around them. */
async function* linesOf(file: string): AsyncGenerator<Given> {
  let line = 0;
  for await (const text of fileLines(file, lineMax)) {
    line += 1;
    const trimmed = text.trim();
    if (trimmed !== '') yield { text: trimmed, place: `line ${line}` };
  }
}

async function* itemsOf(ids: readonly string[]): AsyncGenerator<Given> {
  for (const [at, id] of ids.entries()) yield { text: id.trim(), place: `[${at}]` };
}

/** What the dataset calls a node; a number that is no name of any is a node's number. */
async function readNames(given: AsyncIterable<Given>, names: string, take: Take) {
  const wanted = new Map<string, string>();
  for await (const { text, place } of given) if (!wanted.has(text)) wanted.set(text, place);
  let node = 0;
  for await (const name of fileLines(names)) {
    const trimmed = name.trim();
    const place = wanted.get(trimmed);
    if (place !== undefined) take(node, place, quoted(trimmed));
    wanted.delete(trimmed);
    node += 1;
  }
  for (const [text, place] of wanted) take(numberOf(text), place, quoted(text));
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 40));
}

function numberOf(text: string): number | null {
  return /^[0-9]{1,10}$/.test(text) ? Number(text) : null;
}

/** A bit for each node of the graph: sorted and each once without a sort. */
class NodeBits {
  readonly #bits: Uint8Array;
  #count = 0;

  constructor(numNodes: number) {
    this.#bits = new Uint8Array(Math.ceil(numNodes / 8));
  }

  get count(): number {
    return this.#count;
  }

  add(node: number): void {
    const at = Math.floor(node / 8);
    const bit = 1 << (node % 8);
    const before = this.#bits[at] ?? 0;
    if ((before & bit) !== 0) return;
    this.#bits[at] = before | bit;
    this.#count += 1;
  }

  npy(): readonly Uint8Array[] {
    const nodes = new Uint32Array(this.#count);
    let next = 0;
    for (const [at, byte] of this.#bits.entries()) {
      for (let bit = 0; byte >> bit > 0; bit += 1) {
        if ((byte >> bit) & 1) {
          nodes[next] = 8 * at + bit;
          next += 1;
        }
      }
    }
    const header = formatNpyHeader({ type: 'uint32', shape: [nodes.length] });
    return [header, new Uint8Array(nodes.buffer)];
  }
}
