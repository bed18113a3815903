import { existsSync, writeFileSync } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { Document, isMap, isScalar, isSeq, parse, parseDocument } from 'yaml';
import { type Dataset, DatasetService } from '../../api/gen/gnnd/v1/dataset_service_pb.ts';
import { JobService } from '../../api/gen/gnnd/v1/job_service_pb.ts';
import { JobSpecSchema } from '../../api/gen/gnnd/v1/job_spec_pb.ts';
import { DatasetTask, DatasetTaskSchema } from '../../api/gen/gnnd/v1/types_pb.ts';
import { typed } from '../../base/advice.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { fileProblem } from '../../base/file-problem.ts';
import { counted } from '../../spec/counted.ts';
import { shortName } from '../../spec/enum-names.ts';
import { metricsOfTask } from '../../spec/metrics.ts';
import { leafAt, type SpecLeaf, specLeaves } from '../../spec/spec-fields.ts';
import { readSpec } from '../read/spec-file.ts';
import { CliError } from '../session/exit.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { classesNouns, taskText } from '../show/dataset-text.ts';
import { resourceName } from '../show/job-text.ts';
import { memoryLines } from '../show/memory-text.ts';
import { specYaml } from '../show/output.ts';

/** `gnnctl init`: a job file to begin with, with what each field means. */
export function addInit(program: Command, run: Run): void {
  program
    .command('init')
    .description('write a commented job file for a dataset; creates no job')
    .argument('<dataset>')
    .addOption(new Option('--model <type>', 'of the job').choices(models).argParser(modelOf))
    .option('--target <type>', 'that is learnt, of several (default: the first with labels)')
    .option('--epochs <n>', 'to train (default: as many as batches need)', epochsOf)
    .option('--file <file>', 'to write; - prints it', 'job.yaml')
    .option('--force', 'write over a file that is there')
    .action(run(init));
}

interface InitFlags {
  readonly model?: string;
  readonly target?: string;
  readonly epochs?: number;
  readonly file: string;
  readonly force?: boolean;
}

const models = leafAt('model.type').choices.filter((type) => type !== 'TORCHSCRIPT');

function modelOf(text: string): string {
  const type = text.toUpperCase();
  if (models.includes(type)) return type;
  throw new InvalidArgumentError(`expected one of ${models.join(', ')}`);
}

function epochsOf(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new InvalidArgumentError('expected a whole number, 1 or more');
}

/** What people change first, in the order of the spec; each only where the job reads it. */
const shown: ReadonlySet<string> = new Set([
  ...['dataset', 'random_seed', 'model.type', 'model.layers', 'model.hidden_dim', 'model.heads'],
  ...['relations.target', 'relations.reverse', 'relations.only', 'relations.fanouts'],
  ...['model.dropout', 'sampling.algorithm', 'sampling.fanouts', 'features.standardize'],
  ...['propagation.operators', 'propagation.hops', 'training.epochs', 'training.batch_size'],
  ...['training.optimizer.type', 'training.optimizer.learning_rate', 'training.staleness'],
  ...['training.precision', 'training.early_stop.patience_epochs', 'evaluation.every_epochs'],
  ...['evaluation.metric', 'evaluation.method', 'resources.devices'],
]);

async function init(session: Session, given: string, flags: InitFlags): Promise<number> {
  const name = resourceName('datasets', given);
  const dataset = await session.call(DatasetService.method.getDataset, { name });
  const id = name.slice('datasets/'.length);
  const sets = [
    `dataset=${id}`,
    ...(flags.epochs === undefined ? [] : [`training.epochs=${flags.epochs}`]),
    ...modelSets(dataset, flags.model),
    ...targetSets(dataset, flags.target),
  ];
  const reading = readSpec(null, sets);
  if (!('ok' in reading)) throw new Error('a spec of few fields cannot be read');
  const request = { spec: reading.ok.spec, validateOnly: true, requestId: session.requestId };
  const job = await session.call(JobService.method.createJob, request);
  if (job.effectiveSpec === undefined) throw new Error('the daemon answered no spec');
  const text = jobFileOf(dataset, specYaml(JobSpecSchema, job.effectiveSpec), flags.file);
  if (flags.file === '-') session.print(text);
  else writeNew(flags.file, text, flags.force === true);
  if (job.memory !== undefined) for (const line of memoryLines(job.memory)) session.say(line);
  if (flags.file !== '-')
    session.say(`wrote ${flags.file}; go on with: gnnctl job create -f ${typed(flags.file)}`);
  if (dataset.nodeTypes.length === 0) {
    session.say(`times and other ways to train: gnnctl job suggest ${id}`);
  }
  return gnnctlExit.OK;
}

/** A dataset of several types takes a model over relations. */
function modelSets({ nodeTypes }: Dataset, asked: string | undefined): readonly string[] {
  const model = asked ?? (nodeTypes.length > 0 ? 'RSAGE' : undefined);
  return model === undefined ? [] : [`model.type=${model}`];
}

/** Of several types that have labels the first is learnt, unless another one is asked for. */
function targetSets({ nodeTypes }: Dataset, asked: string | undefined): readonly string[] {
  const [first, second] = nodeTypes.filter(({ task }) => task !== 0);
  const target = asked ?? (second === undefined ? undefined : first?.name);
  return target === undefined ? [] : [`relations.target=${target}`];
}

