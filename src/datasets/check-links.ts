import { join } from 'node:path';
import type { DatasetLinks } from '../records/dataset-record.ts';
import type { ImportContext } from './import-context.ts';
import { openNpyFile } from './npy.ts';
import { formatCount } from './problems.ts';

/** What links of several sides, and the graph, have in common: what tells a model its test. */

export const linkSides = ['train', 'val', 'test'] as const;
export type LinkSide = (typeof linkSides)[number];

/** Pairs, or the negatives of each, row after row. */
export interface LinkArray {
  /** For messages. */
  readonly path: string;
  readonly columns: number;
  readonly values: Uint32Array;
}

type Pairs = Readonly<Record<LinkSide, LinkArray>>;

/**
 * Adds a problem for each side that has a link of another side, and a notice where links to be
 * judged by are edges of the graph. A reverse is the same link where the graph has both directions
 * of each edge.
 */
export async function checkedPairs(
  context: ImportContext,
  pairs: Pairs,
  isOneType: boolean,
): Promise<DatasetLinks['in_graph']> {
  const { problems, notices } = context;
  const { found, ...graph } = await comparedWithGraph(context, pairs);
  // Between two types equal ids are other nodes, so that a link has no reverse.
  const symmetric = graph.symmetric && isOneType;
  for (const [one, other] of [
    ['train', 'val'],
    ['train', 'test'],
    ['val', 'test'],
  ] as const) {
    const problem = sharedProblem(pairs[one], pairs[other], symmetric);
    if (problem !== null) problems.add(pairs[other].path, problem);
  }
  for (const side of ['val', 'test'] as const) {
    const links = pairs[side].values.length / 2;
    const share = `${((100 * found[side]) / links).toPrecision(3)} %`;
    if (found[side] === 0) continue;
    notices.add(
      `${formatCount(found[side])} of the ${formatCount(links)} links in ${pairs[side].path} ` +
        `(${share}) are edges of the graph, so that messages tell a model what it is asked: jobs ` +
        'that learn links need links.allow_overlap, or a graph without them',
    );
  }
  return found;
}

/** The first link of `other` that `one` has, too; null: there is none. */
function sharedProblem(one: LinkArray, other: LinkArray, symmetric: boolean): string | null {
  const known = keysOf(one, symmetric).sort();
  const keys = keysOf(other, symmetric);
  let first = -1;
  let count = 0;
  for (const [at, key] of keys.entries()) {
    if (!has(known, key)) continue;
    if (first < 0) first = at;
    count += 1;
  }
  if (first < 0) return null;
  const [source, destination] = other.values.subarray(2 * first, 2 * first + 2);
  const others = count === 2 ? 'is 1 other' : `are ${formatCount(count - 1)} others`;
  const more = count === 1 ? '' : `, and so ${others}`;
  const reverse = symmetric ? ', or its reverse' : '';
  return `link ${first}, ${source} to ${destination}${reverse}, is in ${one.path}, too${more}`;
}

/** A number for each link; of both directions one where `symmetric`. */
function keysOf({ values }: LinkArray, symmetric: boolean): BigUint64Array {
  const keys = new BigUint64Array(values.length / 2);
  for (let pair = 0; pair < keys.length; pair += 1) {
    const [source = 0, destination = 0] = [values[2 * pair], values[2 * pair + 1]];
    const turns = symmetric && source > destination;
    keys[pair] = turns ? keyOf(destination, source) : keyOf(source, destination);
  }
  return keys;
}

function keyOf(high: number, low: number): bigint {
  return (BigInt(high) << 32n) | BigInt(low);
}

function has(sorted: BigUint64Array, key: bigint): boolean {
  let from = 0;
  let to = sorted.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((sorted[middle] ?? 0n) < key) from = middle + 1;
    else to = middle;
  }
  return sorted[from] === key;
}

