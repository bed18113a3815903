import { randomUUID } from 'node:crypto';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { type Command, Option } from 'commander';
import { CheckpointService } from '../../api/gen/gnnd/v1/checkpoint_service_pb.ts';
import {
  InferenceFormatSchema,
  InferenceNodes,
  InferenceNodesSchema,
  InferenceOutput,
  InferenceOutputSchema,
  InferenceParametersSchema,
  InferenceSpecSchema,
  JobKind,
} from '../../api/gen/gnnd/v1/inference_pb.ts';
import { type Job, JobSchema } from '../../api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../api/gen/gnnd/v1/job_service_pb.ts';
import type { JobSpecSchema } from '../../api/gen/gnnd/v1/job_spec_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { formatCount } from '../../spec/counted.ts';
import { numberOf, shortNames } from '../../spec/enum-names.ts';
import { ApiError } from '../session/client.ts';
import { waitFor } from '../session/interrupt.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { harmless } from '../session/terminal.ts';
import { formatBytes } from '../session/units.ts';
import { idOf, isOfPairs, resourceName, specOf } from '../show/job-text.ts';
import { type Fact, factLines, printOne } from '../show/output.ts';
import { countsIn } from '../show/prediction-counts.ts';
import { PredictionTable } from '../show/prediction-table.ts';
import { createProgress } from '../show/progress.ts';
import { openExportFolder, predictionNames } from './export-folder.ts';
import { printDryRun } from './job-create.ts';
import { endOf } from './job-watch.ts';

/** `gnnctl predict` and `gnnctl job predictions`. */
export function addPredict(program: Command, job: Command, run: Run): void {
  const choicesOf = (names: readonly string[]) => names.map((name) => name.toLowerCase());
  program
    .command('predict')
    .description('predict nodes with the model of a job, and write what it says into a folder')
    .argument('<job>', 'that trained the model')
    .option(
      '--out <folder>',
      'made when it is not there; default: CSV on stdout, on a terminal its first rows',
    )
    .addOption(
      new Option('--nodes <nodes>', 'which nodes')
        .choices(choicesOf(shortNames(InferenceNodesSchema)).filter((name) => name !== 'listed'))
        .default('all'),
    )
    .option('--node-ids <ids...>', "these: the dataset's ids, or numbers; in place of --nodes")
    .option('--nodes-file <file>', "those of a file on the daemon's host, in place of --nodes")
    .option('--dataset <dataset>', 'of this dataset; default: that of the training')
    .addOption(
      new Option('--which <epoch>', 'whose parameters')
        .choices(choicesOf(shortNames(InferenceParametersSchema)))
        .default('best'),
    )
    .addOption(
      inAnyCase(
        new Option('--outputs <outputs...>', 'beside the classes; embeddings alone without them'),
        choicesOf(shortNames(InferenceOutputSchema)),
      ),
    )
    .option('--pairs <file>', "of scores: a .npy, Parquet or CSV file on the daemon's host")
    .option('--k <number>', 'of nearest: how many each node has; default: 10', Number)
    .option('--among-file <file>', "of nearest: the nodes to choose from, on the daemon's host")
    .option('--with-known', 'of nearest: also those that a node is linked to already')
    .option(
      '--layer <n>',
      'of embeddings, from 1; default: the last hidden, of links the last',
      Number,
    )
    .addOption(
      new Option('--format <formats...>', 'how they are written')
        .choices(choicesOf(shortNames(InferenceFormatSchema)))
        .default(['npy'], 'npy, and without --out csv'),
    )
    .option('--devices <count>', 'that predict; default: one', Number)
    .option('--id <id>', 'id of the inference; else the server makes one')
    .option('--keep', 'without --out: leave the inference, where it would be deleted')
    .option('--dry-run', 'check everything and show memory, chunks and bytes; predict nothing')
    .option('--force', 'replace earlier predictions in the folder')
    .action(run(predict));
  job
    .command('predictions')
    .description('write what an inference predicted into a folder')
    .argument('<job>', 'an inference that SUCCEEDED')
    .argument('<folder>', 'made when it is not there')
    .option('--force', 'replace earlier predictions in the folder')
    .action(
      run((session, given: string, folder: string, flags: { readonly force?: boolean }) =>
        download(session, resourceName('jobs', given), folder, flags.force === true),
      ),
    );
}

