import { join } from 'node:path';
import { sha256Of } from '../base/digest.ts';
import { messageOf } from '../base/errors.ts';
import { readRegular } from '../base/regular-file.ts';
import {
  type CheckpointFile,
  type CheckpointKind,
  readCheckpoint,
  tensorsOf,
} from '../files/checkpoint.ts';
import type { Moments } from '../prepare/prepare.ts';
import { datasetTasks } from '../records/dataset-record.ts';
import type { DatasetTask, JobSpecInput } from '../spec/job-spec.ts';

/**
 * A model that a job trained, from its checkpoint's folder or from an export's: what it is, what it
 * was trained on, and its parameters. Files of users are read here, too, so nothing is believed but
 * what its digest vouches for; the spec is resolved again by whoever uses it.
 */
export interface TrainedModel {
  readonly file: Omit<CheckpointFile, 'model' | 'featureNames'>;
  /** The spec as it was resolved for the job that trained the model. */
  readonly spec: JobSpecInput;
  readonly inDim: number;
  readonly outDim: number;
  readonly task: DatasetTask;
  readonly datasetDigest: string;
  /** Names of the columns of features that it takes; null where their dataset named none. */
  readonly featureNames: readonly string[] | null;
  /** What an export says of standardised features and rows; null where it is to be looked up. */
  readonly moments: ExportedMoments | null;
}

export interface ExportedMoments {
  /** Moments of the features; null where those were not standardised. */
  readonly features: Moments | null;
  /** Moments of each token's columns; null where rows were not standardised. */
  readonly tokens: readonly { readonly token: string; readonly moments: Moments }[] | null;
}

/** Throws a sentence with the path and what is wrong there. */
export async function readTrainedModel(
  folder: string,
  kind: CheckpointKind,
): Promise<TrainedModel> {
  const exported = await readJson(join(folder, 'export.json'));
  if (exported !== null) return await readExport(folder, exported);
  const manifest = await readJson(join(folder, 'MANIFEST.json'));
  if (manifest === null) {
    throw new Error(`${folder} holds neither MANIFEST.json of a checkpoint nor export.json`);
  }
  const file = await readCheckpoint(folder, kind);
  const { model, spec, datasetDigest, featureNames = null } = manifest as CheckpointFacts;
  if (model === undefined || spec === undefined || datasetDigest === undefined) {
    throw new Error(`${folder}/MANIFEST.json does not say which model it is: train it again`);
  }
  const { inDim, outDim } = model;
  const task = taskOf(file.task);
  return { file, spec, inDim, outDim, task, datasetDigest, featureNames, moments: null };
}

function taskOf(task: string): DatasetTask {
  const known = datasetTasks.find((one) => one === task);
  if (known === undefined) throw new Error(`its task is ${task}, which this gnnd does not know`);
  return known;
}

interface CheckpointFacts {
  readonly spec?: JobSpecInput;
  readonly datasetDigest?: string;
  readonly featureNames?: readonly string[] | null;
  readonly model?: { readonly inDim: number; readonly outDim: number };
}

interface ExportFacts {
  readonly task: string;
  readonly spec?: JobSpecInput;
  readonly parameters_sha256: string;
  readonly dataset: { readonly digest: string };
  readonly feature_names?: readonly string[] | null;
  readonly model: { readonly in_dim: number; readonly out_dim: number };
  readonly folded_standardization: boolean;
  readonly feature_mean: readonly number[] | null;
  readonly feature_deviation: readonly number[] | null;
  readonly rows: {
    readonly tokens: readonly string[];
    readonly mean: readonly (readonly number[])[] | null;
    readonly deviation: readonly (readonly number[])[] | null;
  } | null;
  readonly files: Readonly<Record<string, { readonly sha256: string }>>;
}

async function readExport(folder: string, json: object): Promise<TrainedModel> {
  const facts = json as ExportFacts;
  const path = join(folder, 'model.safetensors');
  const { spec } = facts;
  if (spec === undefined) throw new Error(`${folder}/export.json has no spec: export it again`);
  try {
    const bytes = await readRegular(path);
    const sha256 = await sha256Of(bytes);
    if (facts.files['model.safetensors']?.sha256 !== sha256) {
      throw new Error('its SHA-256 is not the one in export.json');
    }
    const tensors = tensorsOf(bytes);
    const parametersSha256 = facts.parameters_sha256;
    const file = {
      path,
      bytes,
      size: bytes.length,
      sha256,
      parametersSha256,
      task: taskOf(facts.task),
      tensors,
    };
    const { in_dim: inDim, out_dim: outDim } = facts.model;
    // A model that takes raw features has taken over what was done to them.
    const standardize = facts.folded_standardization ? 'OFF' : spec.features?.standardize;
    return {
      ...{ file, inDim, outDim, datasetDigest: facts.dataset.digest, task: file.task },
      featureNames: facts.feature_names ?? null,
      spec: { ...spec, features: { ...spec.features, standardize } },
      moments: momentsOf(facts),
    };
  } catch (error) {
    throw new Error(`the export ${path} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

function momentsOf({ feature_mean, feature_deviation, rows }: ExportFacts): ExportedMoments {
  const of = (mean: readonly number[], deviation: readonly number[]): Moments => ({
    mean: Float64Array.from(mean),
    deviation: Float64Array.from(deviation),
  });
  const { tokens = [], mean = null, deviation = null } = rows ?? {};
  return {
    features:
      feature_mean === null || feature_deviation === null
        ? null
        : of(feature_mean, feature_deviation),
    tokens:
      mean === null || deviation === null
        ? null
        : tokens.map((token, at) => ({ token, moments: of(mean[at] ?? [], deviation[at] ?? []) })),
  };
}

/** Null where there is no such file. Throws for one that is no JSON object. */
async function readJson(path: string): Promise<object | null> {
  const bytes = await readRegular(path).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw new Error(`${path} cannot be read: ${messageOf(error)}`, { cause: error });
  });
  if (bytes === null) return null;
  const value: unknown = JSON.parse(bytes.toString('utf8'));
  if (typeof value === 'object' && value !== null) return value;
  throw new Error(`${path} is no JSON object`);
}
