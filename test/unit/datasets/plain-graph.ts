import type { NativeSorter } from '../../../src/datasets/edge-sorter.ts';
import type { NativeIds } from '../../../src/datasets/node-ids.ts';
import type {
  EdgeCounts,
  EdgeRows,
  EdgeSorterHandle,
  EdgeSorterOptions as SorterOptions,
  TextBatch,
  TextIdsHandle,
} from '../../../src/native/contract.ts';

/** What native code does with edges and ids, in the plainest way: tests hold it to the same. */

interface Entry {
  readonly column: number;
  readonly weight: number;
  readonly line: number;
}

class PlainSorter {
  readonly counts = { selfLoops: 0, entries: 0, repeated: 0, conflictCount: 0 };
  readonly conflicts: { line: number; earlier: number }[] = [];
  isRead = false;
  readonly #options: SorterOptions;
  readonly #rows: Entry[][];
  #added = 0;

  constructor(options: SorterOptions) {
    this.#options = options;
    this.#rows = Array.from({ length: options.numNodes }, () => []);
  }

  add(source: number, target: number, weight: number, line: number): void {
    if (source === target && this.#options.once && this.#options.numSources === 0) {
      this.counts.selfLoops += 1;
      return;
    }
    this.#put(target, { column: source, weight, line });
    if (this.#options.bothWays) this.#put(source, { column: target, weight, line });
  }

  get added(): number {
    return this.#added;
  }

  #put(row: number, entry: Entry): void {
    this.#rows[row]?.push(entry);
    this.#added += 1;
  }

  rows(): EdgeRows {
    this.isRead = true;
    const found = this.#rows.map((row, at) => (this.#options.once ? this.#once(row, at) : row));
    let end = 0n;
    const ends = found.map((row) => {
      end += BigInt(row.length);
      return end;
    });
    this.counts.entries = Number(end);
    const all = found.flat();
    return {
      ends: BigInt64Array.from(ends),
      indices: Uint32Array.from(all, ({ column }) => column),
      weights: Float32Array.from(this.#options.weighted ? all.map(({ weight }) => weight) : []),
    };
  }

  #once(row: readonly Entry[], at: number): readonly Entry[] {
    const firsts = new Map<number, Entry>();
    for (const entry of row.toSorted((a, b) => a.column - b.column)) {
      const first = firsts.get(entry.column);
      if (first === undefined) firsts.set(entry.column, entry);
      else if (!this.#options.weighted || first.weight === entry.weight) this.counts.repeated += 1;
      else if (!this.#options.bothWays || at < entry.column) {
        this.counts.conflictCount += 1;
        this.conflicts.push({ line: entry.line, earlier: first.line });
      }
    }
    return [...firsts.values()];
  }
}

/** Nothing in a large text is plain for it, so that all is read by rows. */
export const brokenBatch: TextBatch = {
  ...{ numRows: 0, header: null, firstLine: 1, lastLine: 0, texts: [], oddRows: [], coded: [] },
  ...{ lines: new Uint32Array(), wholes: new Uint32Array(), odd: new Uint32Array() },
  ...{ numbers: new Float32Array(), broken: true, taken: false },
};

export function plainSorter(): NativeSorter {
  const opened = new Map<EdgeSorterHandle, PlainSorter>();
  const of = (handle: EdgeSorterHandle): PlainSorter => {
    const found = opened.get(handle);
    if (found === undefined) throw new Error('no such sorter');
    return found;
  };
  return {
    edgeSorterOpen(options) {
      const handle = {} as EdgeSorterHandle;
      opened.set(handle, new PlainSorter(options));
      return handle;
    },
    edgeSorterAdd(handle, ends, weights, lines, firstLine) {
      const sorter = of(handle);
      for (let edge = 0; 2 * edge < ends.length; edge += 1) {
        const [source = 0, target = 0] = ends.subarray(2 * edge, 2 * edge + 2);
        sorter.add(source, target, weights[edge] ?? 0, firstLine + (lines[edge] ?? 0));
      }
      return sorter.added;
    },
    edgeSorterRead: async () => brokenBatch,
    edgeSorterSettle: async () => undefined,
    edgeSorterNext: async (handle) => (of(handle).isRead ? null : of(handle).rows()),
    edgeSorterCounts: (handle): EdgeCounts => {
      const { counts, conflicts } = of(handle);
      return { ...counts, conflicts: conflicts.slice(0, 20) };
    },
  };
}

export function plainIds(): NativeIds {
  const opened = new Map<TextIdsHandle, Map<string, number>>();
  const of = (handle: TextIdsHandle) => opened.get(handle) ?? new Map<string, number>();
  const add = (handle: TextIdsHandle, text: string) => {
    const ids = of(handle);
    if (ids.has(text)) return false;
    ids.set(text, ids.size);
    return true;
  };
  return {
    textIdsOpen() {
      const handle = {} as TextIdsHandle;
      opened.set(handle, new Map());
      return handle;
    },
    textIdsAdd: add,
    textIdsAddAll(handle, texts) {
      const all = texts.split('\n');
      const bad = all.findIndex((text) => !add(handle, text));
      return bad < 0 ? all.length : bad;
    },
    textIdsFind: (handle, text) => of(handle).get(text) ?? null,
    textIdsAt: (handle, number) => [...of(handle).keys()][number] ?? '',
    textIdsLines(handle, piece) {
      if (piece > 0) return null;
      return Buffer.from([...of(handle).keys()].map((text) => `${text}\n`).join(''));
    },
  };
}
