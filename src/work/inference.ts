import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  existsSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
} from 'node:fs';
import { readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder, syncFolder, writeFileAtomic } from '../base/atomic-file.ts';
import { GnndError, messageOf } from '../base/errors.ts';
import { canonicalJson } from '../base/ids.ts';
import { featureNamesOf } from '../datasets/feature-names.ts';
import { parametersOf } from '../files/checkpoint.ts';
import type { CoreAddon, PredictionOptions } from '../native/contract.ts';
import { type JobLayout, nodesOf, outputsOf, questionOf } from '../plan/plan.ts';
import type { DatasetManifest, Problem } from '../records/dataset-record.ts';
import type { JobResult } from '../records/job-record.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { reads } from '../spec/spec-parts.ts';
import {
  type AttemptInput,
  runTask,
  TaskError,
  type TaskOptions,
} from '../supervisor/supervisor.ts';
import { readTrainedModel, type TrainedModel } from './trained-model.ts';

/**
 * A job that predicts: a segment whose training is over, with a checkpoint's parameters, and whose
 * one evaluation is of the nodes to be predicted (decision 0049). What its Trainers have done lies
 * in a folder of the job, so that a later attempt goes on from there; the files become visible
 * together, by one rename.
 */

/** What an inference works on, before anybody predicts. */
export interface InferenceWork {
  readonly parameters: Float32Array;
  readonly prediction: PredictionOptions;
  /** Number of rows of its files: nodes to be predicted, or pairs to be scored. */
  readonly nodes: number;
}

export const noPrediction: PredictionOptions = {
  folder: '',
  task: 'CLASSIFICATION',
  nodes: 'ALL',
  outputs: [],
  question: { asks: 'NOTHING', k: 0, among: false, withKnown: false },
};

