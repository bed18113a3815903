import { describe, expect, test } from 'vitest';
import type { LinkClass } from '../../../src/base/link-classes.ts';
import { HotCurve } from '../../../src/placement/hot-curve.ts';
import { type PlacementPlan, planIsland } from '../../../src/placement/island-plan.ts';
import {
  fullLinks,
  type Links,
  linksOf,
  noLinks,
  pairLinks,
} from '../../../src/placement/links.ts';
import { loadsOf } from '../../../src/placement/loads.ts';
import { type PlanRequest, plainPrefix, planPlacement } from '../../../src/placement/plan.ts';
import { tiersOf } from '../../../src/placement/tiers.ts';
import { algorithmOne, waitsOf } from '../../support/algorithm-one.ts';
import { forAll, type Random } from '../../support/random.ts';
import { curveOf, lookUp, rowsOf, someHotness } from './made.ts';

/** Song and Jiang's running example: six nodes, by rank 1, 2, 3, 4, 5, 0; two linked devices. */
const example = {
  hotness: [1, 1, 1, 5 / 6, 5 / 6, 2 / 3],
  nodes: [1, 2, 3, 4, 5, 0],
  budgets: [2, 2],
  costs: { host: 1, links: { NVLINK: 0.3 } },
  links: fullLinks(2),
};

/** Plans for all devices in one island. */
function inOneIsland(
  hotness: readonly number[],
  budgets: readonly number[],
  threshold: number,
): PlacementPlan {
  const members = budgets.map((rows, device) => ({
    device,
    rows: Math.min(rows, hotness.length),
  }));
  const pieces = planIsland(curveOf(hotness), members, threshold);
  return { islands: [{ devices: budgets.map((_, device) => device), pieces }] };
}

const rounded = (values: readonly number[]) => values.map((value) => Number(value.toFixed(4)));

describe("the paper's running example", () => {
  const { hotness, nodes, budgets, links, costs } = example;
  const nodesOf = (plan: PlacementPlan) =>
    rowsOf(plan, hotness.length, example).map((held) =>
      [...held].sort(([a], [b]) => a - b).map(([, rank]) => nodes[rank]),
    );
  const waits = (plan: PlacementPlan) =>
    rounded(loadsOf(plan, { hotness: curveOf(hotness), links, costs }).map(({ cost }) => cost));

  test.each([
    // The threshold at which the example stands where its text does, what is held (of devices that
    // are alike, the rotation begins with the other one), what it costs.
    [
      'the start',
      1,
      [
        [1, 2],
        [1, 2],
      ],
      [3.3333, 3.3333],
    ],
    [
      'replacement 1',
      0.9,
      [
        [1, 2],
        [1, 3],
      ],
      [2.6333, 2.6333],
    ],
    [
      'replacement 2',
      0.3,
      [
        [1, 3],
        [2, 4],
      ],
      [2.05, 2.1],
    ],
  ] as const)('%s', (_, threshold, held, costsThen) => {
    const plan = inOneIsland(hotness, budgets, threshold);
    expect(nodesOf(plan)).toEqual(held);
    expect(waits(plan)).toEqual(costsThen);
  });

  test('the reference, row by row, ends with the tables that the paper prints', () => {
    const { rows, tookOver, end } = algorithmOne(hotness, budgets, 0.3);
    expect(rows.map((held) => held.map((rank) => nodes[rank]))).toEqual([
      [1, 3],
      [4, 2],
    ]);
    expect(tookOver).toEqual([1, 5 / 6]);
    expect(end).toBe(4);
    expect(rounded(waitsOf(hotness, rows, { host: 1, peer: 0.3 }))).toEqual([2.05, 2.1]);
    const found = hotness.map((_, rank) => rows.findIndex((held) => held.includes(rank)) + 1 || -1);
    const position = (rank: number) =>
      rows.flatMap((held) => held.indexOf(rank)).find((p) => p >= 0);
    const byNode = [0, 1, 2, 3, 4, 5].map((node) => nodes.indexOf(node));
    expect(byNode.map((rank) => found[rank])).toEqual([-1, 1, 2, 1, 2, -1]);
    expect(byNode.map((rank, node) => position(rank) ?? node)).toEqual([0, 0, 1, 1, 0, 5]);
  });

  test('is what is planned for its costs', () => {
    const plan = planPlacement({ hotness: curveOf(hotness), budgets, links, costs });
    expect(nodesOf(plan)).toEqual([
      [1, 3],
      [2, 4],
    ]);
    expect(tiersOf(plan, example)).toEqual([
      [
        {
          from: 0,
          to: 4,
          places: [
            { device: 0, row: 0 },
            { device: 1, row: 0 },
          ],
        },
      ],
      [
        {
          from: 0,
          to: 4,
          places: [
            { device: 0, row: 0 },
            { device: 1, row: 0 },
          ],
        },
      ],
    ]);
  });
});

