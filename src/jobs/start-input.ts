import { join } from 'node:path';
import { type FieldViolation, GnndError, messageOf } from '../base/errors.ts';
import { jobDataOf } from '../datasets/ready-dataset.ts';
import { imageFilesIn, imagesFolderOf } from '../files/image-files.ts';
import { copyStart, type StartFacts, type StartSource } from '../files/start-file.ts';
import type { CoreAddon, ModelManifest } from '../native/contract.ts';
import { type Pool, poolTask } from '../pool/pool.ts';
import type { JobRecord } from '../records/job-record.ts';
import type { JobSpec, JobSpecInput } from '../spec/job-spec.ts';
import { meantBy } from '../spec/nearest.ts';
import { show } from '../spec/spec-checker.ts';
import { reads } from '../spec/spec-parts.ts';
import type { Store } from '../store/store.ts';
import { workOf } from '../work/work.ts';

/** The parameters of another job, for one that is to begin with them. */

export interface StartSources {
  readonly store: Pick<Store, 'getJob' | 'getDataset' | 'listJobs'>;
  readonly native: CoreAddon;
  readonly jobsFolder: string;
  readonly pool: Pool;
}

const copying = poolTask(import.meta.url, '../files/start-file.ts', 'LONG', copyStart);

/** Parameters that were found, and the job that trained them. */
export interface Start extends StartFacts {
  readonly jobId: string;
  readonly model: JobSpec['model'];
}

/** The call that asks for a start, and the job that it is for. */
export interface StartAsked {
  /** Folder of the job that is to begin; null: nothing is to be copied. */
  readonly jobFolder: string | null;
  readonly signal: AbortSignal;
}

export interface FoundStart {
  /** Null: the job begins with fresh parameters, or there is a violation. */
  readonly start: Start | null;
  readonly violations: readonly FieldViolation[];
}

const field = 'spec.training.start_from';

/** Finds the parameters that `training.start_from` names and copies them for the job. */
export async function findStart(
  sources: StartSources,
  spec: JobSpecInput,
  asked: StartAsked,
): Promise<FoundStart> {
  const { startFrom = '', startParametersSha256: wanted = '' } = spec.training ?? {};
  if (!reads({ kind: spec.kind }, 'training') || (startFrom === '' && wanted === '')) {
    return { start: null, violations: [] };
  }
  const refuse = (description: string, path = field): FoundStart => ({
    start: null,
    violations: [{ path, description }],
  });
  const digestField = 'spec.training.start_parameters_sha256';
  if (startFrom === '') return refuse(`${show(wanted)}: only with start_from`, digestField);
  try {
    const start = await startOf(sources, startFrom, asked);
    if (wanted === '' || wanted === start.parametersSha256) return { start, violations: [] };
    return refuse(`${show(wanted)}: ${startFrom} has ${start.parametersSha256}`, digestField);
  } catch (error) {
    asked.signal.throwIfAborted();
    if (error instanceof GnndError) throw error;
    return refuse(`${show(startFrom)}: ${messageOf(error)}`);
  }
}

/** Jobs among which a mistyped id is looked for. */
const lookedThroughMax = 500;

/** Throws a sentence. */
async function startOf(
  sources: StartSources,
  startFrom: string,
  { jobFolder, signal }: StartAsked,
): Promise<Start> {
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
  if (!reads(job.effectiveSpec, 'training')) {
    throw new Error('is an inference; expected a job that trains');
  }
  if (job.effectiveSpec.model.type === 'TORCHSCRIPT') {
    throw new Error('a TORCHSCRIPT begins with the parameters in its file');
  }
  const source = checkpointOf(job, at) ?? imageOf(sources, job, at);
  const facts = await sources.pool.run(copying, { ...source, jobFolder }, signal);
  return { ...facts, jobId: job.id, model: job.effectiveSpec.model };
}

/** Where parameters lie. */
type Place = Omit<StartSource, 'jobFolder'>;

/** Place of a job's checkpoint; null where it has none. Epochs count from 1. */
function checkpointOf({ state, result }: JobRecord, at: string): Place | null {
  if (state !== 'SUCCEEDED' || result === null) return null;
  const { checkpointDir, epochs, bestEpoch } = result;
  const which =
    at === 'last' || at === String(epochs)
      ? 'LAST'
      : at === 'best' || at === String(bestEpoch + 1)
        ? 'BEST'
        : null;
  if (which !== null) return { path: checkpointDir, which, manifest: null };
  throw new Error(`has parameters of epoch ${epochs} (last) and ${bestEpoch + 1} (best) only`);
}

function imageOf(sources: StartSources, job: JobRecord, at: string): Place {
  const folder = imagesFolderOf(sources.jobsFolder, job.uid);
  const images = imageFilesIn(folder);
  const wanted = `epoch-${at.padStart(8, '0')}-batch-0000000000.image`;
  const isNewest = at === 'best' || at === 'last';
  const name = isNewest ? images[0] : images.find((each) => each === wanted);
  if (name === undefined) {
    const there = images.length === 0 ? 'no image yet' : `images ${images.join(', ')} only`;
    throw new Error(`is ${job.state} and has ${there}`);
  }
  const which = at === 'best' ? 'BEST' : 'LAST';
  return { path: join(folder, name), which, manifest: manifestOf(sources, job) };
}

function manifestOf({ store, native }: StartSources, { effectiveSpec }: JobRecord): ModelManifest {
  const dataset = store.getDataset(effectiveSpec.dataset);
  if (dataset === null) throw new Error(`its dataset ${effectiveSpec.dataset} is gone`);
  const { counts, schema } = jobDataOf(dataset, effectiveSpec);
  return workOf(effectiveSpec, schema).layout(native, counts).manifest;
}
