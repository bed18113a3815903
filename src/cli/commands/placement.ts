import { writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import { DatasetService } from '../../api/gen/gnnd/v1/dataset_service_pb.ts';
import {
  LinkLayout,
  LinkLayoutSchema,
  type PlacementSimulation,
  PlacementSimulationSchema,
  PlacementWay,
  PlacementWaySchema,
  type SimulatedDevice,
  type SimulatedLayout,
  type SimulatedPlacement,
} from '../../api/gen/gnnd/v1/placement_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { formatCount } from '../../spec/counted.ts';
import { fullName, shortName } from '../../spec/enum-names.ts';
import { integerOf, numbersOf, optional, samplingOf, seedOf, usage } from '../read/flags.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { formatBytes, formatNs, formatPercent } from '../session/units.ts';
import { idOf, resourceName } from '../show/job-text.ts';
import { type Column, factLines, printOne, tableOf } from '../show/output.ts';
import { samplingName } from '../show/sampling-text.ts';
import { type Chart, type LaneChart, svgOf } from '../show/svg.ts';

/** `gnnctl placement ...`. */
export function addPlacementCommands(program: Command, run: Run): void {
  program
    .command('placement')
    .description('feature rows spread over linked devices')
    .command('simulate')
    .description('say what linked devices would be worth to a dataset')
    .argument('<dataset>')
    .option('--devices <list>', 'devices that train: 1, 2, 4 or 8 each (default 2,4,8)')
    .option('--links <list>', 'how they are linked (default none,pairs,full)')
    .option('--ratios <list>', 'shares of the rows that each may hold (default 0.1)')
    .option(
      '--host-rate <n>',
      'GB/s of random rows from the host, all devices at once (default 10)',
    )
    .option('--peer-rate <n>', 'the same from a linked device (default 50)')
    .option('--fanouts <list>', 'such as 10,10')
    .option('--sampling <yaml>', "instead, such as '{algorithm: RANDOM_WALK}'")
    .option('--batch-size <n>', 'seeds a batch (default 1024)')
    .option('--epochs <n>', 'epochs to measure (default 3)')
    .option('--random-seed <n>', 'key of all randomness (default 0)')
    .option('--svg <file>', 'also draw into a file who has what, and where rows come from')
    .action(run(simulatePlacement));
}

interface SimulateFlags {
  readonly devices?: string;
  readonly links?: string;
  readonly ratios?: string;
  readonly hostRate?: string;
  readonly peerRate?: string;
  readonly fanouts?: string;
  readonly sampling?: string;
  readonly batchSize?: string;
  readonly epochs?: string;
  readonly randomSeed?: string;
  readonly svg?: string;
}

/** Whole epochs are sampled; a graph of a hundred million edges takes minutes. */
const timeoutDefaultMs = 3_600_000;

async function simulatePlacement(
  session: Session,
  given: string,
  flags: SimulateFlags,
): Promise<number> {
  const found = await session.client.unary(
    DatasetService.method.simulatePlacement,
    {
      name: resourceName('datasets', given),
      deviceCounts: numbersOf('--devices', flags.devices),
      links: linksOf(flags.links),
      ratios: numbersOf('--ratios', flags.ratios),
      hostRate: rateOf('--host-rate', flags.hostRate),
      peerRate: rateOf('--peer-rate', flags.peerRate),
      ...optional('sampling', samplingFlag(flags)),
      ...optional('batchSize', integerOf('--batch-size', flags.batchSize)),
      ...optional('epochs', integerOf('--epochs', flags.epochs)),
      ...optional('randomSeed', seedOf(flags.randomSeed)),
    },
    { timeoutMs: session.timeoutMs ?? timeoutDefaultMs },
  );
  if (flags.svg !== undefined) {
    writeFileSync(flags.svg, svgOf(chartsOf(found)));
    session.say(`drawn into ${flags.svg}`);
  }
  printSimulation(session, found);
  return gnnctlExit.OK;
}

function samplingFlag({ fanouts, sampling }: SimulateFlags) {
  if (fanouts === undefined) return sampling === undefined ? undefined : samplingOf(sampling);
  if (sampling !== undefined) throw usage('--sampling', sampling, 'no --fanouts beside it');
  return { fanouts: numbersOf('--fanouts', fanouts) };
}

function linksOf(list: string | undefined): LinkLayout[] {
  if (list === undefined) return [];
  return list.split(',').map((word) => {
    const name = fullName(LinkLayoutSchema, word.trim());
    const value = LinkLayoutSchema.values.find((one) => one.name === name)?.number ?? 0;
    if (value === 0) throw usage('--links', list, 'none, pairs or full, with commas between them');
    return value;
  });
}

function rateOf(option: string, text: string | undefined): number {
  const [rate = 0, ...others] = numbersOf(option, text);
  if (others.length > 0 || (text !== undefined && rate <= 0)) {
    throw usage(option, text ?? '', 'a positive number of GB/s');
  }
  return rate * 1e9;
}

interface Row {
  readonly layout: SimulatedLayout;
  readonly placement: SimulatedPlacement;
  readonly device: SimulatedDevice;
  readonly index: number;
}

const number = (title: string, shown: (row: Row) => string, plain: (row: Row) => string) => ({
  title,
  align: 'right' as const,
  shown,
  plain,
});
const share = (title: string, of: (device: SimulatedDevice) => number) =>
  number(
    title,
    ({ device }) => formatPercent(of(device)),
    ({ device }) => String(of(device)),
  );

const rowColumns: readonly Column<Row>[] = [
  { title: 'DEVICES', align: 'right', shown: ({ layout }) => String(layout.devices) },
  { title: 'LINKS', shown: ({ layout }) => shortName(LinkLayoutSchema, layout.links) },
  number(
    'RATIO',
    ({ layout }) => formatPercent(layout.ratio),
    ({ layout }) => String(layout.ratio),
  ),
  { title: 'PLACEMENT', shown: ({ placement }) => shortName(PlacementWaySchema, placement.way) },
  { title: 'DEVICE', align: 'right', shown: ({ index }) => String(index) },
  number(
    'COPIED',
    ({ device }) => formatCount(device.copiedRows),
    ({ device }) => String(device.copiedRows),
  ),
  number(
    'DEALT',
    ({ device }) => formatCount(device.dealtRows),
    ({ device }) => String(device.dealtRows),
  ),
  share('OWN', ({ ownShare }) => ownShare),
  share('PEER', ({ peerShare }) => peerShare),
  share('HOST', ({ hostShare }) => hostShare),
  number(
    'EXTRACT',
    ({ device }) => formatNs(device.extractNs),
    ({ device }) => String(device.extractNs),
  ),
  number(
    'HOST AN EPOCH',
    ({ placement }) => formatBytes(placement.hostBytes),
    ({ placement }) => String(placement.hostBytes),
  ),
];

function rowsOf(layout: SimulatedLayout, placement: SimulatedPlacement): readonly Row[] {
  return placement.devices.map((device, index) => ({ layout, placement, device, index }));
}

/** For people: devices that are alike are one line. */
function fewerRowsOf(layout: SimulatedLayout): readonly Row[] {
  return layout.placements.flatMap((placement) => {
    const rows = rowsOf(layout, placement);
    const seen = new Set<string>();
    return rows.filter((row) => {
      const text = rowColumns
        .filter(({ title }) => title !== 'DEVICE')
        .map(({ shown }) => shown(row))
        .join();
      return seen.has(text) ? false : seen.add(text);
    });
  });
}

function printSimulation(session: Session, found: PlacementSimulation): void {
  if (session.format === 'plain') {
    if (session.hasHeaders) session.print(rowColumns.map(({ title }) => title).join('\t'));
    for (const layout of found.layouts) {
      for (const row of layout.placements.flatMap((placement) => rowsOf(layout, placement))) {
        session.print(rowColumns.map(({ plain, shown }) => (plain ?? shown)(row)).join('\t'));
      }
    }
    return;
  }
  const gigabytes = (rate: number) => `${rate / 1e9} GB/s`;
  printOne(session, {
    schema: PlacementSimulationSchema,
    message: found,
    name: found.dataset,
    facts: () => [
      ['Dataset', session.style.bold(idOf(found.dataset)), found.dataset],
      ['Sampling', samplingName(found.sampling)],
      [
        'Input rows',
        `${formatCount(Math.round(found.inputRows))} an epoch, ` +
          formatBytes(found.inputRows * Number(found.rowBytes)),
      ],
      ['Rates', `host ${gigabytes(found.hostRate)}, peer ${gigabytes(found.peerRate)}, assumed`],
    ],
    sections: () => [
      factLines(session, [['Note', 'jobs hold a plain prefix; nothing follows a plan yet']]),
      ...found.layouts.map((layout) => tableOf(session, rowColumns, fewerRowsOf(layout))),
    ],
  });
}

const layoutName = ({ devices, links }: SimulatedLayout) =>
  `${devices}, ${shortName(LinkLayoutSchema, links).toLowerCase()}`;

/** Where rows come from, for each share and number of devices; then what each plan has where. */
function chartsOf(found: PlacementSimulation): readonly Chart[] {
  const crews = new Map<string, SimulatedLayout[]>();
  for (const layout of found.layouts) {
    const name = `${layout.devices} devices with ${formatPercent(layout.ratio)} of them each`;
    crews.set(name, [...(crews.get(name) ?? []), layout]);
  }
  const stacks = [...crews].map(
    ([name, layouts]): Chart => ({
      kind: 'stacks',
      title: `${idOf(found.dataset)}: where rows come from, ${name}`,
      parts: ['own', 'peer', 'host'],
      groups: layouts.map((layout) => ({
        name: `links: ${shortName(LinkLayoutSchema, layout.links).toLowerCase()}`,
        stacks: layout.placements.map(({ way, devices }) => ({
          name: shortName(PlacementWaySchema, way).toLowerCase(),
          ys: [
            meanOf(devices, ({ ownShare }) => ownShare),
            meanOf(devices, ({ peerShare }) => peerShare),
            meanOf(devices, ({ hostShare }) => hostShare),
          ],
        })),
      })),
    }),
  );
  return [...stacks, ...found.layouts.flatMap((layout) => lanesOf(found, layout))];
}

/** In percent. */
function meanOf(
  devices: readonly SimulatedDevice[],
  value: (device: SimulatedDevice) => number,
): number {
  return (100 * devices.reduce((sum, device) => sum + value(device), 0)) / devices.length;
}

function lanesOf(found: PlacementSimulation, layout: SimulatedLayout): readonly LaneChart[] {
  const plan = layout.placements.find(({ way }) => way === PlacementWay.PLANNED);
  if (plan === undefined || layout.links === LinkLayout.NONE) return [];
  const percentOf = (rank: bigint) =>
    layout.deviceRows === 0n ? 0 : (100 * layout.ratio * Number(rank)) / Number(layout.deviceRows);
  const name = layoutName(layout);
  const spansOf = (index: number) =>
    plan.pieces
      .filter(({ devices }) => devices.includes(index))
      .map(({ from, to, dealt }) => ({
        from: percentOf(from),
        to: percentOf(to),
        part: dealt ? 1 : 0,
      }));
  return [
    {
      kind: 'lanes',
      title: `${idOf(found.dataset)}: the plan for ${name}, ${formatPercent(layout.ratio)}`,
      xTitle: 'hot ranks, in percent of all rows',
      parts: ['on each', 'on one of them'],
      lanes: plan.devices.map((_, i) => ({ name: `device ${i}`, spans: spansOf(i) })),
    },
  ];
}
