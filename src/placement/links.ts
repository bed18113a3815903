import type { LinkClass } from '../base/link-classes.ts';

/** Which devices read each other's memory, over what, and what that costs. */

/** Symmetric: what joins device i and device j; null: neither reads the other's memory. */
export type Links = readonly (readonly (LinkClass | null)[])[];

/**
 * Time that a device waits for one row of the job's size, in any unit, all devices reading at once;
 * a row of its own counts as 0. A class that was not measured is not used.
 */
export interface RowCosts {
  readonly host: number;
  readonly links: Partial<Record<LinkClass, number>>;
}

/** Most devices of a host; searching all ways to use links grows with 2^n. */
export const devicesMax = 16;

/**
 * Below this share of the host's cost a link is not believed to be cheaper: a plan for a free link
 * would keep the hottest row on one device, which all others would then read it from.
 */
const linkShareMin = 0.02;

/** Links by what joins device i and device j, i < j; asked once a pair. */
export function linksOf(
  devices: number,
  between: (i: number, j: number) => LinkClass | null,
): Links {
  const links = rangeOf(devices).map(() => new Array<LinkClass | null>(devices).fill(null));
  links.forEach((row, i) => {
    for (let j = i + 1; j < devices; j += 1) {
      row[j] = between(i, j);
      (links[j] ?? [])[i] = row[j] ?? null;
    }
  });
  return links;
}

export const noLinks = (devices: number): Links => linksOf(devices, () => null);

/** Devices 0 and 1, 2 and 3, …, joined by bridges; an odd last one is alone. */
export const pairLinks = (devices: number, by: LinkClass = 'NVLINK'): Links =>
  linksOf(devices, (i, j) => (i % 2 === 0 && j === i + 1 ? by : null));

/** Links of devices that a switch joins, each with each. */
export const fullLinks = (devices: number, by: LinkClass = 'NVLINK'): Links =>
  linksOf(devices, () => by);

/** Cost of a row of device `j` for another device `i`; Infinity: `i` has to ask the host. */
export function peerCost(links: Links, costs: RowCosts, i: number, j: number): number {
  const by = links[i]?.[j] ?? null;
  const cost = by === null ? Infinity : (costs.links[by] ?? Infinity);
  return cost < costs.host ? Math.max(cost, linkShareMin * costs.host) : Infinity;
}

/** The links among some of the devices, which are then 0, 1, … in their order. */
export function linksAmong(links: Links, devices: readonly number[]): Links {
  return devices.map((i) => devices.map((j) => links[i]?.[j] ?? null));
}

/** Throws RangeError unless these are links among 1 to `devicesMax` devices. */
export function checkLinks(links: Links, costs: RowCosts): void {
  const { length } = links;
  if (length < 1 || length > devicesMax) {
    throw new RangeError(`links are of ${length} devices, expected 1 to ${devicesMax}`);
  }
  links.forEach((row, i) => {
    const isWhole = row.length === length && row[i] === null;
    if (isWhole && row.every((link, j) => link === links[j]?.[i])) return;
    throw new RangeError(
      `links of device ${i} are ${JSON.stringify(row)}, expected a symmetric row`,
    );
  });
  if (!(costs.host > 0 && costs.host < Infinity)) {
    throw new RangeError(`a row from the host costs ${costs.host}, expected a positive number`);
  }
  for (const [by, cost] of Object.entries(costs.links)) {
    if (cost >= 0) continue;
    throw new RangeError(`a row over ${by} costs ${cost}, expected a number that is not negative`);
  }
}

/** Devices of which every two read each other's rows faster than the host's, ascending. */
export type Island = readonly number[];

/**
 * Every way to make islands of links that cost at most as much as some link does, from the fastest
 * links alone to all of them. Links that are not cheaper than the host are none.
 */
export function islandChoices(links: Links, costs: RowCosts): readonly (readonly Island[])[] {
  const limits = new Set<number>();
  links.forEach((row, i) => {
    row.forEach((_, j) => {
      const cost = i === j ? Infinity : peerCost(links, costs, i, j);
      if (cost < Infinity) limits.add(cost);
    });
  });
  return [...limits]
    .sort((a, b) => a - b)
    .map((limit) => islandsOf(links.length, (i, j) => peerCost(links, costs, i, j) <= limit));
}

/**
 * Devices in islands, so that as many pairs as possible are in one; ties by the first device's
 * island being the larger, then by lower devices.
 */
function islandsOf(
  devices: number,
  isJoined: (i: number, j: number) => boolean,
): readonly Island[] {
  const joined = Array.from({ length: devices }, (_, i) =>
    maskOf(rangeOf(devices).filter((j) => j !== i && isJoined(i, j))),
  );
  const known = new Map<number, Cover>([[0, { pairs: 0, islands: [] }]]);
  const best = (left: number): Cover => {
    const before = known.get(left);
    if (before !== undefined) return before;
    let found: Cover = { pairs: -1, islands: [] };
    for (const island of islandsOfFirst(left, joined)) {
      const rest = best(left & ~maskOf(island));
      const pairs = rest.pairs + (island.length * (island.length - 1)) / 2;
      if (pairs > found.pairs) found = { pairs, islands: [island, ...rest.islands] };
    }
    known.set(left, found);
    return found;
  };
  return best(2 ** devices - 1).islands;
}

interface Cover {
  readonly pairs: number;
  readonly islands: readonly Island[];
}

/** Islands that the lowest of `left` could be in, larger ones first. */
function islandsOfFirst(left: number, joined: readonly number[]): readonly Island[] {
  const first = lowest(left);
  const near = left & ((joined[first] ?? 0) | (1 << first));
  const members = rangeOf(devicesMax).filter((device) => (near & (1 << device)) !== 0);
  // All of these are joined to each other and to no other: parting them would only lose pairs.
  const isClosed = members.every(
    (device) => (left & ((joined[device] ?? 0) | (1 << device))) === near,
  );
  if (isClosed) return [members];
  let islands: readonly Island[] = [[first]];
  for (const device of members.slice(1)) {
    const mask = joined[device] ?? 0;
    const grown = islands.filter((island) => (maskOf(island) & ~mask) === 0);
    islands = [...islands, ...grown.map((island) => [...island, device])];
  }
  return islands.toSorted((a, b) => b.length - a.length);
}

function rangeOf(count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => i);
}

function maskOf(devices: Island): number {
  return devices.reduce((mask, device) => mask | (1 << device), 0);
}

function lowest(mask: number): number {
  return 31 - Math.clz32(mask & -mask);
}
