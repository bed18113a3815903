import type { CoreAddon, TextIdsHandle } from '../native/contract.ts';
import { formatCount } from './problems.ts';

/** Longer ones are no ids, but something else in their column. */
export const idCharsMax = 1024;

/** What is wrong with a text as an id, to follow it in a message; null where nothing is. */
export function idProblem(id: string): string | null {
  if (id.length > idCharsMax) {
    return `of ${formatCount(id.length)} characters, expected at most ${formatCount(idCharsMax)}`;
  }
  return /[\r\n]/.test(id) ? 'with a line break' : null;
}

/** Texts by their numbers, in native code: so many of them take little memory. */
export type NativeIds = Pick<
  CoreAddon,
  'textIdsOpen' | 'textIdsAdd' | 'textIdsAddAll' | 'textIdsFind' | 'textIdsAt' | 'textIdsLines'
>;

/** Numbers that become texts at once. */
const numbersAtOnce = 1 << 16;

/**
 * What a source calls its nodes, and their numbers: places in the source. Ids that are these
 * numbers themselves (0, 1, 2 and so on) take no memory; of others each takes its UTF-8 text and
 * about 25 bytes.
 */
export class NodeIds {
  readonly #native: NativeIds;
  #size = 0;
  /** Null as long as each id is its number. */
  #texts: TextIdsHandle | null = null;

  constructor(native: NativeIds) {
    this.#native = native;
  }

  get size(): number {
    return this.#size;
  }

  /** Null as long as each id is its number. */
  get texts(): TextIdsHandle | null {
    return this.#texts;
  }

  /** Whether each id is its number. */
  get areCounted(): boolean {
    return this.#texts === null;
  }

  /** Numbers from 0 to before `size`. */
  static counted(native: NativeIds, size: number): NodeIds {
    const ids = new NodeIds(native);
    ids.#size = size;
    return ids;
  }

  /** The nodes that have these names, each another, as imports see to it. */
  static async named(native: NativeIds, names: AsyncIterable<string>): Promise<NodeIds> {
    const ids = new NodeIds(native);
    for await (const name of names) {
      // The nodes behind it would have the names of others.
      if (ids.add(name) === null) throw new Error(`two nodes are called ${JSON.stringify(name)}`);
    }
    return ids;
  }

  /** The number of a new node; null where the id was there before. REQUIRES: no idProblem. */
  add(id: string): number | null {
    if (this.#texts !== null || id !== String(this.#size)) {
      if (!this.#native.textIdsAdd(this.#asTexts(), id)) return null;
    }
    this.#size += 1;
    return this.#size - 1;
  }

  /** Adds new nodes by whole numbers, up to one that was there before; how many. */
  addWholes(ids: Uint32Array): number {
    let added = 0;
    if (this.#texts === null) {
      while (added < ids.length && ids[added] === this.#size + added) added += 1;
      this.#size += added;
    }
    for (let at = added; at < ids.length; at += numbersAtOnce) {
      const some = ids.subarray(at, at + numbersAtOnce);
      const more = this.addTexts(some.join('\n'));
      added += more;
      if (more < some.length) break;
    }
    return added;
  }

  /** Adds new nodes by texts, one a line, up to one that was there before or has an idProblem. */
  addTexts(ids: string): number {
    const added = this.#native.textIdsAddAll(this.#asTexts(), ids);
    this.#size += added;
    return added;
  }

  #asTexts(): TextIdsHandle {
    if (this.#texts !== null) return this.#texts;
    const texts = this.#native.textIdsOpen();
    for (let node = 0; node < this.#size; node += numbersAtOnce) {
      const length = Math.min(numbersAtOnce, this.#size - node);
      const numbers = Uint32Array.from({ length }, (_, at) => node + at);
      this.#native.textIdsAddAll(texts, numbers.join('\n'));
    }
    this.#texts = texts;
    return texts;
  }

  /** Undefined where no node has the id. */
  numberOf(id: string | number): number | undefined {
    if (this.#texts !== null) {
      return this.#native.textIdsFind(this.#texts, String(id)) ?? undefined;
    }
    const node = typeof id === 'number' ? id : countedId(id);
    return Number.isInteger(node) && node >= 0 && node < this.#size ? node : undefined;
  }

  /** The id of a node. */
  textOf(node: number): string {
    return this.#texts === null ? String(node) : this.#native.textIdsAt(this.#texts, node);
  }

  /** The ids of the first nodes. */
  first(count: number): readonly string[] {
    const nodes = Array.from({ length: Math.min(count, this.#size) }, (_, node) => node);
    return nodes.map((node) => this.textOf(node));
  }

  /** One a line, as UTF-8, in pieces; null where each id is its number. */
  lines(): Generator<Uint8Array> | null {
    return this.#texts === null ? null : linesOf(this.#native, this.#texts);
  }
}

function* linesOf(native: NativeIds, texts: TextIdsHandle): Generator<Uint8Array> {
  for (let piece = 0; ; piece += 1) {
    const lines = native.textIdsLines(texts, piece);
    if (lines === null) return;
    yield lines;
  }
}

/** As `String` writes it, so that 01 is no other word for 1. */
function countedId(id: string): number {
  return /^(0|[1-9]\d{0,9})$/.test(id) ? Number(id) : Number.NaN;
}