describe('Algorithm 1 by its borders', () => {
  test('holds as many copies of each rank as row by row, of any sizes at any threshold', () => {
    forAll(150, (random) => {
      const hotness = someHotness(random, 60);
      const devices = random.integer(1, 8);
      const most = random.integer(0, 20);
      const isEven = random.chance(0.5);
      const budgets = Array.from({ length: devices }, () =>
        isEven ? most : random.integer(0, most),
      );
      const threshold = random.pick([0, 0.05, 0.2, 0.5, 1]);
      const reference = algorithmOne(hotness, budgets, threshold).rows.flat();
      const world = { links: fullLinks(devices), costs: { host: 1, links: { NVLINK: 0.1 } } };
      const held = rowsOf(inOneIsland(hotness, budgets, threshold), hotness.length, world);
      const planned = held.flatMap((rows) => [...rows.values()]);
      const byRank = (a: number, b: number) => a - b;
      expect(planned.sort(byRank)).toEqual(reference.sort(byRank));
      held.forEach((rows, device) => {
        const size = Math.min(budgets[device] ?? 0, hotness.length);
        expect([...rows.keys()].sort(byRank)).toEqual(
          Array.from({ length: size }, (_, row) => row),
        );
      });
    });
  });

  test('a free link fills all rows with distinct ranks; none moves at a threshold of 1', () => {
    const hotness = Array.from({ length: 100 }, (_, rank) => 100 - rank);
    const distinct = (threshold: number) => {
      const rows = rowsOf(inOneIsland(hotness, [20, 20, 20, 20], threshold), 100, {
        links: fullLinks(4),
        costs: { host: 1, links: { NVLINK: 0.1 } },
      });
      return new Set(rows.flatMap((held) => [...held.values()])).size;
    };
    expect(distinct(0)).toBe(80);
    expect(distinct(1)).toBe(20);
    const falling = [0, 0.2, 0.4, 0.6, 0.8, 1].map(distinct);
    expect(falling).toEqual([...falling].sort((a, b) => b - a));
  });

  test('a rank just as hot as the threshold asks replaces nothing', () => {
    const plan = inOneIsland([4, 4, 2, 2], [2, 2], 0.5);
    expect(plan.islands[0]?.pieces.map(({ to, isDealt }) => [to, isDealt])).toEqual([[2, false]]);
  });

  test('a graph that fits is whole on every device', () => {
    const plan = inOneIsland([3, 2, 1], [5, 3], 0);
    expect(plan.islands[0]?.pieces).toEqual([
      { from: 0, to: 3, holders: [0, 1].map((device) => ({ device, row: 0 })), isDealt: false },
    ]);
  });
});

/** Any links of three classes, any budgets. */
function someWorld(
  random: Random,
  most = 60,
): PlanRequest & { readonly values: readonly number[] } {
  const devices = random.integer(1, 6);
  const values = someHotness(random, most);
  const classes = random.pick<readonly (LinkClass | null)[]>([
    [null],
    ['NVLINK'],
    ['NVLINK', null],
    ['NVLINK', 'PCIE', 'HOST_BUS', null],
  ]);
  const links = linksOf(devices, () => random.pick(classes));
  const rows = random.integer(0, 20);
  const isEven = random.chance(0.5);
  const budgets = Array.from({ length: devices }, () => (isEven ? rows : random.integer(0, rows)));
  const costs = {
    host: 1,
    links: { NVLINK: random.pick([0, 0.1, 0.3]), PCIE: 0.6, HOST_BUS: 1.2 },
  };
  return { hotness: curveOf(values), values, budgets, links, costs };
}

const worstOf = (plan: PlacementPlan, world: PlanRequest) =>
  Math.max(...loadsOf(plan, world).map(({ cost }) => cost));

