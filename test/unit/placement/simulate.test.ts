import { describe, expect, test } from 'vitest';
import {
  linkLayouts,
  type MeasuredRun,
  PlacementSimulator,
  type PlacementWay,
  type Simulated,
} from '../../../src/placement/simulate.ts';
import { forAll, type Random } from '../../support/random.ts';

const costs = { host: 1, links: { NVLINK: 0.2 } };

/** 80 rows, ten of each eighth of the ids; hot ones in the first half of these. */
const runs: readonly MeasuredRun[] = [
  {
    rows: 8,
    hotness: 10,
    partRows: [2, 2, 2, 2, 0, 0, 0, 0],
    partReads: [20, 20, 20, 20, 0, 0, 0, 0],
  },
  { rows: 32, hotness: 2, partRows: [4, 4, 4, 4, 4, 4, 4, 4], partReads: [8, 8, 8, 8, 8, 8, 8, 8] },
  { rows: 40, hotness: 1, partRows: [4, 4, 4, 4, 6, 6, 6, 6], partReads: [4, 4, 4, 4, 6, 6, 6, 6] },
];

function byWay(found: readonly Simulated[], way: PlacementWay): Simulated {
  const one = found.find((each) => each.way === way);
  if (one === undefined) throw new Error(`no ${way}`);
  return one;
}

const own = ({ devices }: Simulated) => devices.map(({ load }) => load.own);
const host = ({ devices }: Simulated) => devices.map(({ load }) => load.host);

describe('two linked devices of 16 rows each', () => {
  const simulator = new PlacementSimulator(runs);
  const found = simulator.run({ devices: 2, layout: 'PAIRS', deviceRows: 16, costs });

  test('read an epoch of 184 rows', () => {
    expect(simulator.inputRows).toBe(184);
    for (const { devices } of found) {
      for (const { load } of devices) expect(load.own + load.peer + load.host).toBeCloseTo(184, 9);
    }
  });

  test('have the hottest rows each, as a plain cache', () => {
    const prefix = byWay(found, 'PREFIX');
    expect(own(prefix)).toEqual([96, 96]);
    expect(host(prefix)).toEqual([88, 88]);
    expect(prefix.devices.map(({ copiedRows }) => copiedRows)).toEqual([16, 16]);
  });

  test('have their halves of the ids, of these the hottest', () => {
    const partition = byWay(found, 'PARTITION');
    // 8 hot ones and half of the 16 next; all 16 next.
    expect(own(partition)).toEqual([96, 32]);
    expect(host(partition)).toEqual([56, 56]);
    expect(partition.devices.map(({ load }) => load.cost)).toEqual([32 * 0.2 + 56, 96 * 0.2 + 56]);
  });

  test('have any rows, one each', () => {
    expect(own(byWay(found, 'RANDOM'))).toEqual(
      [36.8, 36.8].map((rows) => expect.closeTo(rows, 9)),
    );
  });

  test('have hot rows twice where links are dear, once where least is to be read', () => {
    const spread = byWay(found, 'SPREAD');
    expect(spread.devices.map(({ copiedRows, dealtRows }) => [copiedRows, dealtRows])).toEqual([
      [0, 16],
      [0, 16],
    ]);
    expect(host(spread)).toEqual([56, 56]);
    const dear = { host: 1, links: { NVLINK: 0.5 } };
    const planned = byWay(
      simulator.run({ devices: 2, layout: 'PAIRS', deviceRows: 16, costs: dear }),
      'PLANNED',
    );
    expect(planned.devices.map(({ copiedRows, dealtRows }) => [copiedRows, dealtRows])).toEqual([
      [8, 8],
      [8, 8],
    ]);
    expect(host(planned)).toEqual([72, 72]);
  });
});

/** What is read is what was expected; parts are any. */
function someRuns(random: Random): readonly MeasuredRun[] {
  let hotness = random.integer(1, 50);
  return Array.from({ length: random.integer(1, 30) }, () => {
    const rows = random.integer(1, 20);
    hotness *= random.pick([1, 0.9, 0.6]);
    const partRows = new Array<number>(8).fill(0);
    for (let row = 0; row < rows; row += 1) {
      const part = random.integer(0, random.pick([1, 7]));
      partRows[part] = (partRows[part] ?? 0) + 1;
    }
    return { rows, hotness, partRows, partReads: partRows.map((count) => count * hotness) };
  });
}

test('nothing waits less than the plan, nothing reads less from the host than the spread', () => {
  forAll(60, (random) => {
    const given = someRuns(random);
    const simulator = new PlacementSimulator(given);
    const rows = given.reduce((sum, run) => sum + run.rows, 0);
    const scenario = {
      devices: random.pick([1, 2, 4, 8]),
      layout: random.pick(linkLayouts),
      deviceRows: random.integer(0, Math.ceil(rows / 3)),
      costs: { host: 1, links: { NVLINK: random.pick([0.05, 0.2, 0.7, 1.5]) } },
    };
    const found = simulator.run(scenario);
    const worst = ({ devices }: Simulated) => Math.max(...devices.map(({ load }) => load.cost));
    const reads = (way: Simulated) => host(way).reduce((sum, one) => sum + one, 0);
    // Devices differ by the hotness of one row, which one of them has and all others read.
    const slack = (given[0]?.hotness ?? 0) + 1e-9;
    for (const way of found) {
      expect(worst(byWay(found, 'PLANNED'))).toBeLessThanOrEqual(worst(way) + slack);
      expect(reads(byWay(found, 'SPREAD'))).toBeLessThanOrEqual(reads(way) + 1e-9 * reads(way));
      for (const device of way.devices) {
        expect(device.copiedRows + device.dealtRows).toBeLessThanOrEqual(scenario.deviceRows);
      }
    }
  });
});
