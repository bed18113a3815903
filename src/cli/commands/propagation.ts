import { create } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { type Command, Option } from 'commander';
import {
  DatasetService,
  ListPropagationsResponseSchema,
  type Propagation,
  PropagationSchema,
} from '../../api/gen/gnnd/v1/dataset_service_pb.ts';
import { PropagationOperatorSchema, RowDtypeSchema } from '../../api/gen/gnnd/v1/propagation_pb.ts';
import { OperationSchema } from '../../api/gen/gnnd/v1/types_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { formatCount } from '../../spec/counted.ts';
import { shortName, shortNames } from '../../spec/enum-names.ts';
import { readSpec } from '../read/spec-file.ts';
import { CliError } from '../session/exit.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { formatBytes, parseBytes } from '../session/units.ts';
import { idOf, resourceName } from '../show/job-text.ts';
import { type Column, type Fact, printList, printOne } from '../show/output.ts';
import { waitForOperation } from './operations.ts';

/** `gnnctl dataset propagate`, `propagations` and `delete-propagation`. */
export function addPropagationCommands(dataset: Command, run: Run): void {
  const operators = shortNames(PropagationOperatorSchema).join(', ');
  dataset
    .command('propagate')
    .description('propagate features in advance, for jobs of SGC, SIGN and HOGA')
    .argument('<dataset>')
    .option('--operators <list>', `of ${operators}, with commas between them; default: SYMMETRIC`)
    .option('--hops <n>', 'how often features are multiplied; default: 3')
    .option('--no-self-loops', 'no node is a neighbour of its own')
    .option('--alpha <share>', 'of PPR; default: 0.15')
    .option('--heat-time <t>', 'of HEAT; default: 3')
    .option('--terms <n>', 'of the sums of PPR and HEAT; default: 10')
    .addOption(
      new Option('--row-dtype <dtype>', 'store rows so; default: FLOAT32').choices(
        shortNames(RowDtypeSchema),
      ),
    )
    .option('--random-seed <n>', 'of the order of rows; default: 0')
    .option('--standardize', 'standardise features before they are propagated')
    .option('--no-standardize-rows', 'store rows as they were propagated')
    .option('--no-permute', 'keep rows in the order of node ids')
    .option('--memory <size>', "of columns of all nodes; default: a quarter of the host's")
    .option('--threads <n>', 'default: one for each core')
    .option(
      '--device <name>',
      "a GPU or simulated device that multiplies; default: the host's cores",
    )
    .option('--dry-run', 'make nothing, show what would be made')
    .option('--wait', 'wait for the end and show progress (default)')
    .option('--no-wait', 'answer at once with the operation')
    .action(run(propagate));
  dataset
    .command('propagations')
    .description('list propagated features')
    .argument('[dataset]')
    .action(run(listPropagations));
  dataset
    .command('delete-propagation')
    .description('delete propagated features; refused while they are made or read')
    .argument('<propagation...>')
    .option('--allow-missing', 'no error when there is no such propagation')
    .action(run(deletePropagations));
}

interface PropagateFlags {
  readonly operators?: string;
  readonly hops?: string;
  readonly selfLoops?: boolean;
  readonly alpha?: string;
  readonly heatTime?: string;
  readonly terms?: string;
  readonly rowDtype?: string;
  readonly randomSeed?: string;
  readonly standardize?: boolean;
  readonly standardizeRows?: boolean;
  readonly permute?: boolean;
  readonly memory?: string;
  readonly threads?: string;
  readonly device?: string;
  readonly dryRun?: boolean;
  readonly wait?: boolean;
}

async function propagate(session: Session, given: string, flags: PropagateFlags): Promise<number> {
  const name = resourceName('datasets', given);
  const request = {
    name,
    propagation: specOf(flags),
    standardize: flags.standardize === true,
    memoryBytes: BigInt(bytesOf(flags.memory)),
    threads: countOf(flags.threads),
    device: flags.device ?? '',
    requestId: session.requestId,
  };
  if (flags.dryRun === true) {
    const { planPropagation } = DatasetService.method;
    printPropagation(session, await session.call(planPropagation, { request }));
    return gnnctlExit.OK;
  }
  const operation = await session.call(DatasetService.method.propagateDataset, request);
  if (flags.wait === false) {
    printOne(session, {
      schema: OperationSchema,
      message: operation,
      name: operation.name,
      facts: () => [['Operation', operation.name]],
    });
    return gnnctlExit.OK;
  }
  const finished = await waitForOperation(session, operation, {
    title: `propagating ${idOf(name)}`,
    detached: ['it goes on; see it with: gnnctl dataset propagations'],
    cancels: true,
  });
  const { result } = finished;
  const made = result.case === 'response' ? anyUnpack(result.value, PropagationSchema) : undefined;
  if (made !== undefined) printPropagation(session, made);
  return gnnctlExit.OK;
}

