import type { HotCurve } from './hot-curve.ts';
import type { PlacementPlan } from './island-plan.ts';
import { type Links, peerCost, type RowCosts } from './links.ts';
import { type Tiers, tiersOf } from './tiers.ts';

/**
 * The cost model of Song and Jiang, section 3.1: batches of all devices are drawn alike, so that
 * each device reads a rank as often as its hotness says, from where it lies nearest.
 */

/** Rows that a device reads while `hotness.total` are read by it, and what it waits for them. */
export interface DeviceLoad {
  readonly own: number;
  /** Rows read from another device's memory. */
  readonly peer: number;
  readonly host: number;
  /** Wait for the rows, in the unit of the costs. */
  readonly cost: number;
}

export interface LoadRequest {
  /** Hotness by the plan's ranks. It need not fall: measured hotness may differ from planned. */
  readonly hotness: HotCurve;
  readonly links: Links;
  readonly costs: RowCosts;
}

/** One load for each device. */
export function loadsOf(plan: PlacementPlan, request: LoadRequest): readonly DeviceLoad[] {
  return tiersOf(plan, request).map((tiers, device) => loadOf(tiers, device, request));
}

function loadOf(tiers: Tiers, device: number, { hotness, links, costs }: LoadRequest): DeviceLoad {
  let [own, peer, cost] = [0, 0, 0];
  for (const { from, to, places } of tiers) {
    const sums = hotness.dealt(from, to, places.length);
    places.forEach((place, hand) => {
      const rows = sums[hand] ?? 0;
      if (place === null) return;
      if (place.device === device) own += rows;
      else {
        peer += rows;
        cost += rows * peerCost(links, costs, device, place.device);
      }
    });
  }
  const host = restOf(hotness.total, own + peer);
  return { own, peer, host, cost: cost + host * costs.host };
}

/** The rest; 0 where it is no more than the rounding error of such sums. */
export function restOf(total: number, taken: number): number {
  const rest = total - taken;
  return rest > total * 1e-12 ? rest : 0;
}
