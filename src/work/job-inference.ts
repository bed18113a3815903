import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder, writeFileAtomic } from '../base/atomic-file.ts';
import { GnndError } from '../base/errors.ts';
import type { JobLayout } from '../plan/plan.ts';
import {
  type GivenMoments,
  loadFeatures,
  type Moments,
  type MomentsFile,
  momentsPath,
  trainedSource,
} from '../prepare/prepare.ts';
import type { JobResult } from '../records/job-record.ts';
import type { PropagationSource } from '../records/propagation-record.ts';
import type { TaskOptions } from '../supervisor/supervisor.ts';
import type { WorkContext } from './context.ts';
import {
  beginInference,
  type InferenceWork,
  publishPredictions,
  trainedModelOf,
} from './inference.ts';
import type { TrainedModel } from './trained-model.ts';

/** What an attempt at an inference reads and writes through children of its own. */
export class JobInference {
  readonly #context: WorkContext;
  readonly #abort = new AbortController();
  #working: Promise<unknown> = Promise.resolve();
  #trained: TrainedModel | null = null;
  #work: InferenceWork | null = null;
  #rows: Promise<GivenMoments & { readonly digest: string }> | null = null;

  constructor(context: WorkContext) {
    this.#context = context;
  }

  /** Once, first. Rejects with GnndError CHECKPOINT_CORRUPT. */
  async readModel(): Promise<TrainedModel> {
    this.#trained = await trainedModelOf(this.#context.input.spec);
    return this.#trained;
  }

  /** Whether the nodes are those of another dataset than the model was trained on. */
  get isElsewhere(): boolean {
    const { spec, datasetDigest } = this.#context.input;
    return spec.inference.trainedOn !== datasetDigest;
  }

  /**
   * Moments to standardise features by, where those are not their own dataset's. Rejects
   * with GnndError DATASET_CORRUPT where nobody can tell any more.
   */
  features(): Promise<MomentsFile | null> {
    return this.#tracked(() => this.#features());
  }

