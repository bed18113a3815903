import { HotCurve, type HotRun } from './hot-curve.ts';
import type { Piece, PlacementPlan } from './island-plan.ts';
import { fullLinks, type Links, noLinks, pairLinks, peerCost, type RowCosts } from './links.ts';
import { type DeviceLoad, loadsOf, restOf } from './loads.ts';
import { plainPrefix, planPlacement, spreadMost } from './plan.ts';

/**
 * How much placements would be worth: planned from facts before a job, judged by what epochs
 * read. Beside the plan stand the one that reads least from the host, a plain prefix, a partition
 * by node id and a random spread.
 */

/** What pre-sampling expects of some ranks, and what was measured of them. */
export interface MeasuredRun extends HotRun {
  /** Number of these rows in each equal part of the node ids. */
  readonly partRows: readonly number[];
  /** How often an epoch reads the rows of each part. */
  readonly partReads: readonly number[];
}

export const linkLayouts = ['NONE', 'PAIRS', 'FULL'] as const;
export type LinkLayout = (typeof linkLayouts)[number];

export const placementWays = ['PLANNED', 'SPREAD', 'PREFIX', 'PARTITION', 'RANDOM'] as const;
export type PlacementWay = (typeof placementWays)[number];

export interface Scenario {
  /** Divides the number of parts of the ids. */
  readonly devices: number;
  readonly layout: LinkLayout;
  /** Rows that each device may hold. */
  readonly deviceRows: number;
  /** All links cost what NVLINK does. */
  readonly costs: RowCosts;
}

export interface SimulatedDevice {
  /** Rows that linked devices hold, too; without links all of its rows. */
  readonly copiedRows: number;
  /** Rows that no linked device holds. */
  readonly dealtRows: number;
  /** Load of the rows that the device reads in an epoch. */
  readonly load: DeviceLoad;
}

export interface Simulated {
  readonly way: PlacementWay;
  readonly devices: readonly SimulatedDevice[];
  /** Pieces of PLANNED, SPREAD and PREFIX, island by island. */
  readonly pieces: readonly Piece[];
}

export interface SimulatedLayout extends Omit<Scenario, 'costs'> {
  readonly ratio: number;
  /** Placements, with costs in ns. */
  readonly placements: readonly Simulated[];
}

/** Each number of devices with each layout of links and each ratio of rows that a device holds. */
export interface Scenarios {
  readonly counts: readonly number[];
  readonly links: readonly LinkLayout[];
  readonly ratios: readonly number[];
  readonly rowBytes: number;
  /** Rates are bytes a second. */
  readonly hostRate: number;
  readonly peerRate: number;
}

/** Every scenario, and the rows that an epoch reads in all of them. */
export function simulatePlacements({
  runs,
  scenarios: { counts, links, ratios, rowBytes, hostRate, peerRate },
}: {
  readonly runs: readonly MeasuredRun[];
  readonly scenarios: Scenarios;
}): { readonly inputRows: number; readonly layouts: readonly SimulatedLayout[] } {
  const simulator = new PlacementSimulator(runs);
  const rows = sumOf(runs.map((run) => run.rows));
  const nsOf = (rate: number) => (rowBytes / rate) * 1e9;
  const costs = { host: nsOf(hostRate), links: { NVLINK: nsOf(peerRate) } };
  const layouts = counts.flatMap((devices) =>
    links.flatMap((layout) =>
      ratios.map((ratio): SimulatedLayout => {
        const deviceRows = Math.floor(ratio * rows);
        const placements = simulator.run({ devices, layout, deviceRows, costs });
        return { devices, layout, deviceRows, ratio, placements };
      }),
    ),
  );
  return { inputRows: simulator.inputRows, layouts };
}

/** Loads are for as many rows as an epoch reads, as if each device computed a whole one. */
export class PlacementSimulator {
  /** Rows that an epoch reads. */
  readonly inputRows: number;
  private readonly runs: readonly MeasuredRun[];
  private readonly expected: HotCurve;
  private readonly measured: HotCurve;

  /** Throws RangeError where runs cannot be, as HotCurve does. */
  constructor(runs: readonly MeasuredRun[]) {
    this.runs = runs;
    this.expected = new HotCurve(runs);
    this.measured = new HotCurve(
      runs.map(({ rows, partReads }) => ({ rows, hotness: sumOf(partReads) / rows })),
    );
    this.inputRows = this.measured.total;
  }

