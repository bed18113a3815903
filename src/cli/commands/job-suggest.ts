import type { MessageInitShape } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { type Command, InvalidArgumentError } from 'commander';
import { stringify } from 'yaml';
import { type Dataset, DatasetService } from '../../api/gen/gnnd/v1/dataset_service_pb.ts';
import { HostService } from '../../api/gen/gnnd/v1/host_service_pb.ts';
import { JobService } from '../../api/gen/gnnd/v1/job_service_pb.ts';
import type { JobSpecSchema } from '../../api/gen/gnnd/v1/job_spec_pb.ts';
import { ModelType } from '../../api/gen/gnnd/v1/model_pb.ts';
import { typed } from '../../base/advice.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { ApiError } from '../session/client.ts';
import { CliError } from '../session/exit.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { padEnd, printable } from '../session/terminal.ts';
import { formatBytes } from '../session/units.ts';
import { resourceName } from '../show/job-text.ts';
import {
  type GraphSizes,
  secondsOf,
  suggestionOf,
  type Way,
  type WayFinding,
  workOf,
} from '../show/training-ways.ts';

/** `gnnctl job suggest`: what ways of training would take on a dataset; nothing is made. */
export function addJobSuggest(job: Command, run: Run): void {
  job
    .command('suggest')
    .description('compare ways to train on a dataset: sizes and guessed times; creates nothing')
    .argument('<dataset>')
    .option('--epochs <n>', 'of each', positive, 20)
    .option('--hidden <n>', 'width of hidden layers', positive, 256)
    .option('--batch-size <n>', 'targets of a batch', positive, 1024)
    .option('--hops <n>', 'of propagation', positive, 2)
    .action(run(suggest));
}

interface SuggestFlags {
  readonly epochs: number;
  readonly hidden: number;
  readonly batchSize: number;
  readonly hops: number;
}

function positive(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0 && value < 2 ** 31) return value;
  throw new InvalidArgumentError('expected a whole number, 1 or more');
}