  async #features(): Promise<MomentsFile | null> {
    const { spec } = this.#context.input;
    if (spec.features.standardize === 'OFF' || !this.isElsewhere) return null;
    const exported = this.#model.moments?.features ?? null;
    return exported === null ? await this.#trainedOn() : await this.#written(exported);
  }

  /**
   * How a propagation for these nodes differs from one for training: it is of all nodes unless
   * they are a split, and standardised by the training's moments where its dataset is another.
   */
  async rowSource(): Promise<Pick<PropagationSource, 'allNodes' | 'moments'>> {
    const { nodes } = this.#context.input.spec.inference;
    const isOfAll = nodes === 'ALL' || nodes === 'LISTED';
    const { digest } = await this.#rowMoments();
    return {
      ...(isOfAll ? { allNodes: true } : {}),
      ...(digest === '' ? {} : { moments: digest }),
    };
  }

  /** The files of the moments that `rowSource` names. */
  async givenMoments(): Promise<GivenMoments> {
    const { features, rowsFolder } = await this.#rowMoments();
    return { features, rowsFolder };
  }

  #rowMoments(): Promise<GivenMoments & { readonly digest: string }> {
    this.#rows ??= this.#tracked(async () => {
      const { spec } = this.#context.input;
      if (!this.isElsewhere) return { features: null, rowsFolder: '', digest: '' };
      const features = await this.#features();
      const rows = spec.propagation.standardize ? await this.#tokens() : null;
      const digest = [features?.digest ?? '', rows?.digest ?? ''].join(':');
      return { features, rowsFolder: rows?.folder ?? '', digest: digest === ':' ? '' : digest };
    });
    return this.#rows;
  }

  /** A file for each token's moments, in a folder of the job. */
  async #tokens(): Promise<{ readonly folder: string; readonly digest: string }> {
    const { input, propagations } = this.#context;
    const { spec, inferenceFolder } = input;
    const { inDim, moments } = this.#model;
    const source = trainedSource(spec, spec.inference.trainedOn);
    const tokens = moments?.tokens ?? (await propagations.moments(source, inDim));
    if (tokens === null) {
      throw new GnndError(
        'DATASET_CORRUPT',
        'the model takes rows standardised as those of its training were, whose propagation is ' +
          'gone: predict with an export, which says how',
      );
    }
    const folder = join(inferenceFolder, 'moments');
    makeFolder(folder);
    const hash = createHash('sha256');
    for (const { token, moments: of } of tokens) {
      const bytes = bytesOf(of);
      for (const part of bytes) hash.update(part);
      await writeFileAtomic(join(folder, `${token}.npy.moments`), bytes);
    }
    return { folder, digest: hash.digest('hex') };
  }

  /** Writes the moments of an export beside what is derived by them. */
  async #written(moments: Moments): Promise<MomentsFile> {
    const { cacheFolder } = this.#context.input;
    const bytes = bytesOf(moments);
    const digest = createHash('sha256').update(Buffer.concat(bytes)).digest('hex');
    makeFolder(cacheFolder);
    const path = join(cacheFolder, `${digest.slice(0, 32)}-exported.moments`);
    await writeFileAtomic(path, bytes);
    return { path, digest };
  }

  /** Finds the moments of the dataset of the training, which must still exist. */
  async #trainedOn(): Promise<MomentsFile> {
    const { spec, trainedDataset, cacheFolder } = this.#context.input;
    const { trainedOn } = spec.inference;
    if (trainedDataset === null) {
      throw new GnndError(
        'DATASET_CORRUPT',
        `features are to be standardised by the dataset of the training, and none has ` +
          `its digest ${trainedOn.slice(0, 12)}… any more: predict with an export, which says how`,
      );
    }
    const request = { dataset: trainedDataset, datasetDigest: trainedOn };
    const { featuresPath } = await loadFeatures(
      this.#context.witness,
      { ...request, standardizedFolder: cacheFolder },
      this.#task(),
    );
    const path = momentsPath(featuresPath);
    const digest = createHash('sha256')
      .update(await readFile(path))
      .digest('hex');
    return { path, digest };
  }

  /** Once, after the model was read. Rejects as `beginInference` does. */
  begin(layout: JobLayout): Promise<InferenceWork> {
    return this.#tracked(async () => {
      const { native, input } = this.#context;
      const facts = { layout, trained: this.#model, task: this.#task() };
      this.#work = await beginInference(native, input, facts);
      return this.#work;
    });
  }

  /** Throws before `begin` has ended. */
  get work(): InferenceWork {
    if (this.#work === null) throw new Error('the inference was not begun');
    return this.#work;
  }

  /** Publishes the predictions after all chunks are done. */
  publish(): Promise<JobResult> {
    return this.#tracked(() => {
      const given = { trained: this.#model, task: this.#task() };
      return publishPredictions(this.#context.input, this.work, given);
    });
  }

  /** Resolves when no process of ours is left. */
  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#working;
  }

  get #model(): TrainedModel {
    if (this.#trained === null) throw new Error('the model was not read');
    return this.#trained;
  }

  #task(): TaskOptions {
    const { input, native } = this.#context;
    return {
      cores: input.devices.flatMap(({ cores }) => cores),
      topologyFd: null,
      threads: 1,
      logPath: join(input.logFolder, 'inference.log'),
      instructionSet: native.hostInstructionSet(),
      signal: this.#abort.signal,
    };
  }

  #tracked<T>(work: () => Promise<T>): Promise<T> {
    const working = work();
    this.#working = working.catch(() => {});
    return working;
  }
}

/** Means, then divisors, little-endian float64. */
function bytesOf({ mean, deviation }: Moments): readonly Uint8Array[] {
  return [mean, deviation].map(
    (part) => new Uint8Array(part.buffer, part.byteOffset, part.byteLength),
  );
}
