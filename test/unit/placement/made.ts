import { HotCurve } from '../../../src/placement/hot-curve.ts';
import type { PlacementPlan } from '../../../src/placement/island-plan.ts';
import type { Links, RowCosts } from '../../../src/placement/links.ts';
import { type Place, type Tiers, tiersOf } from '../../../src/placement/tiers.ts';
import type { Random } from '../../support/random.ts';

/** Made-up hotness, and what a plan comes to row by row. */

/** One run for each stretch of equal values. */
export function curveOf(hotness: readonly number[]): HotCurve {
  const runs: { rows: number; hotness: number }[] = [];
  for (const value of hotness) {
    const last = runs.at(-1);
    if (last?.hotness === value) last.rows += 1;
    else runs.push({ rows: 1, hotness: value });
  }
  return new HotCurve(runs);
}

/** Falling, with ties, of one of several shapes; the tail may be 0. */
export function someHotness(random: Random, most: number): readonly number[] {
  const rows = random.integer(1, most);
  const power = random.pick([0, 0.3, 0.8, 1.2, 2]);
  const steps = random.pick([1, 4, 1000]);
  const values = Array.from({ length: rows }, (_, rank) => {
    const value = (1 + rank) ** -power * (1 + 0.2 * random.unit());
    return Math.round(value * steps * 8) / (steps * 8);
  });
  return values.sort((a, b) => b - a);
}

/** Where a device finds `rank`; null: with the host. */
export function lookUp(tiers: Tiers, rank: number): Place | null {
  const line = tiers.find(({ from, to }) => from <= rank && rank < to);
  if (line === undefined) return null;
  const [offset, hands] = [rank - line.from, line.places.length];
  const place = line.places[offset % hands] ?? null;
  if (place === null) return null;
  return { device: place.device, row: place.row + Math.floor(offset / hands) };
}

/** The ranks that each device holds, by row. */
export function rowsOf(
  plan: PlacementPlan,
  ranks: number,
  world: { readonly links: Links; readonly costs: RowCosts },
): readonly ReadonlyMap<number, number>[] {
  return tiersOf(plan, world).map((tiers, device) => {
    const held = new Map<number, number>();
    for (let rank = 0; rank < ranks; rank += 1) {
      const place = lookUp(tiers, rank);
      if (place?.device !== device) continue;
      if (held.has(place.row)) throw new Error(`device ${device} has two ranks in a row`);
      held.set(place.row, rank);
    }
    return held;
  });
}
