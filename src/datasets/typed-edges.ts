import { ElementReader } from './element-reader.ts';
import { type NpyHeader, type NpySource, npyIntegers } from './npy.ts';
import { badFile, formatCount } from './problems.ts';

/** Edges of a relation as they are listed: pairs of ids, or rows of a CSC. */

/** Edges that follow each other, by their ends. */
export interface EdgeEnds {
  readonly sources: Uint32Array;
  readonly targets: Uint32Array;
}

/** Edges that are held at once. */
const edgesAtOnce = 1 << 16;

/** Opens one of a relation's files; the caller's to close. */
type Open = () => Promise<NpySource>;

/** Ids below zero or beyond 32 bits, which no type has. */
class NoIds {
  #first: number | bigint = 0;
  #count = 0;

  readonly see = (_: number, value: number | bigint): void => {
    if (this.#count === 0) this.#first = value;
    this.#count += 1;
  };

  /** Throws where there was one. */
  refuse(path: string): void {
    if (this.#count === 0) return;
    const more = this.#count > 1 ? ` and ${formatCount(this.#count - 1)} more` : '';
    throw badFile(path, `has ${this.#first}${more}, expected ids from 0 on`);
  }
}

/** Whether all first ends of [2, pairs] come before all others; else they come pair by pair. */
export function liesByEnd({ shape: [rows, columns], isTurned }: NpyHeader): boolean {
  // Of four numbers the first two are sources, in the order that their array had.
  return isTurned === true ? columns !== 2 : rows === 2;
}

/** `notice` is told how an array that can be read in two ways is read. */
export async function* edgesOfPairs(
  open: Open,
  notice: (sentence: string) => void,
): AsyncGenerator<EdgeEnds> {
  const source = await open();
  const second = await open();
  try {
    const { shape } = source.header;
    refuseOthers(source);
    const [rows = 0, columns = 0] = shape;
    if (shape.length !== 2 || (rows !== 2 && columns !== 2)) {
      throw badFile(
        source.path,
        `has shape (${shape.join(', ')}), expected [2, edges] or [edges, 2]`,
      );
    }
    const isByEnd = liesByEnd(source.header);
    if (rows === 2 && columns === 2) {
      notice('has shape (2, 2), read as [2, edges]: two sources, then their destinations');
    }
    const noIds = new NoIds();
    // The lower row lies behind the whole upper one, which whoever reads it passes by.
    const first = new ElementReader(source, 'uint32', isByEnd ? unseen : noIds.see);
    const other = new ElementReader(second, 'uint32', noIds.see);
    const numEdges = isByEnd ? columns : rows;
    if (isByEnd) await other.skip(numEdges);
    for (let done = 0; done < numEdges; done += edgesAtOnce) {
      const count = Math.min(edgesAtOnce, numEdges - done);
      if (isByEnd) yield { sources: await first.take(count), targets: await other.take(count) };
      else yield apart(await first.take(2 * count));
    }
    noIds.refuse(source.path);
  } finally {
    await source.close();
    await second.close();
  }
}

const unseen = () => undefined;

function apart(ends: Uint32Array): EdgeEnds {
  const sources = new Uint32Array(ends.length / 2);
  const targets = new Uint32Array(ends.length / 2);
  for (let at = 0; at < sources.length; at += 1) {
    sources[at] = ends[2 * at] ?? 0;
    targets[at] = ends[2 * at + 1] ?? 0;
  }
  return { sources, targets };
}

/** Row v of `numRows` lists the sources of v's edges. */
export async function* edgesOfRows(
  openIndptr: Open,
  openIndices: Open,
  numRows: number,
): AsyncGenerator<EdgeEnds> {
  const indptr = await openIndptr();
  const indices = await openIndices();
  try {
    for (const array of [indptr, indices]) {
      refuseOthers(array);
      const { shape } = array.header;
      if (shape.length !== 1) {
        throw badFile(array.path, `has shape (${shape.join(', ')}), expected one axis`);
      }
    }
    const [length = 0] = indptr.header.shape;
    if (length !== numRows + 1) {
      const expected = `expected ${formatCount(numRows + 1)}, one more than nodes at its end`;
      throw badFile(indptr.path, `has ${formatCount(length)} rows, ${expected}`);
    }
    const noIds = new NoIds();
    const reader = new ElementReader(indices, 'uint32', noIds.see);
    for await (const targets of targetsOf(indptr, indices.header.shape[0] ?? 0)) {
      yield { sources: await reader.take(targets.length), targets };
    }
    noIds.refuse(indices.path);
  } finally {
    await indptr.close();
    await indices.close();
  }
}

/** The row of each of `numEdges` entries. */
async function* targetsOf(indptr: NpySource, numEdges: number): AsyncGenerator<Uint32Array> {
  let targets = new Uint32Array(edgesAtOnce);
  let held = 0;
  let row = -1;
  let start = 0;
  for await (const block of indptr.blocks()) {
    for (const value of block) {
      const end = Number(value);
      const isBad = row < 0 ? end !== 0 : end < start || end > numEdges;
      if (isBad) throw badFile(indptr.path, badEnd(row + 1, end, start, numEdges));
      while (start < end) {
        const count = Math.min(end - start, edgesAtOnce - held);
        targets.fill(row, held, held + count);
        held += count;
        start += count;
        if (held < edgesAtOnce) continue;
        yield targets;
        targets = new Uint32Array(edgesAtOnce);
        held = 0;
      }
      row += 1;
    }
  }
  if (start !== numEdges) throw badFile(indptr.path, badEnd(row, start, start, numEdges));
  if (held > 0) yield targets.subarray(0, held);
}

function badEnd(at: number, found: number, before: number, numEdges: number): string {
  const expected =
    at === 0
      ? '0'
      : `from ${before} to the ${formatCount(numEdges)} of indices.npy, at the end these`;
  return `has ${found} at index ${at}, expected ${expected}`;
}

function refuseOthers({ path, header: { type } }: NpySource): void {
  if (npyIntegers.some((each) => each === type)) return;
  throw badFile(path, `has dtype ${type}, expected ids of nodes: ${npyIntegers.join(', ')}`);
}
