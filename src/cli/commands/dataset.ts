import { randomUUID } from 'node:crypto';
import { parse, resolve } from 'node:path';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  type Dataset,
  DatasetSchema,
  DatasetService,
  DatasetState,
  DatasetStateSchema,
  DatasetValidationSchema,
  FeatureDtypeSchema,
  ImportFormatSchema,
  ListDatasetsResponseSchema,
  MadeFeaturesSchema,
  type RandomSplitSchema,
} from '../../api/gen/gnnd/v1/dataset_service_pb.ts';
import {
  DatasetTaskSchema,
  type Operation,
  OperationSchema,
} from '../../api/gen/gnnd/v1/types_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { formatCount } from '../../spec/counted.ts';
import { numberOf, shortName, shortNames } from '../../spec/enum-names.ts';
import { idPattern } from '../../spec/limits.ts';
import { collectPages } from '../read/pages.ts';
import { CliError } from '../session/exit.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { printable, type Style } from '../session/terminal.ts';
import { formatAge, formatBytes } from '../session/units.ts';
import { classesNouns, noticesOf, taskText } from '../show/dataset-text.ts';
import { idOf, isoTime, resourceName, wallMs } from '../show/job-text.ts';
import { type Column, type Fact, printList, printOne } from '../show/output.ts';
import { schemaSections } from '../show/schema-text.ts';
import { waitForOperation } from './operations.ts';
import { addPropagationCommands } from './propagation.ts';

/** An option that takes one of these words, whatever the case of its letters. */
function choice(flags: string, description: string, words: readonly string[]): Option {
  const option = new Option(flags, description).choices(words.map((word) => word.toLowerCase()));
  const { parseArg } = option;
  return option.argParser((text, before: string) => {
    const word = text.toLowerCase();
    return parseArg === undefined ? word : parseArg(word, before);
  });
}

/** `gnnctl dataset ...`. */
export function addDatasetCommands(program: Command, run: Run): void {
  const dataset = program.command('dataset').description('import and check graphs');
  const formatNames = shortNames(ImportFormatSchema);
  dataset
    .command('import')
    .description("import a graph from a path on the daemon's host")
    .argument('<source>', 'a folder or file')
    .option('--id <id>', "id of the new dataset; else the source's name")
    .addOption(choice('--format <format>', 'default: told from the source', formatNames))
    .addOption(
      choice(
        '--feature-dtype <dtype>',
        'store features so; default: float16 for arrays of float16, else float32',
        shortNames(FeatureDtypeSchema),
      ),
    )
    .option('--directed', 'tables: nodes learn along edges only, from source to target')
    .addOption(
      choice(
        '--task <task>',
        'what is learnt of a node; default: what labels tell',
        shortNames(DatasetTaskSchema),
      ),
    )
    .option('--split <split>', 'of several: the column of masks from 0, or a name in an OGB folder')
    .option('--link', 'folders of .npy: use its files instead of copying them')
    .option('--ignore-columns <names...>', 'tables: columns that are not read')
    .addOption(
      choice(
        '--features <kind>',
        'of a source that has none; default: identity up to 4,096 nodes, else degree',
        shortNames(MadeFeaturesSchema),
      ),
    )
    .addOption(
      new Option(
        '--random-split <validation,test[,seed]>',
        'of a source that has none: shares of the labelled nodes, as 0.2,0.2',
      ).argParser(randomSplitOf),
    )
    .option('--reverse', 'several types: store each relation both ways (default)')
    .option('--no-reverse', 'several types: store relations as they are')
    .option('--validate-only', 'check the source, import nothing')
    .option('--wait', 'wait for the end and show progress (default)')
    .option('--no-wait', 'answer at once with the operation')
    .action(run(importDataset));
  dataset
    .command('get')
    .alias('show')
    .description('show one dataset')
    .argument('<dataset>')
    .action(run(getDataset));
  dataset.command('list').alias('ls').description('list datasets').action(run(listDatasets));
  dataset
    .command('delete')
    .alias('rm')
    .description('delete datasets with their files; refused while jobs use them')
    .argument('<dataset...>')
    .option('--allow-missing', 'no error when there is no such dataset')
    .action(run(deleteDatasets));
  dataset
    .command('validate')
    .description('check every file of a dataset')
    .argument('<dataset>')
    .action(run(validateDataset));
  addPropagationCommands(dataset, run);
}