/** Opens the file of hidden rows; the caller closes it. */
export function openHiddenRows({ inferenceFolder }: AttemptInput, bytes: number): number {
  const path = join(inferenceFolder, 'hidden.bin');
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o640);
  try {
    ftruncateSync(fd, bytes);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** Throws CHECKPOINT_CORRUPT where the model is not (any more) the one of the job's creation. */
export async function trainedModelOf({ inference }: JobSpec): Promise<TrainedModel> {
  const { path, parameters, parametersSha256 } = inference;
  try {
    const trained = await readTrainedModel(path, parameters);
    if (trained.file.parametersSha256 === parametersSha256) return trained;
    throw new Error(
      `${trained.file.path} holds parameters with SHA-256 ${trained.file.parametersSha256}, and ` +
        `those of this job have ${parametersSha256}`,
    );
  } catch (cause) {
    throw new GnndError('CHECKPOINT_CORRUPT', messageOf(cause), { cause });
  }
}

/**
 * The folder of the work, with what an earlier attempt left there, and the parameters. Rejects with
 * GnndError CHECKPOINT_CORRUPT, and SPEC_INVALID for a file of nodes.
 */
export async function beginInference(
  native: Pick<CoreAddon, 'hostInstructionSet' | 'hostBuildId'>,
  input: AttemptInput,
  { layout, trained, task }: { layout: JobLayout; trained: TrainedModel; task: TaskOptions },
): Promise<InferenceWork> {
  const { spec, dataset, inferenceFolder: folder, predictionsFolder } = input;
  const { nodes } = spec.inference;
  let parameters: Float32Array;
  try {
    parameters = parametersOf(layout.manifest, trained.file);
  } catch (cause) {
    throw new GnndError('CHECKPOINT_CORRUPT', messageOf(cause), { cause });
  }
  const basis = {
    ...{ version: 1, build: native.hostBuildId(), datasetDigest: input.datasetDigest },
    ...{ instructionSet: native.hostInstructionSet(), spec },
  };
  const facts = join(folder, 'work.json');
  const text = canonicalJson(basis);
  if (!existsSync(facts) || readFileSync(facts, 'utf8') !== text) {
    for (const each of [folder, predictionsFolder])
      await rm(each, { recursive: true, force: true });
    makeFolder(folder);
    await listAll(input, task);
    await writeFileAtomic(facts, [text]);
  } else if (existsSync(predictionsFolder)) {
    // A daemon died between this and the job's end: its files are as good as they were.
    await rename(predictionsFolder, join(folder, 'out'));
  }
  makeFolder(join(folder, 'out'));
  const question = questionOf(spec);
  const list = question.asks === 'SCORES' ? pairsName : nodes === 'LISTED' ? targetsName : null;
  const listed = list === null ? null : rowsIn(join(folder, list));
  return {
    parameters,
    nodes: listed ?? nodesOf(spec, dataset.counts),
    prediction: {
      folder,
      task: spec.inference.task,
      nodes: nodes === 'VALIDATION' ? 'VAL' : nodes,
      outputs: outputsOf(spec),
      question,
    },
  };
}

const targetsName = 'targets.npy';
const amongName = 'among.npy';
const pairsName = 'pairs.npy';

/** The user's lists, each read and written anew by a child; throws everything that is wrong. */
async function listAll(input: AttemptInput, task: TaskOptions): Promise<void> {
  const { nodes, nodesFile, nodeIds: ids, pairsFile, amongFile, k } = input.spec.inference;
  const wrong: string[] = [];
  const tell = (field: string, problems: readonly Problem[]) => {
    const texts = problems.map(({ path, description }) =>
      path === '' ? description : `${path}: ${description}`,
    );
    if (texts.length > 0) wrong.push(`spec.inference.${field}: ${texts.join('; ')}`);
  };
  if (nodes === 'LISTED') {
    const { problems } = await listed(input, task, { file: nodesFile, ids, name: targetsName });
    tell(nodesFile === '' ? 'node_ids' : 'nodes_file', problems);
  }
  if (amongFile !== '') {
    const list = { file: amongFile, ids: [], name: amongName };
    const among = await listed(input, task, list);
    tell('among_file', among.problems);
    if (among.problems.length === 0 && among.nodes <= k) {
      const description = `${k}: ${amongFile} lists ${among.nodes} nodes, expected fewer`;
      tell('k', [{ path: '', description }]);
    }
  }
  if (pairsFile !== '') tell('pairs_file', await pairsProblems(input, task));
  if (wrong.length > 0) throw new GnndError('SPEC_INVALID', wrong.join('; '));
}

interface NodeList {
  readonly file: string;
  readonly ids: readonly string[];
  /** Of the file in the job's folder that receives it. */
  readonly name: string;
}

async function listed(input: AttemptInput, task: TaskOptions, { file, ids, name }: NodeList) {
  const output = join(input.inferenceFolder, name);
  const { numNodes } = input.dataset.counts;
  const options = { file, ids, names: namesOf(input), numNodes, output };
  const answer = await runTask({ role: 'TARGETS', options }, task);
  if (answer.role !== 'TARGETS') throw new Error(`a reader of nodes answered ${answer.role}`);
  return answer.value;
}

async function pairsProblems(input: AttemptInput, task: TaskOptions): Promise<readonly Problem[]> {
  const { pairsFile: file } = input.spec.inference;
  const output = join(input.inferenceFolder, pairsName);
  const { numNodes } = input.dataset.counts;
  const options = { file, names: namesOf(input), numNodes, output };
  const answer = await runTask({ role: 'PAIRS', options }, task);
  if (answer.role !== 'PAIRS') throw new Error(`a reader of pairs answered ${answer.role}`);
  return answer.value.problems;
}

/** Path of the file of the nodes' names; null: the dataset has no names. */
function namesOf({ dataset }: AttemptInput): string | null {
  const path = join(dataset.folder, 'names.txt');
  return existsSync(path) ? path : null;
}

/**
 * Names of the dataset's classes, by number; null: it has none, or it is another dataset than the
 * model's own, whose classes may be others.
 */
async function classNamesOf({ spec, dataset, datasetDigest }: AttemptInput) {
  if (spec.inference.trainedOn !== datasetDigest) return null;
  const text = await readFile(join(dataset.folder, 'dataset.json'), 'utf8');
  return (JSON.parse(text) as DatasetManifest).class_names ?? null;
}

/** Rows of a file that TARGETS or PAIRS wrote, as its header says. */
function rowsIn(path: string): number {
  const bytes = Buffer.alloc(128);
  const fd = openSync(path, 'r');
  try {
    readSync(fd, bytes, 0, bytes.length, 0);
  } finally {
    closeSync(fd);
  }
  const [, rows = '0'] = /'shape': \((\d+),/.exec(bytes.toString('latin1')) ?? [];
  return Number(rows);
}

/** Facts told with the files; they follow from spec and dataset and contain no job's name. */
function factsOf(
  { spec, datasetDigest }: AttemptInput,
  nodes: number,
  classNames: readonly string[] | null,
) {
  const { inference } = spec;
  const { asks } = questionOf(spec);
  return {
    format: 'gnnd-predictions',
    version: 1,
    model: { type: spec.model.type, parameters_sha256: inference.parametersSha256 },
    dataset: { id: spec.dataset, digest: datasetDigest },
    evaluation: spec.evaluation.method.toLowerCase(),
    ...(asks === 'SCORES' ? {} : { nodes: inference.nodes.toLowerCase() }),
    rows: nodes,
    ...(reads(spec, 'links')
      ? { task: spec.task, outputs: inference.outputs.map((output) => output.toLowerCase()) }
      : { classes: inference.classes }),
    ...(reads(spec, 'links.labels')
      ? { labels: spec.links.labels, label_count: spec.links.labelCount }
      : {}),
    ...(asks === 'NEAREST' ? { k: inference.k, with_known: inference.withKnown } : {}),
    ...(inference.layer === 0 ? {} : { layer: inference.layer }),
    ...(classNames === null ? {} : { class_names: classNames }),
    ...(inference.task === 'CLASSIFICATION' || reads(spec, 'links')
      ? {}
      : { task: inference.task }),
  };
}

/**
 * Makes the files visible, all of them together, once every chunk is done; answers the job's
 * result. Rejects with what could not be written; then it may be tried again.
 */
export async function publishPredictions(
  input: AttemptInput,
  { nodes, prediction }: InferenceWork,
  { trained, task }: { readonly trained: TrainedModel; readonly task: TaskOptions },
): Promise<JobResult> {
  const { inferenceFolder, predictionsFolder, spec } = input;
  const out = join(inferenceFolder, 'out');
  const { formats, task: learnt, parametersSha256 } = spec.inference;
  const outputs = prediction.outputs.map(({ kind }) => kind);
  const classNames = await classNamesOf(input);
  const facts = factsOf(input, nodes, classNames);
  const { asks } = prediction.question;
  const wanted = { formats, classNames, outputs, asks, rows: nodes, learnt };
  const options = { folder: out, names: namesOf(input), ...wanted, facts };
  const answer = await runTask({ role: 'PUBLISH', options }, task).catch((error: unknown) => {
    if (!(error instanceof TaskError) || error.code !== 'DISK_FULL') throw error;
    throw Object.assign(new Error(error.message), { code: 'ENOSPC' });
  });
  if (answer.role !== 'PUBLISH') throw new Error(`a publisher answered ${answer.role}`);
  await rename(out, predictionsFolder);
  syncFolder(join(predictionsFolder, '..'));
  const manifest = readFileSync(join(predictionsFolder, 'inference.json'));
  const sha256 = createHash('sha256').update(manifest).digest('hex');
  const { bytes } = answer.value;
  const notice = columnsNotice(input, trained);
  const predictions = { folder: predictionsFolder, nodes, bytes, sha256, notice };
  return { ...nothingTrained, parametersSha256, predictions };
}

/** Tells that only the number of columns was compared, where a side has no names; else empty. */
function columnsNotice(
  { spec, dataset, datasetDigest }: AttemptInput,
  { featureNames, inDim }: TrainedModel,
): string {
  const names = featureNamesOf(dataset.folder);
  if (spec.inference.trainedOn === datasetDigest || (featureNames !== null && names !== null)) {
    return '';
  }
  const nameless = featureNames === null ? "the dataset of the model's training" : spec.dataset;
  return (
    `columns of features have no names in ${nameless}: that there are ${inDim} was compared, not ` +
    'that they mean the same in the same order'
  );
}

const nothingTrained = {
  checkpointDir: '',
  testAccuracyLast: 0,
  testAccuracyBest: 0,
  bestEpoch: 0,
  bestValAccuracy: 0,
  testMetricsLast: [],
  testMetricsBest: [],
  bestValMetrics: [],
  epochs: 0,
} as const;