function writeNew(file: string, text: string, isForced: boolean): void {
  if (!isForced && existsSync(file)) {
    throw new CliError(gnnctlExit.CONFLICT, `${file} is there already; --force writes over it`);
  }
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new CliError(gnnctlExit.FAILURE, `cannot write ${file}: ${fileProblem(error)}`);
  }
}

/** The file: `spec` is the whole spec in YAML, of which the fields are kept that are `shown`. */
export function jobFileOf(dataset: Dataset, spec: string, file: string): string {
  const values: unknown = parse(spec);
  const target = valueAt(values, 'relations.target');
  const about = dataset.nodeTypes.find((type) => type.name === target) ?? dataset;
  const name = file === '-' ? 'job.yaml' : typed(file);
  const document = new Document({ spec: {} });
  document.commentBefore = [
    ...sizeLines(dataset, about),
    ` Its task is ${taskText(about)}: ${learnt(about)}. Labels decide that when a dataset is`,
    ' imported, or gnnctl dataset import SOURCE --task regression (docs/datasets.md).',
    `   gnnctl job create -f ${name} --follow`,
    ' What is not here has its default; docs/job-spec.md explains all fields, and this shows them:',
    `   gnnctl job create -f ${name} --dry-run -o yaml`,
  ].join('\n');
  const kept = specLeaves.filter((leaf) => shown.has(leaf.path) && isRead(leaf, values));
  for (const { path } of kept) document.setIn(['spec', ...path.split('.')], valueAt(values, path));
  // Once more from what it says: keys that were set are plain, and take no comments.
  const written = parseDocument(document.toString());
  for (const leaf of kept)
    explain(written, ['spec', ...leaf.path.split('.')], withChoices(leaf, about));
  return written.toString({ lineWidth: 0, flowCollectionPadding: false });
}

/** What the nodes have that are learnt: of a dataset, or of a type. */
type Learnt = Pick<Dataset, 'task' | 'numFeatures' | 'numClasses' | 'numTrain'>;

function sizeLines({ name, numNodes, numEdges, nodeTypes, relations }: Dataset, about: Learnt) {
  const { numFeatures, numClasses, numTrain } = about;
  const nouns = classesNouns(about);
  const several = nodeTypes.length > 0;
  const ofTypes = several ? ` of ${counted(nodeTypes.length, 'type')}` : '';
  const ofRelations = several ? ` of ${counted(relations.length, 'relation')}` : '';
  const sizes = [
    `${counted(numNodes, 'node')}${ofTypes}`,
    `${counted(numEdges, 'edge')}${ofRelations}`,
    counted(numFeatures, 'column'),
    counted(numClasses, nouns.one, nouns.many),
    counted(numTrain, 'node'),
  ];
  return [
    ` A job on ${name.slice('datasets/'.length)}: ${sizes.slice(0, 2).join(', ')},`,
    ` ${sizes.slice(2).join(', ')} to train on.`,
  ];
}

/** What a job learns of a node. */
function learnt({ task }: Learnt): string {
  switch (task) {
    case DatasetTask.MULTI_LABEL:
      return 'several labels a node';
    case DatasetTask.REGRESSION:
      return 'numbers';
    default:
      return 'one class a node';
  }
}

/** Metrics are those of the dataset's task. */
function withChoices(leaf: SpecLeaf, { task }: Learnt): SpecLeaf {
  if (leaf.path !== 'evaluation.metric') return leaf;
  const name = shortName(DatasetTaskSchema, task || DatasetTask.CLASSIFICATION);
  const known = Object.entries(metricsOfTask).find(([each]) => each === name);
  return known === undefined ? leaf : { ...leaf, choices: known[1] };
}

function valueAt(values: unknown, path: string): unknown {
  return path.split('.').reduce((at, key) => Object(at)[key], values);
}

/** Models over rows have no sampling of their own, and others no propagation. */
function isRead({ owners, path }: SpecLeaf, values: unknown): boolean {
  if (valueAt(values, path) === undefined) return false;
  if (path.startsWith('sampling.') && isOwned(leafAt('propagation.hops'), values)) return false;
  return owners.length === 0 || isOwned({ owners }, values);
}

function isOwned({ owners }: Pick<SpecLeaf, 'owners'>, values: unknown): boolean {
  const isChosen = owners.map(({ path, values: of }) => of.includes(String(valueAt(values, path))));
  return isChosen.length > 0 && isChosen.every(Boolean);
}

function explain(document: Document, path: readonly string[], leaf: SpecLeaf): void {
  const parent = document.getIn(path.slice(0, -1));
  if (!isMap(parent)) return;
  const pair = parent.items.find(({ key }) => isScalar(key) && key.value === path.at(-1));
  if (pair === undefined || !isScalar(pair.key)) return;
  const choices = leaf.choices.length > 0 ? ` One of ${leaf.choices.join(', ')}.` : '';
  pair.key.commentBefore = ` ${leaf.option.about}${choices}`;
  if (isSeq(pair.value)) pair.value.flow = true;
}
