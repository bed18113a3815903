import { realpath } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import { type FieldViolation, messageOf } from '../base/errors.ts';
import { isInside } from '../base/rooted.ts';
import { columnsProblem, featureNamesOf } from '../datasets/feature-names.ts';
import { leadsOut, leaksOf } from '../datasets/source-root.ts';
import { completeInference, type TrainedFacts } from '../spec/inference-input.ts';
import type { JobSpecInput } from '../spec/job-spec.ts';
import { meantBy } from '../spec/nearest.ts';
import { show } from '../spec/spec-checker.ts';
import { reads } from '../spec/spec-parts.ts';
import type { Store } from '../store/store.ts';
import { readTrainedModel } from '../work/trained-model.ts';

/** An inference as it was asked for, completed by the model that it names. */

export interface InferenceSources {
  readonly store: Pick<Store, 'getJob' | 'getDataset' | 'listJobs'>;
  /** Where checkpoints of jobs lie. */
  readonly jobsFolder: string;
  /** Folder of files that users may name; empty: any. */
  readonly sourcesDir: string;
}

/** A spec to be resolved, and what is wrong with it already. */
export interface SpecWithModel {
  readonly spec: JobSpecInput;
  readonly violations: readonly FieldViolation[];
  /** False: without a model fewer fields can be checked than there are. */
  readonly isComplete: boolean;
}

/** `input` as it is where it is no inference. */
export async function withModel(
  sources: InferenceSources,
  input: JobSpecInput,
): Promise<SpecWithModel> {
  if (!reads({ kind: input.kind }, 'inference')) {
    return { spec: input, violations: [], isComplete: true };
  }
  const violations: FieldViolation[] = [];
  const violate = (path: string, description: string) => violations.push({ path, description });
  const trained = await trainedOf(sources, input.inference ?? {}, violate);
  for (const [key, field] of listFiles) {
    const file = input.inference?.[key] ?? '';
    const problem = isAbsolute(file) ? await placeProblem(file, [sources.sourcesDir]) : null;
    if (problem !== null) violate(`spec.inference.${field}`, `${show(file)}: ${problem}`);
  }
  if (trained === null) return { spec: input, violations, isComplete: false };
  const completed = completeInference(input, trained);
  violations.push(...completed.violations, ...datasetProblem(sources, completed.spec, trained));
  return { spec: completed.spec, violations, isComplete: true };
}

/** Files of the user's that an inference reads. */
const listFiles = [
  ['nodesFile', 'nodes_file'],
  ['pairsFile', 'pairs_file'],
  ['amongFile', 'among_file'],
] as const;

type Violate = (path: string, description: string) => void;

async function trainedOf(
  { store, jobsFolder, sourcesDir }: InferenceSources,
  { job: id = '', path = '', parameters }: NonNullable<JobSpecInput['inference']>,
  violate: Violate,
): Promise<TrainedFacts | null> {
  const field = id === '' ? 'path' : 'job';
  const at = `spec.inference.${field}`;
  if (id === '' && path === '') {
    violate('spec.inference.job', 'required: the job whose model predicts, or path');
    return null;
  }
  const folder = id === '' ? path : checkpointOf(store, id, violate);
  if (folder === null) return null;
  if (id !== '' && path !== '' && path !== folder) {
    violate('spec.inference.path', `${show(path)}: expected none beside job ${id}`);
    return null;
  }
  const problem = isAbsolute(folder)
    ? await modelProblem(folder, id === '' ? [sourcesDir, jobsFolder] : [''])
    : 'expected an absolute path';
  if (problem !== null) {
    violate(at, `${show(folder)}: ${problem}`);
    return null;
  }
  try {
    const { file, ...facts } = await readTrainedModel(folder, parameters ?? 'BEST');
    return { ...facts, parametersSha256: file.parametersSha256, folder };
  } catch (error) {
    violate(at, messageOf(error));
    return null;
  }
}

/** Jobs among which a mistyped id is looked for. */
const lookedThroughMax = 500;

function checkpointOf(
  store: InferenceSources['store'],
  id: string,
  violate: Violate,
): string | null {
  const job = store.getJob(id);
  const path = 'spec.inference.job';
  if (job === null) {
    const ended = store.listJobs({ limit: lookedThroughMax, after: null, states: ['SUCCEEDED'] });
    const meant = meantBy(
      id,
      ended.map((each) => each.id),
    );
    violate(path, `${show(id)}: there is no such job${meant}`);
  } else if (!reads(job.effectiveSpec, 'training')) {
    violate(path, `${show(id)}: is an inference itself; expected a job that trains`);
  } else if (job.state !== 'SUCCEEDED' || job.result === null) {
    violate(path, `${show(id)}: is ${job.state}; only a job that SUCCEEDED has a checkpoint`);
  } else return job.result.checkpointDir;
  return null;
}

/** Does what placeProblem does, for a folder and all that is in it. */
async function modelProblem(folder: string, roots: readonly string[]): Promise<string | null> {
  const problem = await placeProblem(folder, roots);
  if (problem !== null || roots.includes('')) return problem;
  const [leak] = await leaksOf(roots, folder, new AbortController().signal);
  return leak === undefined ? null : `${leak} ${leadsOut(roots[0] ?? '')}`;
}

/** Why the daemon may not read a path; null: it may. An empty root allows any place. */
async function placeProblem(path: string, roots: readonly string[]): Promise<string | null> {
  try {
    const real = await realpath(path);
    if (roots.includes('')) return null;
    for (const root of roots) if (isInside(await realpath(root), real)) return null;
    return `is not in ${roots[0]}, the daemon's sources_dir`;
  } catch (error) {
    return `cannot be read: ${messageOf(error)}`;
  }
}

function datasetProblem(
  { store }: Pick<InferenceSources, 'store'>,
  { dataset = '' }: JobSpecInput,
  { inDim, featureNames, datasetDigest }: TrainedFacts,
): readonly FieldViolation[] {
  const found = store.getDataset(dataset);
  // The rows that it was trained on are the model's whatever their columns are called.
  if (found?.state !== 'READY' || found.digest === datasetDigest) return [];
  if (found.schema !== null) {
    const description = `${show(dataset)}: has several types; expected the one it was trained on`;
    return [{ path: 'spec.dataset', description }];
  }
  const names = featureNamesOf(found.path);
  const has = `has ${found.numFeatures} features, the model takes ${inDim}`;
  const counted = found.numFeatures === inDim ? null : has;
  const problem =
    featureNames === null || names === null ? counted : columnsProblem(featureNames, names);
  if (problem === null) return [];
  return [{ path: 'spec.dataset', description: `${show(dataset)}: ${problem}` }];
}