/** As a spec file would say it; the daemon judges it. */
function specOf(flags: PropagateFlags) {
  const said: Readonly<Record<string, string | undefined>> = {
    operators: flags.operators === undefined ? undefined : `[${flags.operators}]`,
    hops: flags.hops,
    self_loops: flags.selfLoops === false ? 'false' : undefined,
    alpha: flags.alpha,
    heat_time: flags.heatTime,
    terms: flags.terms,
    row_dtype: flags.rowDtype,
    random_seed: flags.randomSeed,
    permute: flags.permute === false ? 'false' : undefined,
    standardize: flags.standardizeRows === false ? 'false' : undefined,
  };
  const settings = Object.entries(said).flatMap(([field, value]) =>
    value === undefined ? [] : [`propagation.${field}=${value}`],
  );
  const reading = readSpec(null, settings);
  if ('ok' in reading) return reading.ok.spec.propagation ?? {};
  const details = reading.problems.map(({ path, description }) => `${path}: ${description}`);
  throw new CliError(gnnctlExit.USAGE, 'these are not what a propagation has', details);
}

function bytesOf(text: string | undefined): number {
  if (text === undefined) return 0;
  const bytes = parseBytes(text);
  if (bytes !== null && bytes > 0) return bytes;
  const shown = JSON.stringify(text);
  throw new CliError(gnnctlExit.USAGE, `--memory ${shown}: expected a size such as 4GiB`);
}

function countOf(text: string | undefined): number {
  if (text === undefined) return 0;
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text);
  const shown = JSON.stringify(text);
  throw new CliError(gnnctlExit.USAGE, `--threads ${shown}: expected an integer from 1`);
}

function operatorsOf({ propagation }: Propagation): string {
  const names = propagation?.operators.map((op) => shortName(PropagationOperatorSchema, op));
  return (names ?? []).join(', ');
}

function dtypeOf({ propagation }: Propagation): string {
  return propagation === undefined ? '' : shortName(RowDtypeSchema, propagation.rowDtype);
}

function standardizationOf({ standardize, propagation }: Propagation): string {
  const when = [
    ...(standardize ? ['before propagation'] : []),
    ...(propagation?.standardize === true ? ['after propagation'] : []),
  ];
  return when.length === 0 ? 'no' : when.join(' and ');
}

function printPropagation(session: Session, made: Propagation): void {
  const bytes = (title: string, value: bigint, name: string): Fact => [
    title,
    formatBytes(Number(value)),
    String(value),
    name,
  ];
  printOne(session, {
    schema: PropagationSchema,
    message: made,
    name: made.name,
    facts: () => [
      ['Propagation', session.style.bold(idOf(made.name)), made.name],
      ['Dataset', idOf(made.dataset), made.dataset],
      ['Operators', operatorsOf(made)],
      ['Hops', String(made.propagation?.hops ?? 0)],
      ['Rows', formatCount(made.rows), String(made.rows)],
      ['Row dtype', dtypeOf(made)],
      ['Standardised', standardizationOf(made)],
      ['Complete', made.complete ? 'yes' : 'no', String(made.complete)],
      bytes('Size', made.bytes, 'bytes'),
      bytes('Disk at most', made.peakBytes, 'peak_bytes'),
      bytes('Memory', made.memoryBytes, 'memory_bytes'),
      ['Columns at a time', String(made.blockColumns)],
      ['Path', made.path],
      ['Digest', made.digest],
    ],
  });
}

async function listPropagations(session: Session, given: string | undefined): Promise<number> {
  const dataset = given === undefined ? '' : resourceName('datasets', given);
  const { propagations } = await session.call(DatasetService.method.listPropagations, { dataset });
  printList(session, {
    schema: ListPropagationsResponseSchema,
    message: create(ListPropagationsResponseSchema, { propagations }),
    rowSchema: PropagationSchema,
    rows: propagations,
    columns,
    nameOf: ({ name }) => name,
  });
  if (propagations.length === 0) session.say('no propagations');
  return gnnctlExit.OK;
}

const columns: readonly Column<Propagation>[] = [
  { title: 'PROPAGATION', shown: ({ name }) => idOf(name) },
  { title: 'DATASET', shown: ({ dataset }) => idOf(dataset) },
  { title: 'OPERATORS', shown: operatorsOf },
  { title: 'HOPS', align: 'right', shown: ({ propagation }) => String(propagation?.hops ?? 0) },
  { title: 'DTYPE', shown: dtypeOf },
  { title: 'COMPLETE', shown: ({ complete }) => (complete ? 'yes' : 'no') },
  {
    title: 'SIZE',
    plainTitle: 'BYTES',
    align: 'right',
    shown: ({ bytes }) => formatBytes(Number(bytes)),
    plain: ({ bytes }) => String(bytes),
  },
  { title: 'PATH', isWide: true, shown: ({ path }) => path },
];

async function deletePropagations(
  session: Session,
  given: readonly string[],
  flags: { readonly allowMissing?: boolean },
): Promise<number> {
  for (const name of given.map((one) => resourceName('propagations', one))) {
    const request = { name, allowMissing: flags.allowMissing === true };
    const { bytes } = await session.call(DatasetService.method.deletePropagation, request);
    session.say(`deleted ${name} (${formatBytes(Number(bytes))})`);
  }
  return gnnctlExit.OK;
}
