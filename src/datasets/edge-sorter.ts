import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Edges in any order become the rows of a graph, in bounded memory: entries are gathered, put into
 * runs by their rows and written to a file without a name; then the runs are read row after row.
 * What fits into memory never touches the disk.
 */

export interface EdgeSorterOptions {
  readonly numNodes: number;
  readonly isWeighted: boolean;
  /**
   * ALL: row v holds the sources of v's edges as listed. ONCE: ascending, each once, without
   * self-loops.
   */
  readonly keep: 'ALL' | 'ONCE';
  /** An edge stands in the row of its source, too. */
  readonly bothWays: boolean;
  /** For what does not fit into memory. */
  readonly folder: string;
  /** Entries that are held at once; a single row may have more. */
  readonly entriesMax?: number;
}

/** Rows that follow each other. */
export interface SortedRows {
  readonly numRows: number;
  /** int64 [numRows]: where each ends, counted over all rows before. */
  readonly ends: BigInt64Array;
  /** [entries], Uint32Array where int32 cannot name every node. */
  readonly indices: Int32Array | Uint32Array;
  /** [entries], or null. */
  readonly weights: Float32Array | null;
}

/** Edges that were listed twice with unequal weights, by their lines. */
export interface Conflict {
  readonly line: number;
  readonly earlier: number;
}

interface Run {
  /** Where the run begins in the file, in bytes. */
  readonly at: number;
  /** [buckets + 1], in entries. */
  readonly starts: Uint32Array;
}

/** 64 MiB of entries with weights, and as much again while they are sorted. */
const defaultEntriesMax = 1 << 22;
const firstEntries = 1 << 12;
/** Runs know where each bucket of rows begins: 64 KiB a run. */
const bucketsMax = 1 << 14;
/** Rows that are sorted at once: they take memory also where they are empty. */
const rowsMax = 1 << 22;
/** Keys of a row that are sorted by insertion. */
const insertedMax = 32;
const conflictsKept = 20;
const wordBytes = Uint32Array.BYTES_PER_ELEMENT;
const int32Ids = 2 ** 31;

export class EdgeSorter {
  /** Edges that were added. */
  edges = 0;
  selfLoops = 0;
  /** Entries of rows so far. */
  entries = 0;
  /** All conflicts, kept or not. */
  conflictCount = 0;
  readonly conflicts: Conflict[] = [];
  readonly #options: EdgeSorterOptions;
  readonly #entriesMax: number;
  /** Row, column; and line and weight (its bits) where edges have weights. */
  readonly #words: 2 | 4;
  /** Rows of a bucket, a power of two, and which one. */
  readonly #span: number;
  readonly #shift: number;
  readonly #buckets: number;
  readonly #runs: Run[] = [];
  readonly #weight = new Float32Array(1);
  readonly #weightBits = new Uint32Array(this.#weight.buffer);
  #held: Uint32Array;
  #heldEntries = 0;
  #repeated = 0;
  #file: FileHandle | null = null;
  #fileBytes = 0;

  constructor(options: EdgeSorterOptions) {
    this.#options = options;
    this.#entriesMax = options.entriesMax ?? defaultEntriesMax;
    this.#words = options.isWeighted ? 4 : 2;
    this.#shift = Math.ceil(Math.log2(Math.max(1, options.numNodes / bucketsMax)));
    this.#span = 2 ** this.#shift;
    this.#buckets = Math.ceil(options.numNodes / this.#span);
    this.#held = new Uint32Array(firstEntries * this.#words);
  }

  /** Edges that were listed before (in either direction where both are stored). */
  get duplicates(): number {
    return this.#options.bothWays ? this.#repeated / 2 : this.#repeated;
  }

