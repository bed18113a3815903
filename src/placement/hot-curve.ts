/**
 * Hotness by hot rank, as runs of ranks that are equally hot: what planning knows of a dataset.
 * A graph has as many runs as somebody cared to tell apart, so that nothing here grows with it.
 */

/** Neighbours in the order of hotness. */
export interface HotRun {
  /** Number of rows, positive. */
  readonly rows: number;
  /** Number of batches of an epoch that each of these rows is an input of, not negative. */
  readonly hotness: number;
}

export class HotCurve {
  /** Number of all ranks. */
  readonly rows: number;
  /** Rows that an epoch's batches read, each batch for itself. */
  readonly total: number;
  private readonly runs: readonly HotRun[];
  /** Where each run begins, and where the last one ends. */
  private readonly starts: Float64Array;
  /** Sum of hotness below each of `starts`. */
  private readonly sums: Float64Array;

  /** Throws RangeError for a run without rows or with a hotness that is none. */
  constructor(runs: readonly HotRun[]) {
    this.runs = runs;
    this.starts = new Float64Array(runs.length + 1);
    this.sums = new Float64Array(runs.length + 1);
    let [start, sum] = [0, 0];
    runs.forEach(({ rows, hotness }, i) => {
      if (!Number.isSafeInteger(rows) || rows < 1 || !(hotness >= 0 && hotness < Infinity)) {
        throw new RangeError(`run ${i} is of ${rows} rows of hotness ${hotness}`);
      }
      start += rows;
      sum += rows * hotness;
      this.starts[i + 1] = start;
      this.sums[i + 1] = sum;
    });
    this.rows = start;
    this.total = sum;
  }

  /** Whether no rank is hotter than one before it. */
  get falls(): boolean {
    return this.runs.every(({ hotness }, i) => hotness <= (this.runs[i - 1]?.hotness ?? Infinity));
  }

  /** Hotness of one rank; 0 behind the last. */
  at(rank: number): number {
    return this.runs[this.runOf(rank)]?.hotness ?? 0;
  }

  /** Sum over the ranks below `rank`. */
  below(rank: number): number {
    const run = this.runOf(rank);
    const within = rank - (this.starts[run] ?? 0);
    return (this.sums[run] ?? 0) + within * (this.runs[run]?.hotness ?? 0);
  }

  /**
   * Sums over the ranks from `from` to `to` that are dealt in rotation to `hands`: the first has
   * from, from + hands and so on.
   */
  dealt(from: number, to: number, hands: number): readonly number[] {
    const sums = new Array<number>(hands).fill(0);
    const end = Math.min(to, this.rows);
    for (let run = this.runOf(from), rank = from; rank < end; run += 1) {
      const next = Math.min(this.starts[run + 1] ?? end, end);
      const hotness = this.runs[run]?.hotness ?? 0;
      for (let hand = 0; hand < hands; hand += 1) {
        const ranks = dealtBelow(next - from - hand, hands) - dealtBelow(rank - from - hand, hands);
        sums[hand] = (sums[hand] ?? 0) + ranks * hotness;
      }
      rank = next;
    }
    return sums;
  }

  /** The run that holds `rank`; their number for one behind the last. */
  private runOf(rank: number): number {
    let [low, high] = [0, this.runs.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.starts[middle + 1] ?? Infinity) <= rank) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** How many of the first `count` ranks a hand gets whose first is 0. */
function dealtBelow(count: number, hands: number): number {
  return count <= 0 ? 0 : Math.ceil(count / hands);
}
