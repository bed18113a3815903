/**
 * Algorithm 1 of Song and Jiang (ICS'22), row by row, as their worked example runs it: the
 * candidate after one that was taken is the next one (their listing skips every n-th). The
 * planner's reference: it takes as long as all devices have rows.
 */

export interface Placed {
  /** [device][row]: the rank. */
  readonly rows: readonly (readonly number[])[];
  /** What each device took over, summed hotness. */
  readonly tookOver: readonly number[];
  /** The first rank that nobody holds. */
  readonly end: number;
}

/** `hotness` falls; `budgets` are rows a device, generalised from one for all. */
export function algorithmOne(
  hotness: readonly number[],
  budgets: readonly number[],
  threshold: number,
): Placed {
  const sizes = budgets.map((rows) => Math.min(rows, hotness.length));
  const largest = Math.max(...sizes);
  const rows = sizes.map((size) => Array.from({ length: size }, (_, rank) => rank));
  const tookOver = budgets.map(() => 0);
  const at = (rank: number) => hotness[rank] ?? 0;
  let end = largest;
  for (let row = largest - 1; row >= 0; row -= 1) {
    const order = sizes
      .map((_, device) => device)
      .filter((device) => (sizes[device] ?? 0) > row)
      .sort((a, b) => (tookOver[a] ?? 0) - (tookOver[b] ?? 0) || a - b);
    for (const device of order.slice(0, -1)) {
      if (end >= hotness.length || !(at(end) > threshold * at(row))) return { rows, tookOver, end };
      const held = rows[device];
      if (held !== undefined) held[row] = end;
      tookOver[device] = (tookOver[device] ?? 0) + at(end);
      end += 1;
    }
  }
  return { rows, tookOver, end };
}

/** What each device waits for an epoch's rows: own rows are free, all devices are linked alike. */
export function waitsOf(
  hotness: readonly number[],
  rows: readonly (readonly number[])[],
  costs: { readonly host: number; readonly peer: number },
): readonly number[] {
  const anywhere = new Set(rows.flat());
  return rows.map((held) => {
    const own = new Set(held);
    return hotness.reduce((wait, value, rank) => {
      if (own.has(rank)) return wait;
      const isPeer = anywhere.has(rank) && costs.peer < costs.host;
      return wait + value * (isPeer ? costs.peer : costs.host);
    }, 0);
  });
}
