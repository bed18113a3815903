import type { LinkRates } from '../base/link-classes.ts';
import type { Accelerator, CrewDevice } from '../devices/seat.ts';
import {
  counters,
  type ExecutorSnapshot,
  type RankedRun,
  type RowPlacement,
} from '../native/contract.ts';
import {
  type DeviceLoad,
  devicesMax,
  HotCurve,
  holdingsOf,
  linksOf,
  loadsOf,
  type PlacementPlan,
  type PlanRequest,
  planPlacement,
  type RowCosts,
  samplersAmong,
  type Tiers,
  tiersOf,
} from '../placement/placement.ts';
import type { PlacedDevice, RowPlacementPlan, RowShares } from '../records/job-record.ts';
import type { CachePolicy, JobSpec } from '../spec/job-spec.ts';
import { automaticRatio } from '../spec/limits.ts';
import type { PlacedViews } from '../supervisor/supervisor.ts';

/**
 * Which Trainer's device holds which feature rows (docs/placement.md): the plan of src/placement
 * for the Trainers of a run, as executors and people read it. It decides no bit.
 */

export interface PlacingFacts {
  readonly spec: Pick<JobSpec, 'cache'>;
  /** Runs of the cache's order; empty: nothing was ranked. */
  readonly runs: readonly RankedRun[];
  readonly rowBytes: number;
  /** Rows that each Trainer may hold. */
  readonly rows: number;
  readonly batchesPerEpoch: number;
  /** All devices of the attempt; the index is the segment's device number. */
  readonly devices: readonly CrewDevice[];
  /** Names of the devices that train and do nothing else. */
  readonly trainers: ReadonlySet<string>;
}

export interface PlacedRows extends PlacedViews {
  readonly plan: RowPlacementPlan;
}

/** Places rows on Trainers; null where no two Trainers have memory of their own. */
export function placeRows(facts: PlacingFacts): PlacedRows | null {
  const trainers = trainersOf(facts);
  if (trainers.length < 2) return null;
  const why = refusalOf(facts, trainers);
  return why === null ? planned(facts, trainers) : plain(why);
}

/** Adds to the plan what the run's batches read, device by device. */
export function withMeasured(
  placed: PlacedRows,
  names: readonly Pick<CrewDevice, 'name'>[],
  executors: readonly ExecutorSnapshot[],
): PlacedRows {
  const devices = placed.plan.devices.map((device): PlacedDevice => {
    const number = names.findIndex(({ name }) => name === device.device);
    const here = executors.filter((one) => one.role === 'TRAINER' && one.device === number);
    const sum = (...of: readonly (keyof typeof counters)[]) =>
      here.reduce(
        (all, one) =>
          all + of.reduce((part, name) => part + (one.counters[counters[name]] ?? 0), 0),
        0,
      );
    const load = {
      own: sum('deviceRows'),
      peer: sum('peerRows'),
      host: sum('hostRows', 'diskRows'),
      cost: sum('rowWaitNs'),
    };
    const batches = sum('batchesTrained');
    return batches === 0 ? device : { ...device, measured: sharesOf(load, batches) };
  });
  return { ...placed, plan: { ...placed.plan, devices } };
}

interface PlacedTrainer {
  readonly name: string;
  /** The device's number in the segment. */
  readonly number: number;
  readonly accelerator: Accelerator;
}

/** Stands for the host where no device is named. */
const noDevice = 2 ** 32 - 1;
/** A device shares memory in blocks of this size (native/cuda/plugin/runtime.h). */
const sharedBytes = 2 ** 21;

/** Policies whose hotness is a number of reads: others order rows, and cannot weigh them. */
const countingPolicies: ReadonlySet<CachePolicy> = new Set([
  'COMBINED',
  'PRESC',
  'PROBABILITY',
  'OPTIMAL',
]);

function trainersOf({ devices, trainers }: PlacingFacts): readonly PlacedTrainer[] {
  return devices.flatMap(({ name, accelerator }, number) =>
    accelerator === undefined || !trainers.has(name) ? [] : [{ name, number, accelerator }],
  );
}

/** Why each has a cache of its own; null: a plan may do better. */
function refusalOf(
  { spec: { cache }, runs, rows }: PlacingFacts,
  trainers: readonly PlacedTrainer[],
): string | null {
  if (cache.placement === 'NONE') return 'none, as asked for';
  if (!countingPolicies.has(cache.policy)) {
    return `none: ${cache.policy} does not say how often rows are read`;
  }
  if (rows === 0 || runs.length === 0) return 'none: devices keep no rows';
  if (trainers.length > devicesMax) return `none: more than ${devicesMax} Trainers`;
  const joins = trainers.some((one) => trainers.some((other) => linkOf(one, other) !== null));
  return joins ? null : "none: no two Trainers' devices read each other's memory";
}

/** The link if it is known in both directions, else null. */
function linkOf(one: PlacedTrainer, other: PlacedTrainer) {
  const to = one.accelerator.peers.find(({ name }) => name === other.name);
  const back = other.accelerator.peers.find(({ name }) => name === one.name);
  return to === undefined || back === undefined ? null : to.link;
}

/**
 * For each number of Samplers the devices that should sample so that the others wait least; empty
 * where no links differ, or rows are not placed at all.
 */