/** Links by the row of the graph that would have them, ascending, and how far a walk has come. */
class SortedLinks {
  readonly #keys: BigUint64Array;
  #at = 0;
  found = 0;

  constructor({ values }: LinkArray) {
    const keys = new BigUint64Array(values.length / 2);
    for (let pair = 0; pair < keys.length; pair += 1) {
      keys[pair] = keyOf(values[2 * pair + 1] ?? 0, values[2 * pair] ?? 0);
    }
    this.#keys = keys.sort();
  }

  /** Sources of the links into `row`; null: there are none. Rows come in ascending order. */
  into(row: number): Map<number, number> | null {
    let sources: Map<number, number> | null = null;
    while (this.#at < this.#keys.length) {
      const key = this.#keys[this.#at] ?? 0n;
      if (Number(key >> 32n) > row) break;
      sources ??= new Map();
      const source = Number(key & 0xffffffffn);
      sources.set(source, (sources.get(source) ?? 0) + 1);
      this.#at += 1;
    }
    return sources;
  }
}

/**
 * How many links are edges of the graph, and whether that has the reverse of each edge: edges and
 * reverses have the same two sums of a mixture of their ends then, and else only by chance. An edge
 * that is repeated counts once, as where jobs split links (message_graph.h).
 */
async function comparedWithGraph({ writer, signal }: ImportContext, pairs: Pairs) {
  const sides = { val: new SortedLinks(pairs.val), test: new SortedLinks(pairs.test) };
  const ends = await openNpyFile(join(writer.folder, 'indptr.npy'), signal);
  const indices = await openNpyFile(join(writer.folder, 'indices.npy'), signal);
  const sums = new MixedSums();
  const rows = rowEnds(ends.blocks());
  try {
    let at = 0;
    let row = -1;
    let end = 0;
    let before = -1;
    let wanted: readonly (readonly [SortedLinks, Map<number, number>])[] = [];
    for await (const block of indices.blocks()) {
      for (const source of block as Int32Array | Uint32Array) {
        while (at >= end) {
          const next = await rows.next();
          if (next.done === true) break;
          end = next.value;
          row += 1;
          before = -1;
          wanted = Object.values(sides).flatMap((side) => {
            const sources = side.into(row);
            return sources === null ? [] : [[side, sources] as const];
          });
        }
        if (source !== before) sums.add(source, row);
        before = source;
        for (const [side, sources] of wanted) {
          side.found += sources.get(source) ?? 0;
          sources.delete(source);
        }
        at += 1;
      }
    }
  } finally {
    await ends.close();
    await indices.close();
  }
  const found = { val: sides.val.found, test: sides.test.found };
  return { symmetric: sums.areEqual, found };
}

/** Ends of rows, from the first on. */
async function* rowEnds(blocks: AsyncGenerator<unknown>): AsyncGenerator<number> {
  let isFirst = true;
  for await (const block of blocks) {
    for (const value of block as BigInt64Array) {
      if (!isFirst) yield Number(value);
      isFirst = false;
    }
  }
}

/** Sums of edges and of their reverses, each modulo 2^32, twice. */
class MixedSums {
  #forth = [0, 0];
  #back = [0, 0];

  add(source: number, row: number): void {
    for (const [at, seed] of seeds.entries()) {
      this.#forth[at] = ((this.#forth[at] ?? 0) + mixed(source, row, seed)) | 0;
      this.#back[at] = ((this.#back[at] ?? 0) + mixed(row, source, seed)) | 0;
    }
  }

  get areEqual(): boolean {
    return this.#forth.every((sum, at) => sum === this.#back[at]);
  }
}

const seeds = [0x9e3779b9, 0x7f4a7c15];

function mixed(one: number, other: number, seed: number): number {
  let value = Math.imul(one ^ seed, 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13) ^ other, 0xc2b2ae35);
  value = Math.imul(value ^ (value >>> 16), 0x21f0aaad);
  return value ^ (value >>> 15);
}