/** What is said of one way, and what `-o json` prints. */
interface Suggested extends WayFinding {
  readonly batchRows: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

type Spec = MessageInitShape<typeof JobSpecSchema>;

const fanouts = [10, 10];
const ways: readonly Way[] = ['FULL', 'SAMPLED', 'PROPAGATED'];
const meanings: Readonly<Record<Way, string>> = {
  FULL: 'GraphSAGE, all neighbours',
  SAMPLED: `GraphSAGE, fanouts ${fanouts.join(', ')}`,
  PROPAGATED: 'SIGN on propagated rows',
};

async function suggest(session: Session, given: string, flags: SuggestFlags): Promise<number> {
  const name = resourceName('datasets', given);
  const dataset = await session.call(DatasetService.method.getDataset, { name });
  if (dataset.nodeTypes.length > 0) {
    const why = 'has several types of nodes, which none of these ways takes';
    const id = name.slice('datasets/'.length);
    throw new CliError(gnnctlExit.INVALID_ARGUMENT, `${id} ${why}; see: gnnctl init ${typed(id)}`);
  }
  const { cores } = await session.call(HostService.method.getHost, {});
  const findings: Suggested[] = [];
  for (const way of ways) findings.push(await findingOf(session, way, { dataset, cores, flags }));
  const { epochs } = flags;
  const suggestion = suggestionOf(findings, epochs);
  const answer = { dataset: name, cores, epochs, ways: findings, suggestion };
  if (session.format === 'json') session.print(JSON.stringify(answer, null, 2));
  else if (session.format === 'jsonl') session.print(JSON.stringify(answer));
  else if (session.format === 'yaml') session.print(stringify(answer));
  else printFindings(session, findings, epochs);
  if (suggestion === null) session.say('none of them fits this host');
  else session.say(`try ${suggestion.way} first: ${suggestion.reason}`);
  session.say('times are guessed from sizes; gnnctl job get JOB shows what epochs take');
  return gnnctlExit.OK;
}

interface Asked {
  readonly dataset: Dataset;
  readonly cores: number;
  readonly flags: SuggestFlags;
}

async function findingOf(
  session: Session,
  way: Way,
  { dataset, cores, flags }: Asked,
): Promise<Suggested> {
  const { hidden: hiddenDim, batchSize, hops } = flags;
  const work = workOf(way, sizesOf(dataset), { hiddenDim, batchSize, hops, fanouts });
  const seconds = secondsOf(work, cores);
  const { memoryBytes, refusal } = await judge(session, specOf(way, dataset, flags));
  const isMade = way === 'PROPAGATED' && refusal === null;
  return {
    ...{ way, batchRows: work.batchRows, epochSeconds: seconds.epoch, onceSeconds: seconds.once },
    ...{ memoryBytes, refusal },
    diskBytes: isMade ? await missingBytes(session, dataset, hops) : 0,
  };
}

function sizesOf(dataset: Dataset): GraphSizes {
  const { numNodes, numEdges, numFeatures, numClasses, numTrain } = dataset;
  return {
    ...{ nodes: Number(numNodes), edges: Number(numEdges), features: numFeatures },
    ...{ classes: numClasses, train: Number(numTrain) },
  };
}

function specOf(way: Way, { name }: Dataset, flags: SuggestFlags): Spec {
  const common = {
    dataset: name.slice('datasets/'.length),
    training: { epochs: flags.epochs, batchSize: flags.batchSize },
  };
  if (way === 'PROPAGATED') {
    const model = { type: ModelType.SIGN, hiddenDim: flags.hidden };
    return { ...common, model, propagation: { hops: flags.hops } };
  }
  const taken = way === 'FULL' ? fanouts.map(() => -1) : fanouts;
  const model = { type: ModelType.GRAPHSAGE, hiddenDim: flags.hidden };
  return { ...common, model, sampling: { fanouts: taken } };
}

/** What the daemon says to the job, and what it would take of the host's memory. */
async function judge(session: Session, spec: Spec) {
  const request = { jobId: '', spec, validateOnly: true };
  try {
    const { memory } = await session.call(JobService.method.createJob, request);
    return { memoryBytes: Number(memory?.atMostBytes ?? 0), refusal: null };
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== status.INVALID_ARGUMENT) throw error;
    const [first] = error.violations;
    return { memoryBytes: 0, refusal: first?.description ?? error.message };
  }
}

/** Bytes of the propagation's files; 0 where they are there already. */
async function missingBytes(session: Session, { name }: Dataset, hops: number): Promise<number> {
  const request = { name, propagation: { hops } };
  const plan = await session.call(DatasetService.method.planPropagation, { request });
  return plan.complete ? 0 : Number(plan.bytes);
}

function printFindings(session: Session, findings: readonly Suggested[], epochs: number): void {
  const titles = ['WAY', 'EPOCH', 'ONCE', `${epochs} EPOCHS`, 'MEMORY AT MOST', 'DISK'];
  const rows = [titles, ...findings.map((found) => cellsOf(found, epochs))];
  const widths = titles.map((_, column) => {
    const cells = rows.map((row) => (column === 0 || row.length > 2 ? (row[column] ?? '') : ''));
    return Math.max(...cells.map(({ length }) => length));
  });
  for (const row of rows) {
    const cells = row.map((cell, column) => padEnd(cell, widths[column] ?? 0));
    session.print(cells.join('  ').trimEnd());
  }
}

function cellsOf(found: Suggested, epochs: number): readonly string[] {
  const { way, epochSeconds, onceSeconds, memoryBytes, diskBytes, refusal } = found;
  const title = `${way}: ${meanings[way]}`;
  if (refusal !== null) return [title, `refused: ${printable(refusal)}`];
  const seconds = [epochSeconds, onceSeconds, onceSeconds + epochs * epochSeconds];
  const sizes = [memoryBytes, diskBytes].map((bytes) => (bytes === 0 ? '' : formatBytes(bytes)));
  return [title, ...seconds.map(secondsText), ...sizes];
}

function secondsText(seconds: number): string {
  if (seconds === 0) return '';
  if (seconds < 90) return `${seconds.toPrecision(2)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toPrecision(2)} h`;
}
