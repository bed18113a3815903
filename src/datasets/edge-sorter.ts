import { availableMemoryBytes, hostMemoryBytes } from '../base/host-memory.ts';
import type {
  CoreAddon,
  EdgeConflict,
  EdgeCounts,
  EdgeForm,
  EdgeRows,
  EdgeSorterHandle,
  TextBatch,
  TextRowsHandle,
} from '../native/contract.ts';
import { NumberList } from './number-list.ts';

/**
 * Edges in any order become the rows of a graph, in bounded memory (native/core/table). What fits
 * into memory never touches the disk.
 */

export type NativeSorter = Pick<
  CoreAddon,
  | 'edgeSorterOpen'
  | 'edgeSorterAdd'
  | 'edgeSorterRead'
  | 'edgeSorterSettle'
  | 'edgeSorterNext'
  | 'edgeSorterCounts'
>;

export interface EdgeSorterOptions {
  readonly numNodes: number;
  /** Sources have ids of their own, below this; absent: they are nodes of the rows. */
  readonly numSources?: number;
  readonly isWeighted: boolean;
  /**
   * ALL: row v holds the sources of v's edges as listed. ONCE: ascending, each once, without
   * self-loops, which sources with ids of their own have none of.
   */
  readonly keep: 'ALL' | 'ONCE';
  /** An edge stands in the row of its source, too. */
  readonly bothWays: boolean;
  /** For what does not fit into memory. */
  readonly folder: string;
  /** Entries that are held at once; a bucket of rows may have more. */
  readonly entriesMax?: number;
  /** For sorted entries; a share of what there is. */
  readonly memoryBytesMax?: number;
}

/** Rows that follow each other. */
export interface SortedRows {
  /** int64 [numRows]: where each ends, counted over all rows before. */
  readonly ends: BigInt64Array;
  /** [entries], Uint32Array where int32 cannot name every node. */
  readonly indices: Int32Array | Uint32Array;
  /** [entries], or null. */
  readonly weights: Float32Array | null;
}

/** Edges that are known by their places in a block: all of them are right but for their ends. */
export interface EdgeBlock {
  /** [2 * edges], source and target of each. */
  readonly ends: Uint32Array;
  /** Null where edges have none. */
  readonly weights: Float32Array | null;
  /** [edges], from `firstLine`: what messages call each. */
  readonly lines: Uint32Array;
  readonly firstLine: number;
}

/** 64 MiB of entries with weights, and as much again while they are sorted. */
const defaultEntriesMax = 1 << 22;
/** Memory for sorted entries: the most, and the share of what there is. */
const memoryBytes = { most: 2 ** 28, share: 0.125 };
const int32Ids = 2 ** 31;
const none = new Uint32Array();
const noWeights = new Float32Array();

export class EdgeSorter {
  /** Edges that were added. */
  edges = 0;
  readonly #native: NativeSorter;
  readonly #options: EdgeSorterOptions;
  readonly #entriesMax: number;
  #sorter: EdgeSorterHandle | null;
  #lastCounts: EdgeCounts | null = null;
  #held = 0;
  /** Edges that were added one by one. */
  readonly #ends = new NumberList((capacity) => new Uint32Array(capacity));
  readonly #weights = new NumberList((capacity) => new Float32Array(capacity));
  readonly #lines = new NumberList((capacity) => new Uint32Array(capacity));