interface ImportFlags {
  readonly id?: string;
  readonly format?: string;
  readonly featureDtype?: string;
  readonly directed?: boolean;
  readonly link?: boolean;
  readonly task?: string;
  readonly split?: string;
  readonly ignoreColumns?: readonly string[];
  readonly features?: string;
  readonly randomSplit?: MessageInitShape<typeof RandomSplitSchema>;
  readonly reverse?: boolean;
  readonly validateOnly?: boolean;
  readonly wait?: boolean;
}

async function importDataset(
  session: Session,
  source: string,
  flags: ImportFlags,
): Promise<number> {
  const id = flags.id ?? idOfSource(source);
  const operation = await session.call(DatasetService.method.importDataset, {
    datasetId: id,
    source: hostPath(session, source),
    format: numberOf(ImportFormatSchema, flags.format ?? '') ?? 0,
    featureDtype: numberOf(FeatureDtypeSchema, flags.featureDtype ?? '') ?? 0,
    directed: flags.directed === true,
    link: flags.link === true,
    task: numberOf(DatasetTaskSchema, flags.task ?? '') ?? 0,
    split: flags.split ?? '',
    ignoredColumns: [...(flags.ignoreColumns ?? [])],
    madeFeatures: numberOf(MadeFeaturesSchema, flags.features ?? '') ?? 0,
    ...(flags.randomSplit === undefined ? {} : { randomSplit: flags.randomSplit }),
    ...(flags.reverse === undefined ? {} : { reverse: flags.reverse }),
    validateOnly: flags.validateOnly === true,
    requestId: session.requestId,
  });
  if (flags.wait === false) {
    printOperation(session, operation);
    return gnnctlExit.OK;
  }
  const isCheck = flags.validateOnly === true;
  const finished = await waitForOperation(session, operation, {
    title: `${isCheck ? 'checking' : 'importing'} ${id}`,
    detached: [`it goes on; see it with: gnnctl dataset get ${id}`],
    cancels: true,
  });
  const made = responseOf(finished, DatasetSchema);
  if (made === undefined) {
    session.say(isCheck ? 'the source is valid; nothing was imported' : 'done');
    printOperation(session, finished);
  } else printDataset(session, made);
  return gnnctlExit.OK;
}

function randomSplitOf(text: string): MessageInitShape<typeof RandomSplitSchema> {
  const [validation = Number.NaN, test = 0, randomSeed = 0, ...more] = text.split(',').map(Number);
  const isWhole = Number.isInteger(randomSeed) && randomSeed >= 0 && randomSeed < 2 ** 32;
  const isShare = [validation, test].every((share) => share >= 0 && share < 1);
  if (isShare && isWhole && more.length === 0 && validation + test < 1) {
    return { validation, test, randomSeed };
  }
  throw new InvalidArgumentError('Expected two shares below 1, and maybe a seed: 0.2,0.2,7.');
}

/** `Citation_V2` of /data/Citation_V2.npz becomes citation-v2. */
function idOfSource(source: string): string {
  const name = parse(resolve(source)).name.toLowerCase();
  const id = name.replace(/[^a-z0-9]+/g, '-').replace(/^[^a-z]+|-+$/g, '');
  if (idPattern.test(id)) return id;
  throw new CliError(gnnctlExit.USAGE, `--id: ${JSON.stringify(name)} makes no id; name one`);
}

async function deleteDatasets(
  session: Session,
  given: readonly string[],
  flags: { readonly allowMissing?: boolean },
): Promise<number> {
  for (const name of given.map((one) => resourceName('datasets', one))) {
    const requestId = given.length === 1 ? session.requestId : randomUUID();
    const allowMissing = flags.allowMissing === true;
    const request = { name, allowMissing, requestId };
    const { bytes } = await session.call(DatasetService.method.deleteDataset, request);
    session.say(`deleted ${name} (${formatBytes(Number(bytes))})`);
  }
  return gnnctlExit.OK;
}