describe('a plan', () => {
  test('never has a device wait longer, nor read more from the host, than a plain prefix', () => {
    forAll(150, (random) => {
      const world = someWorld(random);
      const [plan, prefix] = [planPlacement(world), plainPrefix(world)];
      const before = loadsOf(prefix, world);
      expect(worstOf(plan, world)).toBeLessThanOrEqual(worstOf(prefix, world) + 1e-9);
      loadsOf(plan, world).forEach((load, device) => {
        expect(load.host).toBeLessThanOrEqual((before[device]?.host ?? 0) + 1e-9);
      });
    });
  });

  test('keeps to every budget, and tells where each rank below its end lies', () => {
    forAll(100, (random) => {
      const world = someWorld(random);
      const plan = planPlacement(world);
      const held = rowsOf(plan, world.hotness.rows, world);
      held.forEach((rows, device) => {
        expect(rows.size).toBeLessThanOrEqual(world.budgets[device] ?? 0);
        expect(Math.max(-1, ...rows.keys())).toBeLessThan(world.budgets[device] ?? 0);
      });
      const tables = tiersOf(plan, world);
      for (const { devices, pieces } of plan.islands) {
        const end = pieces.at(-1)?.to ?? 0;
        for (const device of devices) {
          const own = new Set(held[device]?.values());
          const lost = Array.from({ length: end }, (_, rank) => rank).filter((rank) => {
            const place = lookUp(tables[device] ?? [], rank);
            if (place === null || held[place.device]?.get(place.row) !== rank) return true;
            return own.has(rank) && place.device !== device;
          });
          expect(lost).toEqual([]);
          expect(lookUp(tables[device] ?? [], end)).toBe(null);
        }
      }
    });
  });

  test('waits as long as reading row by row says', () => {
    forAll(100, (random) => {
      const devices = random.integer(1, 5);
      const values = someHotness(random, 40);
      const budgets = Array.from({ length: devices }, () => random.integer(0, 12));
      const costs = { host: 2, links: { NVLINK: random.pick([0.1, 0.9, 2, 5]) } };
      const world = { hotness: curveOf(values), budgets, links: fullLinks(devices), costs };
      const plan = planPlacement(world);
      const rows = rowsOf(plan, values.length, world).map((held) => [...held.values()]);
      const expected = waitsOf(values, rows, { host: 2, peer: costs.links.NVLINK });
      loadsOf(plan, world).forEach(({ cost, own, peer, host }, device) => {
        expect(cost).toBeCloseTo(expected[device] ?? NaN, 9);
        expect(own + peer + host).toBeCloseTo(world.hotness.total, 9);
      });
    });
  });

  test('treats like devices alike: as many rows, hotter in all by no more than one row', () => {
    forAll(100, (random) => {
      const values = someHotness(random, 80);
      const devices = random.pick([2, 4, 8]);
      const rows = random.integer(0, 20);
      const world: PlanRequest = {
        hotness: curveOf(values),
        budgets: new Array<number>(devices).fill(rows),
        links: random.chance(0.5) ? fullLinks(devices) : pairLinks(devices),
        costs: { host: 1, links: { NVLINK: random.pick([0.02, 0.2, 0.6]) } },
      };
      const plan = planPlacement(world);
      const held = rowsOf(plan, values.length, world);
      const sizes = held.map(({ size }) => size);
      expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
      const own = loadsOf(plan, world).map((load) => load.own);
      expect(Math.max(...own) - Math.min(...own)).toBeLessThanOrEqual((values[0] ?? 0) + 1e-9);
    });
  });

  test.each([
    ['one device', noLinks(1), { host: 1, links: { NVLINK: 0.1 } }],
    ['devices without links', noLinks(4), { host: 1, links: { NVLINK: 0.1 } }],
    ['links as dear as the host', fullLinks(4), { host: 1, links: { NVLINK: 1 } }],
    ['links that nobody measured', fullLinks(4), { host: 1, links: { PCIE: 0.1 } }],
  ])('is the plain prefix for %s', (_, links: Links, costs) => {
    const hotness = curveOf([9, 7, 5, 3, 1]);
    const budgets = links.map(() => 2);
    const request = { hotness, budgets, links, costs };
    expect(planPlacement(request)).toEqual(plainPrefix(request));
    tiersOf(planPlacement(request), request).forEach((tiers, device) => {
      expect(tiers).toEqual([{ from: 0, to: 2, places: [{ device, row: 0 }] }]);
    });
  });

  test('is close to the best of all placements of tiny graphs, which it never beats', () => {
    let worstGap = 1;
    forAll(60, (random) => {
      const values = someHotness(random, 6);
      const costs = { host: 1, links: { NVLINK: random.pick([0.1, 0.3, 0.6]) } };
      const request = { hotness: curveOf(values), budgets: [2, 2], links: fullLinks(2), costs };
      const planned = worstOf(planPlacement(request), request);
      const best = bestOfAll(values, costs.links.NVLINK);
      expect(planned).toBeGreaterThanOrEqual(best - 1e-9);
      worstGap = Math.max(worstGap, best === 0 ? 1 : planned / best);
    });
    // Two rows a device: a row more or less of the same heat is much there.
    expect(worstGap).toBeLessThan(1.2);
  });

  test('tells of more than one island where links come in pairs, all alike', () => {
    const hotness = curveOf(Array.from({ length: 40 }, (_, rank) => 40 - rank));
    const request = {
      hotness,
      budgets: [8, 8, 8, 8],
      links: pairLinks(4),
      costs: { host: 1, links: { NVLINK: 0.2 } },
    };
    const { islands } = planPlacement(request);
    expect(islands.map(({ devices }) => devices)).toEqual([
      [0, 1],
      [2, 3],
    ]);
    const [first, second] = islands.map(({ pieces }) => pieces.map(({ from, to }) => [from, to]));
    expect(first).toEqual(second);
  });

  test('uses slow links too where that pays, and leaves them where it does not', () => {
    const links = linksOf(4, (i, j) => (i % 2 === 0 && j === i + 1 ? 'NVLINK' : 'PCIE'));
    const costs = (pcie: number) => ({ host: 1, links: { NVLINK: 0.1, PCIE: pcie } });
    // All equally hot: more distinct rows are worth more.
    const flat = new HotCurve([{ rows: 400, hotness: 1 }]);
    const request = { hotness: flat, budgets: [50, 50, 50, 50], links };
    const islands = (pcie: number) => planPlacement({ ...request, costs: costs(pcie) }).islands;
    expect(islands(0.4).map(({ devices }) => devices)).toEqual([[0, 1, 2, 3]]);
    expect(islands(1.5).map(({ devices }) => devices)).toEqual([
      [0, 1],
      [2, 3],
    ]);
  });
});