  /** One simulation for each of placementWays. */
  run(scenario: Scenario): readonly Simulated[] {
    const { devices, layout, deviceRows, costs } = scenario;
    const links = linksOfLayout[layout](devices);
    const budgets = new Array<number>(devices).fill(deviceRows);
    const request = { hotness: this.expected, budgets, links, costs };
    return [
      this.judged('PLANNED', planPlacement(request), { links, costs }),
      this.judged('SPREAD', spreadMost(request), { links, costs }),
      this.judged('PREFIX', plainPrefix(request), { links, costs }),
      this.parted('PARTITION', this.partition(scenario), { links, costs }),
      this.parted('RANDOM', this.random(scenario), { links, costs }),
    ];
  }

  private judged(way: PlacementWay, plan: PlacementPlan, world: World): Simulated {
    const loads = loadsOf(plan, { ...world, hotness: this.measured });
    const devices = loads.map((load, device) => ({ ...holdingsOf(plan, device), load }));
    return { way, devices, pieces: plan.islands.flatMap(({ pieces }) => pieces) };
  }

  /** Simulates devices of which no two hold the same row. */
  private parted(
    way: PlacementWay,
    held: readonly { readonly rows: number; readonly reads: number }[],
    { links, costs }: World,
  ): Simulated {
    const devices = held.map(({ rows, reads: own }, device): SimulatedDevice => {
      let [peer, cost] = [0, 0];
      held.forEach(({ reads }, other) => {
        const each = other === device ? Infinity : peerCost(links, costs, device, other);
        if (each === Infinity) return;
        peer += reads;
        cost += reads * each;
      });
      const host = restOf(this.inputRows, own + peer);
      const load = { own, peer, host, cost: cost + host * costs.host };
      return { copiedRows: 0, dealtRows: rows, load };
    });
    return { way, devices, pieces: [] };
  }

  /** Each device has its part of the ids, and of these the hottest that fit. */
  private partition({ devices, deviceRows }: Scenario) {
    return Array.from({ length: devices }, (_, device) => {
      let [rows, reads] = [0, 0];
      for (const { partRows, partReads } of this.runs) {
        const perDevice = partRows.length / devices;
        const [from, to] = [device * perDevice, (device + 1) * perDevice];
        const there = sumOf(partRows.slice(from, to));
        const taken = Math.min(there, deviceRows - rows);
        if (taken === 0) continue;
        rows += taken;
        reads += sumOf(partReads.slice(from, to)) * (taken / there);
      }
      return { rows, reads };
    });
  }

  /** Rows are given out at random, until devices are full; what is expected of that. */
  private random({ devices, deviceRows }: Scenario) {
    const rows = Math.min(deviceRows, Math.floor(this.measured.rows / devices));
    const reads = this.inputRows * (rows / this.measured.rows);
    return Array.from({ length: devices }, () => ({ rows, reads }));
  }
}

/** Rows that a device holds by a plan: those that linked ones hold, too, and the others. */
export function holdingsOf(
  plan: PlacementPlan,
  device: number,
): Pick<SimulatedDevice, 'copiedRows' | 'dealtRows'> {
  const { pieces = [], devices: near = [] } =
    plan.islands.find((island) => island.devices.includes(device)) ?? {};
  const held = pieces.map((piece) => ({ piece, rows: rowsWith(device, piece) }));
  const isAlone = (piece: Piece) => piece.isDealt || piece.holders.length === 1;
  const dealtRows =
    near.length === 1
      ? 0
      : sumOf(held.filter(({ piece }) => isAlone(piece)).map(({ rows }) => rows));
  return { copiedRows: sumOf(held.map(({ rows }) => rows)) - dealtRows, dealtRows };
}

interface World {
  readonly links: Links;
  readonly costs: RowCosts;
}

const linksOfLayout: Readonly<Record<LinkLayout, (devices: number) => Links>> = {
  NONE: noLinks,
  PAIRS: pairLinks,
  FULL: fullLinks,
};

/** Ranks of the piece that the device holds. */
export function rowsWith(device: number, { from, to, holders, isDealt }: Piece): number {
  const hand = holders.findIndex((holder) => holder.device === device);
  if (hand < 0) return 0;
  return isDealt ? Math.ceil((to - from - hand) / holders.length) : to - from;
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
