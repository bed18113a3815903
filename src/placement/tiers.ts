import type { IslandPlan, Piece, PlacementPlan } from './island-plan.ts';
import { type Links, peerCost, type RowCosts } from './links.ts';

/**
 * A plan as the devices read it: where each of them finds a rank. A table has one line for each
 * piece of the plan, at most 2n + 1 for n devices, whatever the graph: what it does not list is
 * with the host.
 */

/** The device, and the row there of the first rank that is dealt to this place. */
export interface Place {
  readonly device: number;
  readonly row: number;
}

export interface TierLine {
  /** Ranks, the last one not included. */
  readonly from: number;
  readonly to: number;
  /** Rank r is at place (r − from) mod their number, behind as many rows as went there before. */
  readonly places: readonly (Place | null)[];
}

/** Tiers of one device, by rank, without overlaps. Null places and gaps mean the host. */
export type Tiers = readonly TierLine[];

/** One table for each device. */
export function tiersOf(
  plan: PlacementPlan,
  { links, costs }: { readonly links: Links; readonly costs: RowCosts },
): readonly Tiers[] {
  const tables: Tiers[] = links.map(() => []);
  const costBetween = (i: number, j: number) => (i === j ? 0 : peerCost(links, costs, i, j));
  for (const island of plan.islands) {
    for (const device of island.devices) {
      tables[device] = tiersOfDevice(device, island, (other) => costBetween(device, other));
    }
  }
  return tables;
}

function tiersOfDevice(
  device: number,
  island: IslandPlan,
  costOf: (device: number) => number,
): Tiers {
  return island.pieces.map(({ from, to, holders, isDealt }): TierLine => {
    if (isDealt) {
      const places = holders.map((holder) => (costOf(holder.device) < Infinity ? holder : null));
      return { from, to, places };
    }
    return { from, to, places: [nearest(device, holders, costOf)] };
  });
}

/** The device's own row, else the cheapest; readers spread over equals by their island place. */
function nearest(
  device: number,
  holders: Piece['holders'],
  costOf: (device: number) => number,
): Place | null {
  const least = Math.min(...holders.map((holder) => costOf(holder.device)));
  if (least === Infinity) return null;
  const cheapest = holders.filter((holder) => costOf(holder.device) === least);
  return cheapest[device % cheapest.length] ?? null;
}