/** The least that the slower of two linked devices with two rows each can wait. */
function bestOfAll(hotness: readonly number[], peer: number): number {
  const ranks = hotness.map((_, rank) => rank);
  const pairs = ranks.flatMap((a) => [[a], ...ranks.slice(a + 1).map((b) => [a, b])]);
  const waits = pairs.flatMap((one) =>
    pairs.map((other) => Math.max(...waitsOf(hotness, [one, other], { host: 1, peer }))),
  );
  return Math.min(...waits);
}

/** Counts what is asked of it. */
class CountingCurve extends HotCurve {
  asked = 0;
  deals = 0;

  override at(rank: number): number {
    this.asked += 1;
    return super.at(rank);
  }

  override dealt(from: number, to: number, hands: number): readonly number[] {
    this.deals += 1;
    return super.dealt(from, to, hands);
  }
}

describe('a plan of a graph of the size of ogbn-papers100M', () => {
  test('looks at runs and borders, never at rows: some hundred pieces of hotness a device', () => {
    const runs = Array.from({ length: 2000 }, (_, i) => ({
      rows: Math.ceil(1.004 ** i) * 4,
      hotness: 1172 * (1 + i) ** -1.3,
    }));
    const rows = runs.reduce((sum, run) => sum + run.rows, 0);
    runs.push({ rows: 111_059_956 - rows, hotness: 0.001 });
    const hotness = new CountingCurve(runs);
    const budgets = new Array<number>(8).fill(11_000_000);
    const request = { hotness, budgets, links: fullLinks(8) };
    const plan = planPlacement({ ...request, costs: { host: 1, links: { NVLINK: 0.05 } } });
    const [island] = plan.islands;
    expect(island?.pieces.length).toBeLessThanOrEqual(3);
    expect(island?.pieces.at(-1)?.to).toBeGreaterThan(11_000_000);
    // Halving 11 million rows takes 24 steps; each asks for the rank and at most 3 of 7 candidates,
    // for 2 thresholds; and for the rank alone on 8 devices with plain prefixes.
    expect(hotness.asked).toBeLessThanOrEqual(25 * (2 * 4 + 8));
    // 8 devices, 2 plans of at most 3 pieces, and the plain prefix.
    expect(hotness.deals).toBeLessThanOrEqual(8 * (2 * 3 + 1));
  });
});