  /** Both below numNodes. `line` is what messages call the edge. */
  add(source: number, target: number, weight = 0, line = 0): void {
    this.edges += 1;
    if (source === target && this.#options.keep === 'ONCE') {
      this.selfLoops += 1;
      return;
    }
    this.#put(target, source, weight, line);
    if (this.#options.bothWays) this.#put(source, target, weight, line);
  }

  /** Adds edges that are known by their places in a block. */
  addAll(block: {
    readonly sources: Uint32Array;
    readonly targets: Uint32Array;
    readonly weights: Float32Array | null;
    readonly lineOf: (edge: number) => number;
  }): void {
    const { sources, targets, weights, lineOf } = block;
    for (let at = 0; at < sources.length; at += 1) {
      const line = weights === null ? 0 : lineOf(at);
      this.add(sources[at] ?? 0, targets[at] ?? 0, weights?.[at] ?? 0, line);
    }
  }

  #put(row: number, column: number, weight: number, line: number): void {
    let at = this.#heldEntries * this.#words;
    if (at === this.#held.length) {
      const grown = new Uint32Array(2 * at);
      grown.set(this.#held);
      this.#held = grown;
    }
    this.#held[at++] = row;
    this.#held[at++] = column;
    if (this.#words === 4) {
      this.#weight[0] = weight;
      this.#held[at++] = line;
      this.#held[at] = this.#weightBits[0] ?? 0;
    }
    this.#heldEntries += 1;
  }

  /** To be awaited now and then while edges are added: what is too much goes to the disk. */
  async settle(): Promise<void> {
    if (this.#heldEntries >= this.#entriesMax) await this.#spill();
  }

  /** All rows from the first to the last, in groups; once, after the last edge. */
  async *rows(): AsyncGenerator<SortedRows> {
    const memory = this.#runs.length === 0 ? this.#sortHeld() : null;
    if (memory === null) await this.#spill();
    this.#held = new Uint32Array(0);
    const starts = memory === null ? this.#runs.map((run) => run.starts) : [memory.starts];
    for (const [first, end] of this.#groups(starts)) {
      const found =
        memory === null
          ? await this.#read(first, end)
          : memory.sorted.subarray(
              this.#words * (memory.starts[first] ?? 0),
              this.#words * (memory.starts[end] ?? 0),
            );
      const firstRow = first * this.#span;
      const lastRow = Math.min(end * this.#span, this.#options.numNodes);
      yield this.#sorted(firstRow, lastRow - firstRow, found);
    }
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = null;
  }

  /** Held entries by bucket, in the order in which they came. */
  #sortHeld(): { readonly sorted: Uint32Array; readonly starts: Uint32Array } {
    const words = this.#words;
    const shift = this.#shift;
    const held = this.#held;
    const length = this.#heldEntries * words;
    const starts = new Uint32Array(this.#buckets + 1);
    for (let at = 0; at < length; at += words) {
      const bucket = (held[at] ?? 0) >>> shift;
      starts[bucket + 1] = (starts[bucket + 1] ?? 0) + 1;
    }
    for (let bucket = 0; bucket < this.#buckets; bucket += 1) {
      starts[bucket + 1] = (starts[bucket + 1] ?? 0) + (starts[bucket] ?? 0);
    }
    const next = starts.slice();
    const sorted = new Uint32Array(length);
    for (let at = 0; at < length; at += words) {
      const bucket = (held[at] ?? 0) >>> shift;
      const place = words * (next[bucket] ?? 0);
      sorted[place] = held[at] ?? 0;
      sorted[place + 1] = held[at + 1] ?? 0;
      if (words === 4) {
        sorted[place + 2] = held[at + 2] ?? 0;
        sorted[place + 3] = held[at + 3] ?? 0;
      }
      next[bucket] = (next[bucket] ?? 0) + 1;
    }
    return { sorted, starts };
  }

  async #spill(): Promise<void> {
    const { sorted, starts } = this.#sortHeld();
    this.#heldEntries = 0;
    this.#file ??= await openNameless(join(this.#options.folder, '.edges'));
    const bytes = new Uint8Array(sorted.buffer);
    for (let done = 0; done < bytes.length; ) {
      const left = bytes.length - done;
      const { bytesWritten } = await this.#file.write(bytes, done, left, this.#fileBytes + done);
      done += bytesWritten;
    }
    this.#runs.push({ at: this.#fileBytes, starts });
    this.#fileBytes += bytes.length;
  }

  /** Buckets from the first to before the end, as many as may be held at once. */
  *#groups(runs: readonly Uint32Array[]): Generator<readonly [number, number]> {
    const entriesOf = (bucket: number) =>
      runs.reduce((sum, starts) => sum + (starts[bucket + 1] ?? 0) - (starts[bucket] ?? 0), 0);
    let first = 0;
    let entries = 0;
    for (let bucket = 0; bucket < this.#buckets; bucket += 1) {
      const more = entriesOf(bucket);
      const rows = (bucket + 1 - first) * this.#span;
      if (bucket > first && (entries + more > this.#entriesMax || rows > rowsMax)) {
        yield [first, bucket];
        first = bucket;
        entries = 0;
      }
      entries += more;
    }
    yield [first, this.#buckets];
  }

  async #read(first: number, end: number): Promise<Uint32Array> {
    const lengthOf = ({ starts }: Run) => (starts[end] ?? 0) - (starts[first] ?? 0);
    const entries = this.#runs.reduce((sum, run) => sum + lengthOf(run), 0);
    const bytes = new Uint8Array(entries * this.#words * wordBytes);
    let filled = 0;
    for (const run of this.#runs) {
      const from = run.at + (run.starts[first] ?? 0) * this.#words * wordBytes;
      const length = lengthOf(run) * this.#words * wordBytes;
      for (let done = 0; done < length; ) {
        const at = filled + done;
        const got = await this.#file?.read(bytes, at, length - done, from + done);
        if (got === undefined || got.bytesRead === 0) throw new Error('a run of edges was cut off');
        done += got.bytesRead;
      }
      filled += length;
    }
    return new Uint32Array(bytes.buffer);
  }

  /** Entries in the order in which they came become rows. */
  #sorted(firstRow: number, numRows: number, found: Uint32Array): SortedRows {
    const words = this.#words;
    const starts = new Uint32Array(numRows + 1);
    for (let at = 0; at < found.length; at += words) {
      const row = (found[at] ?? 0) - firstRow;
      starts[row + 1] = (starts[row + 1] ?? 0) + 1;
    }
    for (let row = 0; row < numRows; row += 1) {
      starts[row + 1] = (starts[row + 1] ?? 0) + (starts[row] ?? 0);
    }
    // A column above its entry's number: sorted as one number of 64 bits, equal columns stay in
    // the order in which they came. (Little-endian, as every host here is.)
    const keys = new BigUint64Array(found.length / words);
    const halves = new Uint32Array(keys.buffer);
    const next = starts.slice();
    for (let at = 0; at < found.length; at += words) {
      const row = (found[at] ?? 0) - firstRow;
      const place = next[row] ?? 0;
      halves[2 * place] = at;
      halves[2 * place + 1] = found[at + 1] ?? 0;
      next[row] = place + 1;
    }
    if (this.#options.keep === 'ONCE') {
      for (let row = 0; row < numRows; row += 1) {
        const start = starts[row] ?? 0;
        const end = starts[row + 1] ?? 0;
        if (end - start > insertedMax) keys.subarray(start, end).sort();
        else insertionSort(halves, start, end);
      }
    }
    return this.#compact(firstRow, { starts, halves, found });
  }

  /** With edges in both directions each conflict shows twice; the smaller node's row reports it. */
  #compact(
    firstRow: number,
    {
      starts,
      halves,
      found,
    }: { readonly starts: Uint32Array; readonly halves: Uint32Array; readonly found: Uint32Array },
  ): SortedRows {
    const { numNodes, isWeighted, keep, bothWays } = this.#options;
    const numRows = starts.length - 1;
    const ends = new BigInt64Array(numRows);
    const count = halves.length / 2;
    const indices = new (numNodes > int32Ids ? Uint32Array : Int32Array)(count);
    const weightBits = isWeighted ? new Uint32Array(count) : null;
    let kept = 0;
    for (let row = 0; row < numRows; row += 1) {
      const end = starts[row + 1] ?? 0;
      let previous = -1;
      let first = 0;
      for (let at = starts[row] ?? 0; at < end; at += 1) {
        const entry = halves[2 * at] ?? 0;
        const column = halves[2 * at + 1] ?? 0;
        if (column === previous && keep === 'ONCE') {
          const isEqual = !isWeighted || found[first + 3] === found[entry + 3];
          if (isEqual) this.#repeated += 1;
          else if (!bothWays || firstRow + row < column) {
            this.#addConflict(found[entry + 2] ?? 0, found[first + 2] ?? 0);
          }
          continue;
        }
        previous = column;
        first = entry;
        indices[kept] = column;
        if (weightBits !== null) weightBits[kept] = found[entry + 3] ?? 0;
        kept += 1;
      }
      ends[row] = BigInt(this.entries + kept);
    }
    this.entries += kept;
    const weights = weightBits === null ? null : new Float32Array(weightBits.buffer, 0, kept);
    return { numRows, ends, indices: indices.subarray(0, kept), weights };
  }

  #addConflict(line: number, earlier: number): void {
    this.conflictCount += 1;
    if (this.conflicts.length < conflictsKept) this.conflicts.push({ line, earlier });
  }
}

/** Sorts keys by their columns, where so few are in a row that a call would take longer. */
function insertionSort(halves: Uint32Array, start: number, end: number): void {
  for (let key = start + 1; key < end; key += 1) {
    const entry = halves[2 * key] ?? 0;
    const column = halves[2 * key + 1] ?? 0;
    let at = key;
    for (; at > start && (halves[2 * at - 1] ?? 0) > column; at -= 1) {
      halves[2 * at] = halves[2 * at - 2] ?? 0;
      halves[2 * at + 1] = halves[2 * at - 1] ?? 0;
    }
    halves[2 * at] = entry;
    halves[2 * at + 1] = column;
  }
}

/** Gone with its last descriptor, however this process ends. */
async function openNameless(path: string): Promise<FileHandle> {
  const file = await open(path, 'wx+', 0o600);
  await unlink(path);
  return file;
}
