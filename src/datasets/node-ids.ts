import { NumberList } from './number-list.ts';
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

/**
 * What a source calls its nodes, and their numbers: places in the source. Ids that are these
 * numbers themselves (0, 1, 2 and so on) take no memory; of others each takes its UTF-8 text and
 * about 25 bytes.
 */
export class NodeIds {
  #size = 0;
  /** Null as long as each id is its number. */
  #texts: TextNumbers | null = null;

  get size(): number {
    return this.#size;
  }

  /** Whether each id is its number. */
  get areCounted(): boolean {
    return this.#texts === null;
  }

  /** Numbers from 0 to before `size`. */
  static counted(size: number): NodeIds {
    const ids = new NodeIds();
    ids.#size = size;
    return ids;
  }

  /** The number of a new node; null where the id was there before. REQUIRES: no idProblem. */
  add(id: string): number | null {
    if (this.#texts === null && id !== String(this.#size)) {
      this.#texts = new TextNumbers();
      for (let node = 0; node < this.#size; node += 1) this.#texts.add(String(node));
    }
    if (this.#texts !== null && !this.#texts.add(id)) return null;
    this.#size += 1;
    return this.#size - 1;
  }

  /** Undefined where no node has the id. */
  numberOf(id: string | number): number | undefined {
    if (this.#texts !== null) return this.#texts.numberOf(String(id));
    const node = typeof id === 'number' ? id : countedId(id);
    return Number.isInteger(node) && node >= 0 && node < this.#size ? node : undefined;
  }

  /** The id of a node. */
  textOf(node: number): string {
    return this.#texts?.textOf(node) ?? String(node);
  }

  /** The ids of the first nodes. */
  first(count: number): readonly string[] {
    const nodes = Array.from({ length: Math.min(count, this.#size) }, (_, node) => node);
    return nodes.map((node) => this.textOf(node));
  }

  /** One a line, as UTF-8, in pieces; null where each id is its number. */
  lines(): Generator<Uint8Array> | null {
    return this.#texts?.lines() ?? null;
  }
}

/** As `String` writes it, so that 01 is no other word for 1. */
function countedId(id: string): number {
  return /^(0|[1-9]\d{0,9})$/.test(id) ? Number(id) : Number.NaN;
}

const chunkBytes = 1 << 20;
const lineFeed = 0x0a;
const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

interface Chunk {
  readonly bytes: Uint8Array;
  length: number;
}

/**
 * Texts by the order in which they came: a hash table of numbers whose texts stand in chunks
 * outside of the heap. A Map takes four times as much, and ends at 16.7 million.
 */
class TextNumbers {
  /** Texts, each with a line feed behind it; none lies in two chunks. */
  readonly #chunks: Chunk[] = [];
  /** Place of each text: its chunk times `chunkBytes`, plus the offset in the chunk. */
  readonly #places = new NumberList((capacity) => new Float64Array(capacity));
  readonly #hashes = new NumberList((capacity) => new Uint32Array(capacity));
  /** A text's number + 1, or 0: nothing; a power of two of them, at most three quarters in use. */
  #slots = new Uint32Array(2048);
  /** The text that is looked for, as UTF-8. */
  readonly #sought = new Uint8Array(3 * idCharsMax);
  #soughtBytes = 0;

  /** False where it was there before. */
  add(text: string): boolean {
    const hash = this.#encode(text);
    const slot = this.#slotOf(hash);
    if (this.#slots[slot] !== 0) return false;
    this.#places.push(this.#store());
    this.#hashes.push(hash);
    this.#slots[slot] = this.#hashes.length;
    if (4 * this.#hashes.length > 3 * this.#slots.length) this.#grow();
    return true;
  }

  numberOf(text: string): number | undefined {
    if (text.length > idCharsMax) return undefined;
    const found = this.#slots[this.#slotOf(this.#encode(text))] ?? 0;
    return found === 0 ? undefined : found - 1;
  }

  textOf(number: number): string {
    const place = this.#places.at(number);
    const bytes = this.#chunks[Math.floor(place / chunkBytes)]?.bytes ?? new Uint8Array();
    const begin = place % chunkBytes;
    return decoder.decode(bytes.subarray(begin, bytes.indexOf(lineFeed, begin)));
  }

  *lines(): Generator<Uint8Array> {
    for (const { bytes, length } of this.#chunks) yield bytes.subarray(0, length);
  }

  /** Makes a text the one that is looked for; its hash (FNV-1a, and mixed for the low bits). */
  #encode(text: string): number {
    const sought = this.#sought;
    let length = text.length;
    for (let at = 0; at < length; at += 1) {
      const code = text.charCodeAt(at);
      if (code >= 0x80) {
        length = encoder.encodeInto(text, sought).written;
        break;
      }
      sought[at] = code;
    }
    this.#soughtBytes = length;
    let hash = 0x811c9dc5;
    for (let at = 0; at < length; at += 1) {
      hash = Math.imul(hash ^ (sought[at] ?? 0), 0x01000193);
    }
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
    return (hash ^ (hash >>> 13)) >>> 0;
  }

  /** Where the sought text is, or would be. */
  #slotOf(hash: number): number {
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    for (;;) {
      const found = this.#slots[slot] ?? 0;
      if (found === 0) return slot;
      if (this.#hashes.at(found - 1) === hash && this.#isSought(found - 1)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #isSought(number: number): boolean {
    const place = this.#places.at(number);
    const bytes = this.#chunks[Math.floor(place / chunkBytes)]?.bytes;
    if (bytes === undefined) return false;
    const begin = place % chunkBytes;
    for (let at = 0; at < this.#soughtBytes; at += 1) {
      if (bytes[begin + at] !== this.#sought[at]) return false;
    }
    return bytes[begin + this.#soughtBytes] === lineFeed;
  }

  /** Puts the sought text behind the others; its place. */
  #store(): number {
    const needed = this.#soughtBytes + 1;
    let chunk = this.#chunks.at(-1);
    if (chunk === undefined || chunk.length + needed > chunkBytes) {
      chunk = { bytes: new Uint8Array(chunkBytes), length: 0 };
      this.#chunks.push(chunk);
    }
    const begin = chunk.length;
    chunk.bytes.set(this.#sought.subarray(0, this.#soughtBytes), begin);
    chunk.bytes[begin + this.#soughtBytes] = lineFeed;
    chunk.length += needed;
    return (this.#chunks.length - 1) * chunkBytes + begin;
  }

  #grow(): void {
    const slots = new Uint32Array(2 * this.#slots.length);
    const mask = slots.length - 1;
    for (let number = 0; number < this.#hashes.length; number += 1) {
      let slot = this.#hashes.at(number) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = number + 1;
    }
    this.#slots = slots;
  }
}