/** Choices that may be written as specs have them, in capitals. */
function inAnyCase(option: Option, names: readonly string[]): Option {
  const parse = option.choices(names).parseArg;
  return option.argParser((name: string, before: unknown) => parse?.(name.toLowerCase(), before));
}

interface PredictFlags {
  readonly out?: string;
  readonly nodes: string;
  readonly nodeIds?: readonly string[];
  readonly nodesFile?: string;
  readonly dataset?: string;
  readonly which: string;
  readonly outputs?: readonly string[];
  readonly pairs?: string;
  readonly k?: number;
  readonly amongFile?: string;
  readonly withKnown?: boolean;
  readonly layer?: number;
  readonly format: readonly string[];
  readonly devices?: number;
  readonly id?: string;
  readonly keep?: boolean;
  readonly dryRun?: boolean;
  readonly force?: boolean;
}

async function predict(session: Session, given: string, flags: PredictFlags): Promise<number> {
  const { out } = flags;
  const listed = flags.nodesFile !== undefined || flags.nodeIds !== undefined;
  const formats = out === undefined ? ['csv'] : flags.format;
  const inference = create(InferenceSpecSchema, {
    job: idOf(resourceName('jobs', given)),
    parameters: numberOf(InferenceParametersSchema, flags.which) ?? 0,
    nodes: listed ? InferenceNodes.LISTED : (numberOf(InferenceNodesSchema, flags.nodes) ?? 0),
    ...(flags.nodesFile === undefined ? {} : { nodesFile: flags.nodesFile }),
    nodeIds: [...(flags.nodeIds ?? [])],
    outputs: (flags.outputs ?? []).map((name) => numberOf(InferenceOutputSchema, name) ?? 0),
    ...(flags.layer === undefined ? {} : { layer: flags.layer }),
    ...askedOfLinks(flags),
    formats: formats.map((name) => numberOf(InferenceFormatSchema, name) ?? 0),
  });
  const spec = {
    kind: JobKind.INFERENCE,
    inference,
    ...(flags.dataset === undefined ? {} : { dataset: flags.dataset }),
    ...(flags.devices === undefined ? {} : { resources: { devices: flags.devices } }),
  };
  const isDry = flags.dryRun === true;
  const isLookedAt = out === undefined && session.format === 'table';
  const request = { jobId: flags.id ?? '', spec, requestId: session.requestId };
  if (isLookedAt && !isDry && flags.outputs === undefined)
    await askForShares(session, inference, spec);
  // Before an hour of work: a folder that cannot be written to is found at once.
  if (!isDry && out !== undefined) await (await openFolder(out, flags.force === true)).close();
  const { createJob } = JobService.method;
  const made = await session.call(createJob, { ...request, validateOnly: isDry });
  if (isDry) {
    printDryRun(session, made);
    return gnnctlExit.OK;
  }
  session.say(`created ${made.name}`);
  const { job, exitCode } = await endOf(session, made.name);
  if (exitCode !== gnnctlExit.OK) return exitCode;
  if (isLookedAt) return await printHead(session, job);
  if (out === undefined) {
    const { stdout } = session.io;
    const write = (text: string) => stdout.write(stdout.isTty ? harmless(text) : text);
    await printTable(session, job.name, write);
    if (flags.id === undefined && flags.keep !== true) await remove(session, job.name);
    return gnnctlExit.OK;
  }
  return await download(session, job.name, out, flags.force === true);
}

function askedOfLinks({ pairs, k, amongFile, withKnown }: PredictFlags) {
  return {
    ...(pairs === undefined ? {} : { pairsFile: pairs }),
    ...(k === undefined ? {} : { k }),
    ...(amongFile === undefined ? {} : { amongFile }),
    ...(withKnown === undefined ? {} : { withKnown }),
  };
}

type InferenceSpecInit = ReturnType<typeof create<typeof InferenceSpecSchema>>;