/** A path that the daemon, on this host but in another folder, can open. */
function hostPath(session: Session, source: string): string {
  return session.address.startsWith('unix:') ? resolve(source) : source;
}

function responseOf<D extends typeof DatasetSchema | typeof DatasetValidationSchema>(
  { result }: Operation,
  schema: D,
) {
  return result.case === 'response' ? anyUnpack(result.value, schema) : undefined;
}

function printOperation(session: Session, operation: Operation): void {
  printOne(session, {
    schema: OperationSchema,
    message: operation,
    name: operation.name,
    facts: () => [
      ['Operation', operation.name],
      ['Target', operation.target],
      ['Done', String(operation.done)],
      ['Message', printable(operation.message)],
    ],
  });
}

async function getDataset(session: Session, given: string): Promise<number> {
  const name = resourceName('datasets', given);
  printDataset(session, await session.call(DatasetService.method.getDataset, { name }));
  return gnnctlExit.OK;
}

function printDataset(session: Session, dataset: Dataset): void {
  printOne(session, {
    schema: DatasetSchema,
    message: dataset,
    name: dataset.name,
    facts: () => [
      ['Dataset', session.style.bold(idOf(dataset.name)), dataset.name],
      ['State', paintState(dataset.state, session.style), stateText(dataset.state)],
      ...messageFacts(dataset),
      countFact('Nodes', dataset.numNodes),
      countFact('Edges', dataset.numEdges),
      ...learntFacts(dataset),
      countFact('Train', dataset.numTrain),
      countFact('Validation', dataset.numVal),
      countFact('Test', dataset.numTest),
      ['Size', formatBytes(Number(dataset.bytes)), String(dataset.bytes), 'bytes'],
      ['Path', dataset.path],
      ['Digest', dataset.digest],
      ['Created', ageText(session, dataset), isoTime(dataset.createTime), 'create_time'],
    ],
    sections: () => schemaSections(session, dataset),
  });
}

function countFact(title: string, value: bigint | number): Fact {
  return [title, formatCount(value), String(value)];
}

/** What its nodes have, where all are of one type; each of several has its own. */
function learntFacts(dataset: Dataset): readonly Fact[] {
  const { nodeTypes, relations, numFeatures } = dataset;
  if (nodeTypes.length > 0) {
    return [countFact('Types', nodeTypes.length), countFact('Relations', relations.length)];
  }
  return [
    countFact('Features', numFeatures),
    ['Feature dtype', dtypeText(dataset)],
    ['Task', taskText(dataset)],
    classesFact(dataset),
  ];
}

/** Why an import failed, or what it has to say, a line each. */
function messageFacts(dataset: Dataset): readonly Fact[] {
  if (dataset.state !== DatasetState.READY) return [['Message', printable(dataset.message)]];
  return noticesOf(dataset).map((line): Fact => ['Notice', printable(line)]);
}

/** People read what it counts; scripts find it under one key. */
function classesFact(dataset: Dataset): Fact {
  const { state, numClasses } = dataset;
  if (state === DatasetState.READY && numClasses === 0) {
    return ['Classes', 'none: there are no labels, only links to learn', '0', 'classes'];
  }
  const noun = classesNouns(dataset).many;
  const title = noun.slice(0, 1).toUpperCase() + noun.slice(1);
  return [title, formatCount(dataset.numClasses), String(dataset.numClasses), 'classes'];
}

function dtypeText({ featureDtype }: Dataset): string {
  return shortName(FeatureDtypeSchema, featureDtype).toLowerCase();
}

function stateText(state: DatasetState): string {
  return shortName(DatasetStateSchema, state);
}

function paintState(state: DatasetState, style: Style): string {
  const text = stateText(state);
  if (state === DatasetState.READY) return style.green(text);
  return state === DatasetState.FAILED ? style.red(text) : style.yellow(text);
}

