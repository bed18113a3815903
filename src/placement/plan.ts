import type { HotCurve } from './hot-curve.ts';
import { type IslandPlan, type Member, type PlacementPlan, planIsland } from './island-plan.ts';
import {
  checkLinks,
  type Island,
  islandChoices,
  type Links,
  peerCost,
  type RowCosts,
} from './links.ts';
import { type DeviceLoad, loadsOf } from './loads.ts';

/** Which rows of the features which device holds, so that batches wait least for them. */

export interface PlanRequest {
  /** Hotness by rank, never rising. */
  readonly hotness: HotCurve;
  /** Rows that each device may hold; 0: none. */
  readonly budgets: readonly number[];
  readonly links: Links;
  readonly costs: RowCosts;
}

/** A plan in which each device has a plain cache of the hottest rows (Rule 1). */
export function plainPrefix({ hotness, budgets }: PlanRequest): PlacementPlan {
  const islands = budgets.map((_, device) => planOf([device], { hotness, budgets }, Infinity));
  return { islands };
}

/**
 * The plan whose slowest device waits least, among those of Algorithm 1 for each way to use the
 * links, and the plain prefix. Ties go to the smaller sum over devices, then to fewer links. Throws
 * RangeError for inputs that are none.
 */
export function planPlacement(request: PlanRequest): PlacementPlan {
  checkRequest(request);
  const { links, costs } = request;
  const plans = islandChoices(links, costs).flatMap((islands) =>
    thresholds.map((threshold) => ({
      islands: islands.map((devices) =>
        planOf(devices, request, threshold(linkShare(devices, request), devices.length)),
      ),
    })),
  );
  const prefix: Rated = rated(plainPrefix(request), request);
  return plans.reduce((best, plan) => better(best, rated(plan, request)), prefix).plan;
}

/**
 * The plan that reads least from the host, however long devices wait for each other's rows: what is
 * left to gain for who shares the host's bus with others. Throws as planPlacement does.
 */
export function spreadMost(request: PlanRequest): PlacementPlan {
  checkRequest(request);
  // The last choice uses all links that are worth using.
  const islands = islandChoices(request.links, request.costs).at(-1);
  if (islands === undefined) return plainPrefix(request);
  return { islands: islands.map((devices) => planOf(devices, request, 0)) };
}

/**
 * Above which share of a row's hotness another one takes its place, by what a row over the links of
 * an island of n costs, as a share of the host's. The paper asks that the device that gives the row
 * up gains by itself. Rows that are dealt fall upon all devices alike, so that their mean may
 * decide, which goes on for longer.
 */
const thresholds = [
  (share: number) => share,
  (share: number, n: number) => share / (n - (n - 1) * share),
] as const;

/** Mean over the ordered pairs; Infinity: alone. */
function linkShare(devices: Island, { links, costs }: PlanRequest): number {
  const shares = devices.flatMap((i) =>
    devices.filter((j) => j !== i).map((j) => peerCost(links, costs, i, j) / costs.host),
  );
  if (shares.length === 0) return Infinity;
  return shares.reduce((sum, share) => sum + share, 0) / shares.length;
}

function planOf(
  devices: Island,
  { hotness, budgets }: Pick<PlanRequest, 'hotness' | 'budgets'>,
  threshold: number,
): IslandPlan {
  const members: readonly Member[] = devices.map((device) => ({
    device,
    rows: Math.min(budgets[device] ?? 0, hotness.rows),
  }));
  return {
    devices,
    pieces: planIsland(hotness, members, devices.length > 1 ? threshold : Infinity),
  };
}

interface Rated {
  readonly plan: PlacementPlan;
  readonly worst: number;
  readonly sum: number;
}

function rated(plan: PlacementPlan, request: PlanRequest): Rated {
  const costs = loadsOf(plan, request).map(({ cost }: DeviceLoad) => cost);
  return { plan, worst: Math.max(...costs), sum: costs.reduce((sum, cost) => sum + cost, 0) };
}

/** Sums of the same numbers in another order differ in their last digits. */
const digits = 1e-12;

function better(one: Rated, other: Rated): Rated {
  const saved = (before: number, after: number) =>
    Math.abs(before - after) <= digits * before ? 0 : before - after;
  const gain = saved(one.worst, other.worst) || saved(one.sum, other.sum);
  return gain > 0 ? other : one;
}

function checkRequest({ hotness, budgets, links, costs }: PlanRequest): void {
  checkLinks(links, costs);
  if (!hotness.falls) throw new RangeError('hotness rises from one run to the next');
  if (budgets.length !== links.length) {
    throw new RangeError(`${budgets.length} budgets for ${links.length} devices`);
  }
  budgets.forEach((rows, device) => {
    if (Number.isSafeInteger(rows) && rows >= 0) return;
    throw new RangeError(`device ${device} may hold ${rows} rows`);
  });
}