/** Whoever looks wants to know how sure the model is; one that regresses does not say. */
async function askForShares(
  session: Session,
  inference: InferenceSpecInit,
  spec: MessageInitShape<typeof JobSpecSchema>,
): Promise<void> {
  inference.outputs = [InferenceOutput.PROBABILITIES];
  try {
    await session.call(JobService.method.createJob, { spec, validateOnly: true });
  } catch (error) {
    const isRefused = (path: string) => path.startsWith('spec.inference.outputs');
    if (!(error instanceof ApiError)) throw error;
    if (error.violations.some(({ path }) => isRefused(path))) inference.outputs = [];
  }
}

/** On a terminal: the first rows, how many of each class there are, and where all of it is. */
async function printHead(session: Session, job: Job): Promise<number> {
  const table = new PredictionTable();
  await printTable(session, job.name, (text) => table.take(text));
  const id = idOf(job.name);
  const more = `gnnctl job predictions ${id} FOLDER`;
  session.print(table.headText(session));
  const facts: readonly Fact[] = [
    [table.hasScores ? 'Rows' : 'Nodes', formatCount(table.rows)],
    ...(table.countsText() === '' ? [] : [['Classes', table.countsText()] as const]),
    ['Files', `${job.result?.predictions?.folder ?? ''}; copied by: ${more}`],
    ['Kept as', `${id}, until: gnnctl job delete ${id}`],
  ];
  session.print(`\n${factLines(session, facts)}`);
  return gnnctlExit.OK;
}

/** Deletes the job, which is of no more use once its predictions were printed whole. */
async function remove(session: Session, name: string): Promise<void> {
  const request = { name, allowMissing: true, requestId: randomUUID() };
  await session.call(JobService.method.deleteJob, request);
}

/** predictions.csv, piece by piece: it may be longer than memory. */
async function printTable(
  session: Session,
  name: string,
  take: (text: string) => void,
): Promise<void> {
  const method = CheckpointService.method.exportPredictions;
  await waitFor(session, { detached: [] }, async (signal) => {
    let isTable = false;
    const decoder = new TextDecoder();
    for await (const { part } of session.client.stream(method, { name }, { signal })) {
      if (part.case === 'file') isTable = part.value.name === 'predictions.csv';
      else if (part.case === 'data' && isTable) {
        take(decoder.decode(part.value, { stream: true }));
      }
    }
  });
}

function openFolder(folder: string, force: boolean) {
  return openExportFolder(folder, force, predictionNames);
}

async function download(
  session: Session,
  name: string,
  folderGiven: string,
  force: boolean,
): Promise<number> {
  const folder = await openFolder(folderGiven, force);
  const progress = createProgress(session, `writing predictions of ${idOf(name)}`);
  const job: Job = await session.call(JobService.method.getJob, { name });
  const total = Number(job.result?.predictions?.bytes ?? 0n);
  let done = 0;
  const work = async (signal: AbortSignal) => {
    const method = CheckpointService.method.exportPredictions;
    for await (const { part } of session.client.stream(method, { name }, { signal })) {
      if (part.case === 'file') await folder.begin(part.value.name, Number(part.value.bytes));
      else if (part.case === 'data') {
        await folder.write(part.value);
        done += part.value.length;
        progress.show(total === 0 ? 0 : done / total, 'copying');
      }
    }
    await folder.commit();
    progress.done(true);
  };
  const again = `gnnctl job predictions ${idOf(name)} ${folder.path}`;
  try {
    await waitFor(session, { detached: [`nothing was written; again with: ${again}`] }, work);
  } finally {
    progress.close();
    await folder.close();
  }
  const counts = session.format === 'table' ? await countsIn(folder.path) : '';
  printOne(session, {
    schema: JobSchema,
    message: job,
    name: folder.path,
    facts: () => [
      ['Job', idOf(job.name), job.name],
      [isOfPairs(specOf(job)) ? 'Pairs' : 'Nodes', String(job.result?.predictions?.nodes ?? 0n)],
      ...(counts === '' ? [] : [['Classes', counts] as const]),
      ['Folder', folder.path],
      ...folder.files.map((file): Fact => [file.name, formatBytes(file.bytes), String(file.bytes)]),
    ],
  });
  return gnnctlExit.OK;
}