  constructor(native: NativeSorter, options: EdgeSorterOptions) {
    const { numNodes, isWeighted, keep, bothWays, folder } = options;
    this.#native = native;
    this.#options = options;
    this.#entriesMax = options.entriesMax ?? defaultEntriesMax;
    const there = memoryBytes.share * Math.min(hostMemoryBytes(), availableMemoryBytes());
    this.#sorter = native.edgeSorterOpen({
      ...{ numNodes, bothWays, folder, weighted: isWeighted, once: keep === 'ONCE' },
      numSources: options.numSources ?? 0,
      entriesMax: this.#entriesMax,
      memoryBytesMax: options.memoryBytesMax ?? Math.floor(Math.min(memoryBytes.most, there)),
    });
  }

  get #handle(): EdgeSorterHandle {
    if (this.#sorter === null) throw new Error('the sorter is closed');
    return this.#sorter;
  }

  get #counts(): EdgeCounts {
    return this.#lastCounts ?? this.#native.edgeSorterCounts(this.#handle);
  }

  get selfLoops(): number {
    return this.#counts.selfLoops;
  }

  /** Entries of rows so far. */
  get entries(): number {
    return this.#counts.entries;
  }

  /** Edges that were listed before (in either direction where both are stored). */
  get duplicates(): number {
    return this.#options.bothWays ? this.#counts.repeated / 2 : this.#counts.repeated;
  }

  /** Edges that were listed twice with unequal weights, by their lines: the first ones. */
  get conflicts(): readonly EdgeConflict[] {
    return this.#counts.conflicts;
  }

  /** All conflicts, kept or not. */
  get conflictCount(): number {
    return this.#counts.conflictCount;
  }

  /** Both are nodes. `line` is what messages call the edge. */
  add(source: number, target: number, weight = 0, line = 0): void {
    this.edges += 1;
    this.#ends.push(source);
    this.#ends.push(target);
    if (!this.#options.isWeighted) return;
    this.#weights.push(weight);
    this.#lines.push(line);
  }

  /** Adds edges; false, and none is added, where an end is no node. */
  addAll(block: EdgeBlock): boolean {
    const { ends, weights, lines, firstLine } = block;
    this.#addHeld();
    const { isWeighted } = this.#options;
    const [given, of] = isWeighted && weights !== null ? [weights, lines] : [noWeights, none];
    const held = this.#native.edgeSorterAdd(this.#handle, ends, given, of, firstLine);
    if (held === null) return false;
    this.#held = held;
    this.edges += ends.length / 2;
    return true;
  }

  /** Adds a piece of a text: `taken` where all of it is plain, else its rows are for addAll. */
  async read(
    rows: TextRowsHandle,
    [piece, isLast]: readonly [Uint8Array, boolean],
    form: Pick<EdgeForm, 'targetFirst' | 'linesBefore'>,
  ): Promise<TextBatch> {
    this.#addHeld();
    const whole = { ...form, entriesMax: this.#entriesMax };
    const batch = await this.#native.edgeSorterRead(rows, piece, isLast, this.#handle, whole);
    if (batch.taken) this.edges += batch.numRows;
    return batch;
  }

  #addHeld(): void {
    if (this.#ends.length === 0) return;
    const given = [this.#ends.toArray(), this.#weights.toArray(), this.#lines.toArray()] as const;
    const held = this.#native.edgeSorterAdd(this.#handle, ...given, 0);
    if (held === null) throw new Error('an edge has an end that is no node');
    this.#held = held;
    for (const list of [this.#ends, this.#weights, this.#lines]) list.length = 0;
  }

  /** To be awaited now and then while edges are added: what is too much goes to the disk. */
  async settle(): Promise<void> {
    this.#addHeld();
    if (this.#held < this.#entriesMax) return;
    await this.#native.edgeSorterSettle(this.#handle);
    this.#held = 0;
  }

  /** All rows from the first to the last, in groups; once, after the last edge. */
  async *rows(): AsyncGenerator<SortedRows> {
    this.#addHeld();
    for (;;) {
      const rows = await this.#native.edgeSorterNext(this.#handle);
      if (rows === null) return;
      yield this.#rowsOf(rows);
    }
  }

  #rowsOf({ ends, indices, weights }: EdgeRows): SortedRows {
    const { numNodes, numSources = numNodes, isWeighted } = this.#options;
    const { buffer, byteOffset, length } = indices;
    return {
      ends,
      indices: numSources > int32Ids ? indices : new Int32Array(buffer, byteOffset, length),
      weights: isWeighted ? weights : null,
    };
  }

  /** Gives memory and file up; what was counted stays. */
  async close(): Promise<void> {
    this.#lastCounts = this.#counts;
    this.#sorter = null;
  }
}

/** [2 * edges], source and target of each. */
export function sideBySide(sources: Uint32Array, targets: Uint32Array): Uint32Array {
  const ends = new Uint32Array(2 * sources.length);
  for (let at = 0; at < sources.length; at += 1) {
    ends[2 * at] = sources[at] ?? 0;
    ends[2 * at + 1] = targets[at] ?? 0;
  }
  return ends;
}