function ageText(session: Session, { createTime }: Dataset): string {
  const ms = wallMs(createTime);
  return ms === null ? '' : `${formatAge(session.io.clock.wallMs() - ms)} ago`;
}

async function listDatasets(session: Session): Promise<number> {
  const { items } = await collectPages(0, async (pageSize, pageToken) => {
    const request = { pageSize, pageToken };
    const page = await session.call(DatasetService.method.listDatasets, request);
    return { items: page.datasets, nextToken: page.nextPageToken };
  });
  printList(session, {
    schema: ListDatasetsResponseSchema,
    message: create(ListDatasetsResponseSchema, { datasets: items }),
    rowSchema: DatasetSchema,
    rows: items,
    columns: datasetColumns(session),
    nameOf: ({ name }) => name,
  });
  if (items.length === 0) session.say('no datasets');
  return gnnctlExit.OK;
}

function datasetColumns(session: Session): readonly Column<Dataset>[] {
  const count = (title: string, read: (dataset: Dataset) => bigint | number) => ({
    title,
    align: 'right' as const,
    shown: (dataset: Dataset) => formatCount(read(dataset)),
    plain: (dataset: Dataset) => String(read(dataset)),
  });
  return [
    { title: 'DATASET', shown: ({ name }) => idOf(name) },
    {
      title: 'STATE',
      shown: ({ state }) => paintState(state, session.style),
      plain: ({ state }) => stateText(state),
    },
    count('NODES', ({ numNodes }) => numNodes),
    count('EDGES', ({ numEdges }) => numEdges),
    ofOneType(count('FEATURES', ({ numFeatures }) => numFeatures)),
    ofOneType(count('CLASSES', ({ numClasses }) => numClasses)),
    count('TRAIN', ({ numTrain }) => numTrain),
    {
      title: 'SIZE',
      plainTitle: 'BYTES',
      align: 'right',
      shown: ({ bytes }) => formatBytes(Number(bytes)),
      plain: ({ bytes }) => String(bytes),
    },
    ofOneType({ title: 'TASK', isWide: true, shown: taskText }),
    ofOneType({ title: 'FEATURE DTYPE', isWide: true, shown: dtypeText }),
    { title: 'PATH', isWide: true, shown: ({ path }) => path },
    { title: 'DIGEST', isWide: true, shown: ({ digest }) => digest },
    { title: 'MESSAGE', isWide: true, shown: ({ message }) => printable(message) },
  ];
}

/** Empty for datasets of several types, each of which has its own: `dataset show` lists them. */
function ofOneType(column: Column<Dataset>): Column<Dataset> {
  const { shown, plain = shown } = column;
  const own = (text: (dataset: Dataset) => string) => (dataset: Dataset) =>
    dataset.nodeTypes.length > 0 ? '' : text(dataset);
  return { ...column, shown: own(shown), plain: own(plain) };
}

async function validateDataset(session: Session, given: string): Promise<number> {
  const name = resourceName('datasets', given);
  const started = await session.call(DatasetService.method.validateDataset, { name });
  const finished = await waitForOperation(session, started, {
    title: `checking ${idOf(name)}`,
    detached: [`check it again with: gnnctl dataset validate ${idOf(name)}`],
    cancels: true,
  });
  const validation = responseOf(finished, DatasetValidationSchema);
  const found = validation ?? create(DatasetValidationSchema);
  printOne(session, {
    schema: DatasetValidationSchema,
    message: found,
    name,
    facts: () => [
      ['Dataset', idOf(name), name],
      ['Valid', found.valid ? 'yes' : 'no', String(found.valid)],
      ['Problems', found.valid ? '' : formatCount(found.problemCount), `${found.problemCount}`],
      ...found.problems.map(
        ({ path, description }): Fact => [printable(path), printable(description)],
      ),
    ],
  });
  return found.valid ? gnnctlExit.OK : gnnctlExit.INTERNAL;
}
