import { join } from 'node:path';
import { type FieldViolation, messageOf } from '../base/errors.ts';
import { countsOf } from '../datasets/ready-dataset.ts';
import {
  parametersSha256Of,
  readCheckpoint,
  safetensorsOf,
  tensorsOf,
} from '../files/checkpoint.ts';
import { imageFilesIn, imagesFolderOf } from '../files/image-files.ts';
import { imageParameters } from '../files/image-parameters.ts';
import type { CoreAddon, ModelManifest, ModelOptions } from '../native/contract.ts';
import { layoutOf } from '../plan/job-layout.ts';
import type { JobRecord } from '../records/job-record.ts';
import type { JobSpecInput } from '../spec/job-spec.ts';
import { meantBy } from '../spec/nearest.ts';
import { infers } from '../spec/rules/inference.ts';
import { show } from '../spec/spec-checker.ts';
import type { Store } from '../store/store.ts';

/** The parameters of another job, for one that is to begin with them. */

export interface StartSources {
  readonly store: Pick<Store, 'getJob' | 'getDataset' | 'listJobs'>;
  readonly native: CoreAddon;
  readonly jobsFolder: string;
}

export interface Start {
  /** A safetensors file. */
  readonly bytes: Buffer;
  readonly parametersSha256: string;
  /** Of the job that trained them. */
  readonly job: JobRecord;
}

export interface FoundStart {
  /** Null: the job begins with fresh parameters, or there is a violation. */
  readonly start: Start | null;
  readonly violations: readonly FieldViolation[];
}

const field = 'spec.training.start_from';

/** What `training.start_from` names. */
export async function findStart(sources: StartSources, spec: JobSpecInput): Promise<FoundStart> {
  const { startFrom = '', startParametersSha256: wanted = '' } = spec.training ?? {};
  if (spec.kind === 'INFERENCE' || (startFrom === '' && wanted === '')) {
    return { start: null, violations: [] };
  }
  const refuse = (description: string, path = field): FoundStart => ({
    start: null,
    violations: [{ path, description }],
  });
  const digestField = 'spec.training.start_parameters_sha256';
  if (startFrom === '') return refuse(`${show(wanted)}: only with start_from`, digestField);
  try {
    const start = await startOf(sources, startFrom);
    if (wanted === '' || wanted === start.parametersSha256) return { start, violations: [] };
    return refuse(`${show(wanted)}: ${startFrom} has ${start.parametersSha256}`, digestField);
  } catch (error) {
    return refuse(`${show(startFrom)}: ${messageOf(error)}`);
  }
}

/** Jobs among which a mistyped id is looked for. */
const lookedThroughMax = 500;

/** Throws a sentence. */
async function startOf(sources: StartSources, startFrom: string): Promise<Start> {
  const [, id = '', at = ''] = /^([a-z0-9-]+)@(best|last|[1-9][0-9]{0,6})$/.exec(startFrom) ?? [];
  if (id === '') throw new Error('expected JOB@best, JOB@last or JOB@EPOCH');
  const job = sources.store.getJob(id);
  if (job === null) {
    const known = sources.store.listJobs({ limit: lookedThroughMax, after: null, states: [] });
    throw new Error(
      `there is no such job${meantBy(
        id,
        known.map((each) => each.id),
      )}`,
    );
  }
  if (infers(job.effectiveSpec)) throw new Error('is an inference; expected a job that trains');
  if (job.effectiveSpec.model.type === 'TORCHSCRIPT') {
    throw new Error('a TORCHSCRIPT begins with the parameters in its file');
  }
  const bytes = (await ofCheckpoint(job, at)) ?? (await ofImage(sources, job, at));
  return { bytes, parametersSha256: await parametersSha256Of(bytes), job };
}

/** Null where the job has none of that epoch. Epochs count from 1. */
async function ofCheckpoint({ state, result }: JobRecord, at: string): Promise<Buffer | null> {
  if (state !== 'SUCCEEDED' || result === null) return null;
  const { checkpointDir, epochs, bestEpoch } = result;
  const kind =
    at === 'last' || at === String(epochs)
      ? 'LAST'
      : at === 'best' || at === String(bestEpoch + 1)
        ? 'BEST'
        : null;
  if (kind !== null) return (await readCheckpoint(checkpointDir, kind)).bytes;
  throw new Error(`has parameters of epoch ${epochs} (last) and ${bestEpoch + 1} (best) only`);
}

async function ofImage(sources: StartSources, job: JobRecord, at: string): Promise<Buffer> {
  const folder = imagesFolderOf(sources.jobsFolder, job.uid);
  const images = imageFilesIn(folder);
  const wanted = `epoch-${at.padStart(8, '0')}-batch-0000000000.image`;
  const isNewest = at === 'best' || at === 'last';
  const name = isNewest ? images[0] : images.find((each) => each === wanted);
  if (name === undefined) {
    const there = images.length === 0 ? 'no image yet' : `images ${images.join(', ')} only`;
    throw new Error(`is ${job.state} and has ${there}`);
  }
  const parameters = await imageParameters(join(folder, name), at === 'best' ? 'BEST' : 'LAST');
  const manifest = manifestOf(sources, job);
  if (manifest.numFloats !== parameters.length) throw new Error(`${name} is of another model`);
  return Buffer.concat([...safetensorsOf(manifest, parameters, { format: 'pt' })]);
}

function manifestOf({ store, native }: StartSources, { effectiveSpec }: JobRecord): ModelManifest {
  const dataset = store.getDataset(effectiveSpec.dataset);
  if (dataset === null) throw new Error(`its dataset ${effectiveSpec.dataset} is gone`);
  return layoutOf(native, effectiveSpec, countsOf(dataset)).manifest;
}

/** Why a model cannot take the parameters over, by the fields that make its shapes others. */
export function startViolations(
  native: Pick<CoreAddon, 'modelManifest'>,
  { bytes, job }: Start,
  model: ModelOptions,
): readonly FieldViolation[] {
  const shapes = (options: ModelOptions) =>
    native.modelManifest(options).tensors.map(({ name, shape }) => ({ name, shape }));
  if (model.type === 'TORCHSCRIPT') {
    return [{ path: field, description: 'a TORCHSCRIPT begins with the parameters in its file' }];
  }
  const given = JSON.stringify(tensorsOf(bytes));
  const own = JSON.stringify(shapes(model));
  if (given === own) return [];
  const before: Readonly<Record<string, unknown>> = job.effectiveSpec.model;
  const now: Readonly<Record<string, unknown>> = { ...model };
  const decides = (key: string) => {
    try {
      return JSON.stringify(shapes({ ...model, [key]: before[key] })) !== own;
    } catch {
      return true;
    }
  };
  const others = Object.keys(before).filter(
    (key) => JSON.stringify(before[key]) !== JSON.stringify(now[key]) && decides(key),
  );
  const violations = others.map((key) => ({
    path: `spec.model.${key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`,
    description: `${show(now[key])}: job ${job.id}, from which it begins, has ${show(before[key])}`,
  }));
  if (violations.length > 0) return violations;
  const why = 'its rows or classes are others than those of the dataset';
  return [{ path: 'spec.dataset', description: `${why} of job ${job.id}, from which it begins` }];
}
