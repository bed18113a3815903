import type { HotCurve } from './hot-curve.ts';

/**
 * Rows that the devices of one island hold: Algorithm 1 of Song and Jiang (ICS'22) by rank. Each
 * device begins with the hottest rows; then, from its last row up, the copies of a rank but one
 * give way to ranks that nobody holds yet, as long as such a rank is hot enough beside the one it
 * replaces. What comes out is always of one shape, hence planned by its borders, not by rows:
 *
 *   ranks   0 ........ border | border ............ end | end ....
 *           on every device   | on one each, dealt      | host only
 *
 * The paper's listing loses every n-th candidate; its worked example does not, and is followed.
 * Rows are dealt in rotation where the paper orders devices by what they took over: both balance,
 * and a rotation needs no table to be looked up in (docs/decisions/0051-rows-are-dealt.md).
 */

export interface Member {
  readonly device: number;
  /** Rows that the device may hold. */
  readonly rows: number;
}

/** Where a device holds the first rank of a piece that it gets. */
export interface Holder {
  readonly device: number;
  readonly row: number;
}

/** Ranks from `from` to `to` (not included), not none. */
export interface Piece {
  readonly from: number;
  readonly to: number;
  /** Devices that hold the piece; not empty. */
  readonly holders: readonly Holder[];
  /** Each rank is with one of the holders, in rotation; else with all of them. */
  readonly isDealt: boolean;
}

/** Rows that linked devices hold. */
export interface IslandPlan {
  readonly devices: readonly number[];
  /** Pieces by rank. */
  readonly pieces: readonly Piece[];
}

/** Rows that all devices hold. */
export interface PlacementPlan {
  /** Islands; every device is in one of them. */
  readonly islands: readonly IslandPlan[];
}

/**
 * Pieces by rank, without gaps. A rank replaces a copy of another when it is hotter than
 * `threshold` times that one; Infinity: never, which is Rule 1. Hotness must fall.
 */
export function planIsland(
  hotness: HotCurve,
  members: readonly Member[],
  threshold: number,
): readonly Piece[] {
  const rounds = new Rounds(hotness, members, threshold);
  const border = rounds.firstWhole();
  const taken = border === 0 ? 0 : rounds.replaced(border - 1);
  // The round that was cut short: some devices gave this rank up, the others kept it.
  const cut = taken === 0 ? border : border - 1;
  const pieces = heldByAll(members, cut);
  const withCut = members.filter(({ rows }) => rows > cut);
  const losers = taken === 0 ? [] : withCut.slice(0, taken);
  if (taken > 0) {
    const keepers = withCut.slice(taken);
    pieces.push(
      pieceOf(
        cut,
        border,
        keepers.map(({ device }) => ({ device, row: cut })),
      ),
    );
  }
  const free = members.map(({ device, rows }) => {
    const row = losers.some((loser) => loser.device === device) ? cut : Math.min(rows, border);
    return { device, row, rows: rows - row };
  });
  return [...pieces, ...dealt(free, border, hotness.rows)];
}

function pieceOf(from: number, to: number, holders: readonly Holder[], isDealt = false): Piece {
  return { from, to, holders, isDealt };
}

/** Ranks below `end`, each with all who have a row of that number for it. */
function heldByAll(members: readonly Member[], end: number): Piece[] {
  const borders = [...new Set(members.map(({ rows }) => Math.min(rows, end)))].sort(
    (a, b) => a - b,
  );
  return borders.flatMap((to, i) => {
    const from = borders[i - 1] ?? 0;
    const holders = members.filter(({ rows }) => rows >= to);
    const places = holders.map(({ device }) => ({ device, row: from }));
    return to > from ? [pieceOf(from, to, places)] : [];
  });
}

/** Ranks from `border` to whoever has room, in rotation, until the smaller ones are full. */
function dealt(free: readonly (Member & Holder)[], border: number, end: number): readonly Piece[] {
  const pieces: Piece[] = [];
  let [left, from] = [free.filter(({ rows }) => rows > 0), border];
  while (left.length > 0 && from < end) {
    const each = Math.min(...left.map(({ rows }) => rows));
    const to = Math.min(end, from + each * left.length);
    const holders = left.map(({ device, row }) => ({ device, row }));
    pieces.push(pieceOf(from, to, holders, left.length > 1));
    left = left
      .map(({ device, row, rows }) => ({ device, row: row + each, rows: rows - each }))
      .filter(({ rows }) => rows > 0);
    from = to;
  }
  return pieces;
}

/**
 * The rounds of Algorithm 1, one a rank that is given up, from the last row of the largest device
 * up. What is given up gets hotter and what comes for it colder, so that the first round that is
 * not whole is the last one, and is found by halving.
 */
class Rounds {
  private readonly hotness: HotCurve;
  private readonly threshold: number;
  /** Rows of the devices, the largest first. */
  private readonly sizes: readonly number[];

  constructor(hotness: HotCurve, members: readonly Member[], threshold: number) {
    this.hotness = hotness;
    this.threshold = threshold;
    this.sizes = members.map(({ rows }) => rows).sort((a, b) => b - a);
  }

  /** The lowest rank of which all copies but one were replaced, and so of all behind it. */
  firstWhole(): number {
    let [low, high] = [0, this.sizes[0] ?? 0];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.replaced(middle) === this.copies(middle) - 1) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** How many copies of `rank` are replaced, the rounds behind it being whole. */
  replaced(rank: number): number {
    const first = this.candidate(rank);
    let [low, high] = [0, Math.min(this.copies(rank) - 1, Math.max(0, this.hotness.rows - first))];
    const least = this.hotness.at(rank) * this.threshold;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.hotness.at(first + middle - 1) > least) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Devices that begin with `rank`. */
  private copies(rank: number): number {
    return this.sizes.filter((rows) => rows > rank).length;
  }

  /** The first rank that nobody holds once all behind `rank` have one copy. */
  private candidate(rank: number): number {
    const [largest = 0] = this.sizes;
    const copies = this.sizes.reduce((sum, rows) => sum + Math.max(0, rows - rank - 1), 0);
    return largest + copies - Math.max(0, largest - rank - 1);
  }
}
