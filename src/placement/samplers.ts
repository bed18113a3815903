import { linksAmong } from './links.ts';
import { loadsOf } from './loads.ts';
import { type PlanRequest, planPlacement } from './plan.ts';

/**
 * Which devices become Samplers: a Sampler's memory holds topology, so its links are lost to the
 * Trainers. Where links come in pairs, whole pairs should sample.
 */

/**
 * `count` of the devices, ascending, so that the others wait least for rows in all; ties go to the
 * smaller wait of the slowest one, then to the first devices. All sets are tried, at most 12,870 of
 * 16 devices. Throws RangeError as planPlacement does, and unless a device is left to train.
 */
export function samplersAmong(count: number, request: PlanRequest): readonly number[] {
  const { length } = request.links;
  if (!Number.isSafeInteger(count) || count < 0 || count >= length) {
    throw new RangeError(`${count} Samplers among ${length} devices, expected 0 to ${length - 1}`);
  }
  const waits = new Map<string, Wait>();
  let best: { readonly samplers: readonly number[]; readonly wait: Wait } | null = null;
  for (const samplers of choicesOf(count, length)) {
    const wait = waitWithout(samplers, request, waits);
    if (best === null || isLess(wait, best.wait)) best = { samplers, wait };
  }
  return best?.samplers ?? [];
}

interface Wait {
  readonly sum: number;
  readonly worst: number;
}

function waitWithout(
  samplers: readonly number[],
  request: PlanRequest,
  known: Map<string, Wait>,
): Wait {
  const trainers = request.links.map((_, i) => i).filter((i) => !samplers.includes(i));
  const links = linksAmong(request.links, trainers);
  const budgets = trainers.map((device) => request.budgets[device] ?? 0);
  // Many sets leave the same links among devices of the same sizes.
  const key = JSON.stringify([links, budgets]);
  const before = known.get(key);
  if (before !== undefined) return before;
  const among = { ...request, links, budgets };
  const costs = loadsOf(planPlacement(among), among).map(({ cost }) => cost);
  const wait = { sum: costs.reduce((sum, cost) => sum + cost, 0), worst: Math.max(...costs) };
  known.set(key, wait);
  return wait;
}

const digits = 1e-12;

function isLess(one: Wait, other: Wait): boolean {
  if (Math.abs(one.sum - other.sum) > digits * other.sum) return one.sum < other.sum;
  return one.worst < other.worst * (1 - digits);
}

/** Every set of `count` numbers below `end`, in lexical order. */
function* choicesOf(count: number, end: number, from = 0): Generator<readonly number[]> {
  if (count === 0) {
    yield [];
    return;
  }
  for (let first = from; first <= end - count; first += 1) {
    for (const rest of choicesOf(count - 1, end, first + 1)) yield [first, ...rest];
  }
}