export function samplerSetsOf(facts: PlacingFacts): readonly (readonly string[])[] {
  const { devices } = facts;
  const all = trainersOf(facts);
  // A set of few among many is searched for among thousands; nobody builds such a host with links.
  if (all.length !== devices.length || all.length < 3 || all.length > searchedMax) return [];
  if (refusalOf(facts, all) !== null) return [];
  const request = requestOf(facts, all);
  const kinds = new Set(
    request.links.flatMap((row, i) => row.filter((_, j) => i !== j).map((link) => link)),
  );
  if (kinds.size < 2) return [];
  return all.map((_, count) =>
    samplersAmong(count, request).flatMap((device) => all[device]?.name ?? []),
  );
}

const searchedMax = 8;

function requestOf(facts: PlacingFacts, trainers: readonly PlacedTrainer[]): PlanRequest {
  const [first] = trainers;
  const links = linksOf(trainers.length, (i, j) => {
    const [one, other] = [trainers[i], trainers[j]];
    return one === undefined || other === undefined ? null : linkOf(one, other);
  });
  return {
    hotness: new HotCurve(facts.runs),
    budgets: trainers.map(() => shareableRows(facts)),
    links,
    costs: costsOf(first?.accelerator.rates ?? { HOST: 1 }, facts.rowBytes),
  };
}

function planned(facts: PlacingFacts, trainers: readonly PlacedTrainer[]): PlacedRows {
  const { batchesPerEpoch } = facts;
  const [{ accelerator }] = trainers as readonly [PlacedTrainer];
  const request = requestOf(facts, trainers);
  const { links, costs } = request;
  const plan = planPlacement(request);
  if (plan.islands.every(({ devices }) => devices.length === 1)) {
    return plain('none: reading a row of another device is no faster than the host');
  }
  const loads = loadsOf(plan, request);
  const tables = tiersOf(plan, request);
  const devices = trainers.map(({ name }, i): PlacedDevice => {
    const load = loads[i];
    if (load === undefined) throw new Error(`the plan has no load of ${name}`);
    const expected = sharesOf(load, batchesPerEpoch);
    return { device: name, ...holdingsOf(plan, i), expected, measured: null };
  });
  const numbers = trainers.map(({ number }) => number);
  const peerNs = (i: number, j: number) => costs.links[links[i]?.[j] ?? 'HOST_BUS'] ?? costs.host;
  const views = trainers.map(({ name, number }, i): [string, RowPlacement] => [
    name,
    {
      device: number,
      lines: linesOf(tables[i] ?? [], numbers),
      rowNs: rowNsOf(numbers, (j) => (i === j ? 0 : peerNs(i, j))),
      hostRowNs: costs.host,
    },
  ]);
  return {
    plan: { explanation: explanationOf(plan, accelerator.rates), devices },
    views: new Map(views),
    endRank: Math.max(0, ...plan.islands.flatMap(({ pieces }) => pieces.map(({ to }) => to))),
  };
}

function plain(explanation: string): PlacedRows {
  return { plan: { explanation, devices: [] }, views: new Map(), endRank: 0 };
}

/** Rows to share. An automatic cache fills its memory, so it takes whole blocks only. */
function shareableRows({ spec: { cache }, rows, rowBytes }: PlacingFacts): number {
  if (cache.ratio !== automaticRatio) return rows;
  const blocks = Math.floor((rows * rowBytes) / sharedBytes);
  return Math.floor((blocks * sharedBytes) / rowBytes);
}

/** Costs in nanoseconds a row. */
function costsOf(rates: LinkRates, rowBytes: number): RowCosts {
  const ns = (gigabytes: number) => rowBytes / gigabytes;
  const { HOST, ...links } = rates;
  return {
    host: ns(HOST),
    links: Object.fromEntries(
      Object.entries(links).map(([by, rate]) => [by, ns(rate)]),
    ) satisfies RowCosts['links'],
  };
}

function linesOf(tiers: Tiers, numbers: readonly number[]): RowPlacement['lines'] {
  return tiers.map(({ from, to, places }) => ({
    from,
    to,
    places: places.map((place) => ({
      device: place === null ? noDevice : (numbers[place.device] ?? noDevice),
      row: place?.row ?? 0,
    })),
  }));
}

/** Nanoseconds for a row by the segment's device numbers. */
function rowNsOf(numbers: readonly number[], nsOf: (trainer: number) => number): number[] {
  const all = new Array<number>(Math.max(...numbers) + 1).fill(0);
  numbers.forEach((number, trainer) => {
    all[number] = nsOf(trainer);
  });
  return all;
}

function explanationOf({ islands }: PlacementPlan, rates: LinkRates): string {
  const sizes = islands.map(({ devices }) => devices.length).filter((size) => size > 1);
  const groups =
    sizes.length === 1 ? `${sizes[0]} devices` : `groups of ${sizes.join(', ')} devices`;
  const told = Object.entries(rates).map(([way, rate]) => `${way} ${rate.toFixed(1)}`);
  return `${groups} read each other's rows; GB/s that were reckoned with: ${told.join(', ')}`;
}

function sharesOf({ own, peer, host, cost }: DeviceLoad, batches: number): RowShares {
  const total = Math.max(1, own + peer + host);
  return {
    own: own / total,
    peer: peer / total,
    host: host / total,
    waitNs: Math.round(cost / Math.max(1, batches)),
  };
}
