import { createHash, type Hash } from 'node:crypto';
import { closeSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { makeFolder } from '../base/atomic-file.ts';
import { GnndError, messageOf } from '../base/errors.ts';
import { createLine } from '../base/line.ts';
import { readRegular } from '../base/regular-file.ts';
import type { CoreAddon, ModelOptions, PredictOptions } from '../native/contract.ts';
import { nativeCodeOf } from '../native/load.ts';
import type { DatasetManifest, DatasetRecord } from '../records/dataset-record.ts';
import type { EpochReport, JobRecord, JobResult } from '../records/job-record.ts';
import { show } from '../spec/spec-checker.ts';
import type { Store } from '../store/store.ts';
import {
  type CheckpointFacts,
  type CheckpointFile,
  type CheckpointKind,
  type CheckpointLook,
  createCheckpointLook,
  parametersOf,
  readCheckpoint,
} from '../supervisor/checkpoint.ts';
import { type LoadedDataset, loadDataset } from '../supervisor/load-dataset.ts';
import { type PredictionPart, predict } from '../supervisor/prediction.ts';
import type { Moments } from '../supervisor/standardization.ts';
import { countsOf } from './dataset-counts.ts';
import { checkFold, foldedFile, momentsOf } from './export-standardization.ts';
import { requireReady } from './jobs.ts';

/** What jobs leave: their parameters, and what those predict. */

export interface CheckpointRecord {
  readonly jobId: string;
  readonly kind: CheckpointKind;
  readonly epoch: number;
  readonly valAccuracy: number;
  readonly testAccuracy: number;
  readonly file: CheckpointFacts;
}

export interface ExportRequest {
  readonly jobId: string;
  readonly kind: CheckpointKind;
  readonly predictions: 'NONE' | PredictOptions['nodes'];
  /** Bound on hidden layers' rows; 0 = 1 GiB. */
  readonly memoryBytes: number;
  /** Whether the model is to take features as they were imported. */
  readonly foldStandardization: boolean;
}

export type ExportPart =
  | { readonly kind: 'checkpoint'; readonly checkpoint: CheckpointRecord }
  | { readonly kind: 'progress'; readonly share: number; readonly message: string }
  | Exclude<PredictionPart, { readonly kind: 'progress' }>;

export interface Checkpoints {
  /** The best epoch's, then the last one's. Throws JOB_NOT_FOUND, JOB_STATE_CONFLICT. */
  list(jobId: string): Promise<readonly CheckpointRecord[]>;
  /**
   * The checkpoint, then files: model.safetensors, predictions, export.json. Nothing is computed
   * ahead of the reader, and nothing is left when it goes away or `signal` aborts. Throws what
   * `list` throws, SPEC_INVALID, DATASET_NOT_READY, DATASET_CHANGED, DATASET_CORRUPT and
   * CHECKPOINT_CORRUPT.
   */
  export(request: ExportRequest, signal: AbortSignal): AsyncGenerator<ExportPart, void, void>;
}

export interface CheckpointsOptions {
  readonly store: Store;
  readonly native: CoreAddon;
  /** Holds derived features. */
  readonly featuresFolder: string;
  /** Its log folder takes the children's logs. */
  readonly stateDir: string;
}

const memoryBytesMin = 2 ** 20;
const pieceBytes = 256 * 1024;

export function createCheckpoints(options: CheckpointsOptions): Checkpoints {
  // One model predicts at a time: memory for one is what a host can be expected to spare.
  const line = createLine();
  const look = createCheckpointLook();
  return {
    async list(jobId) {
      const found = trainedJob(options.store, jobId);
      const kinds = ['BEST', 'LAST'] as const;
      return await Promise.all(kinds.map((kind) => recordOf(found, kind, look)));
    },
    async *export(request, signal) {
      checkRequest(request);
      const found = trainedJob(options.store, request.jobId);
      const file = await read(found, request.kind, readCheckpoint);
      const record = recordOfFile(found, request.kind, file);
      const model = modelOf(found, file);
      if (request.foldStandardization) checkFold(found.job, model);
      const moments = await standardizationOf(options, found.job, model, { request, signal });
      const exported =
        request.foldStandardization && moments !== null
          ? await foldedFile(options.native, found.job, model, { file, moments })
          : file;
      const { predictions: nodes, memoryBytes } = request;
      const prediction =
        nodes === 'NONE'
          ? null
          : await prepare(options, found, file, { model, nodes, memoryBytes });
      const ledger = createLedger();
      yield { kind: 'checkpoint', checkpoint: record };
      yield* ledger.noting(modelParts(exported));
      if (prediction !== null) {
        if (line.isBusy()) {
          yield { kind: 'progress', share: 0, message: 'waiting for another export' };
        }
        const leave = await line.enter(signal);
        try {
          yield { kind: 'progress', share: 0, message: 'loading the dataset' };
          yield* ledger.noting(predictionParts(options, prediction, signal));
        } finally {
          leave();
        }
      }
      const { foldStandardization: isFolded } = request;
      const { parametersSha256 } = exported;
      const standardization = { isFolded, moments };
      yield* summaryParts(
        { record, model, job: found.job, prediction, parametersSha256, standardization },
        ledger.files(),
      );
    },
  };
}

function checkRequest({ memoryBytes }: ExportRequest): void {
  const max = totalmem();
  if (memoryBytes === 0 || (memoryBytes >= memoryBytesMin && memoryBytes <= max)) return;
  const description = `${show(memoryBytes)}: expected 0 or from ${memoryBytesMin} to ${max}`;
  throw new GnndError('SPEC_INVALID', 'invalid request: memory_bytes', {
    violations: [{ path: 'memory_bytes', description }],
  });
}

interface TrainedJob {
  readonly job: JobRecord;
  readonly result: JobResult;
  readonly last: EpochReport | null;
}

function trainedJob(store: Store, id: string): TrainedJob {
  const resource = `jobs/${id}`;
  const job = store.getJob(id);
  if (job === null) throw new GnndError('JOB_NOT_FOUND', `there is no job ${id}`, { resource });
  const { result, state } = job;
  if (result !== null && state === 'SUCCEEDED') {
    const attempt = job.attempts.at(-1)?.number ?? 0;
    const [last] = store.epochs(id, attempt, Math.max(0, result.epochs - 1), 1);
    return { job, result, last: last?.report ?? null };
  }
  const message = `job ${id} is ${state}: only a job that SUCCEEDED has checkpoints`;
  throw new GnndError('JOB_STATE_CONFLICT', message, { resource });
}

async function read<T>(
  { job, result }: TrainedJob,
  kind: CheckpointKind,
  reader: (folder: string, kind: CheckpointKind) => Promise<T>,
): Promise<T> {
  return await reader(result.checkpointDir, kind).catch((cause: unknown) => {
    throw corrupt(job, cause);
  });
}

async function recordOf(found: TrainedJob, kind: CheckpointKind, look: CheckpointLook) {
  return recordOfFile(found, kind, await read(found, kind, look));
}

function recordOfFile(
  { job, result, last }: TrainedJob,
  kind: CheckpointKind,
  { path, size, sha256, parametersSha256, model, tensors }: CheckpointFacts,
): CheckpointRecord {
  const accuracies =
    kind === 'BEST'
      ? {
          epoch: result.bestEpoch,
          valAccuracy: result.bestValAccuracy,
          testAccuracy: result.testAccuracyBest,
        }
      : {
          epoch: last?.epoch ?? 0,
          valAccuracy: last?.valAccuracy ?? 0,
          testAccuracy: result.testAccuracyLast,
        };
  const file = { path, size, sha256, parametersSha256, model, tensors };
  return { jobId: job.id, kind, ...accuracies, file };
}

function corrupt(job: JobRecord, cause: unknown): GnndError {
  const details = { resource: `jobs/${job.id}`, cause };
  return new GnndError('CHECKPOINT_CORRUPT', messageOf(cause), details);
}

function modelOf({ job }: TrainedJob, { path, model }: CheckpointFile): ModelOptions {
  if (model !== null) return model;
  throw corrupt(
    job,
    new Error(`${path} was written by an earlier gnnd, without its model's shape`),
  );
}

/**
 * By what the job's features were standardised; null where they were not, and where nobody can tell
 * any more because the dataset is gone. Folding needs it and throws why.
 */
async function standardizationOf(
  options: CheckpointsOptions,
  job: JobRecord,
  model: ModelOptions,
  { request, signal }: { readonly request: ExportRequest; readonly signal: AbortSignal },
): Promise<Moments | null> {
  if (!job.effectiveSpec.features.standardize) return null;
  try {
    const dataset = requireReady(options.store, job.effectiveSpec.dataset);
    await unchangedManifest(job, dataset);
    return await momentsOf(model.inDim, async () => {
      const loaded = await loadForExport(options, { job, dataset, signal });
      closeSync(loaded.topologyFd);
      return loaded.location.featuresPath;
    });
  } catch (error) {
    signal.throwIfAborted();
    if (request.foldStandardization) throw error;
    return null;
  }
}

/** All that a prediction needs, checked. */
interface Prediction {
  readonly job: JobRecord;
  readonly dataset: DatasetRecord;
  readonly manifest: DatasetManifest;
  readonly model: ModelOptions;
  readonly parameters: Float32Array;
  readonly nodes: PredictOptions['nodes'];
  readonly memoryBytes: number;
}

async function prepare(
  { store, native }: CheckpointsOptions,
  { job }: TrainedJob,
  file: CheckpointFile,
  wanted: Pick<Prediction, 'model' | 'nodes' | 'memoryBytes'>,
): Promise<Prediction> {
  const { effectiveSpec: spec } = job;
  refuseScript(job);
  const dataset = requireReady(store, spec.dataset);
  const manifest = await unchangedManifest(job, dataset);
  try {
    const parameters = parametersOf(native.modelManifest(wanted.model), file);
    return { job, dataset, manifest, parameters, ...wanted };
  } catch (cause) {
    throw corrupt(job, cause);
  }
}

/** A script has its own code beside the parameters, which only its job's executors have loaded. */
function refuseScript({ id, effectiveSpec }: JobRecord): void {
  if (effectiveSpec.model.type !== 'TORCHSCRIPT') return;
  const description =
    `job ${id} trained a TorchScript model: expected NONE; ` +
    'load model.safetensors into your module to predict with it';
  throw new GnndError('SPEC_INVALID', 'invalid request: predictions', {
    violations: [{ path: 'predictions', description }],
  });
}

/** dataset.json vouches for the arrays; `dataset validate` reads all of them. */
async function unchangedManifest(job: JobRecord, dataset: DatasetRecord): Promise<DatasetManifest> {
  const resource = `datasets/${dataset.id}`;
  const path = join(dataset.path, 'dataset.json');
  const text = await readRegular(path).catch((cause: unknown) => {
    const message = `${path} cannot be read: ${messageOf(cause)}`;
    throw new GnndError('DATASET_CORRUPT', message, { resource, cause });
  });
  const digest = createHash('sha256').update(text).digest('hex');
  if (digest === job.datasetDigest) return JSON.parse(text.toString('utf8'));
  const message =
    `dataset ${dataset.id} is not the one that job ${job.id} was trained on: its digest is ` +
    `${digest}, not ${job.datasetDigest}`;
  throw new GnndError('DATASET_CHANGED', message, { resource });
}

function* modelParts({ bytes }: CheckpointFile): Generator<ExportPart, void, void> {
  yield { kind: 'file', name: 'model.safetensors', bytes: bytes.length };
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    yield { kind: 'data', bytes: bytes.subarray(at, at + pieceBytes) };
  }
}

/** Where the tasks of an export run and what they write to. */
function exportTask({ native, stateDir }: CheckpointsOptions, job: JobRecord, signal: AbortSignal) {
  return {
    cores: [],
    logPath: join(stateDir, 'log', 'export.log'),
    threads: job.effectiveSpec.training.threadsPerTrainer,
    instructionSet: native.hostInstructionSet(),
    signal,
  };
}

/** The dataset with the features that the job read. The caller closes its topology. */
async function loadForExport(
  options: CheckpointsOptions,
  {
    job,
    dataset,
    signal,
  }: { readonly job: JobRecord; readonly dataset: DatasetRecord; readonly signal: AbortSignal },
): Promise<LoadedDataset> {
  const { datasetDigest, effectiveSpec } = job;
  const isStandardized = effectiveSpec.features.standardize;
  return await loadDataset(
    options.native,
    {
      dataset: { folder: dataset.path, counts: countsOf(dataset) },
      standardized: isStandardized ? { datasetDigest, folder: options.featuresFolder } : null,
      alias: false,
    },
    exportTask(options, job, signal),
  );
}

async function* predictionParts(
  options: CheckpointsOptions,
  { job, dataset, model, parameters, nodes, memoryBytes }: Prediction,
  signal: AbortSignal,
): AsyncGenerator<ExportPart, void, void> {
  const { effectiveSpec: spec } = job;
  const { threadsPerTrainer: threads } = spec.training;
  let topologyFd: number | null = null;
  const task = exportTask(options, job, signal);
  try {
    const loaded = await loadForExport(options, { job, dataset, signal });
    topologyFd = loaded.topologyFd;
    makeFolder(options.featuresFolder);
    const parts = predict(
      {
        dataset: loaded.location,
        model,
        parameters,
        nodes,
        // As evaluation does.
        weightedMeans: spec.sampling.algorithm === 'KHOP_WEIGHTED',
        threads,
        memoryBytes: memoryBytes === 0 ? spec.evaluation.maxBytes : memoryBytes,
        scratchFolder: options.featuresFolder,
      },
      { ...task, topologyFd },
    );
    for await (const part of parts) {
      if (part.kind !== 'progress') yield part;
      else yield { ...part, message: `predicting ${nodesText(nodes)}` };
    }
  } catch (error) {
    signal.throwIfAborted();
    throw failureOf(error, dataset);
  } finally {
    if (topologyFd !== null) closeSync(topologyFd);
  }
}

function nodesText(nodes: Prediction['nodes']): string {
  return nodes === 'ALL' ? 'all nodes' : `${nodes === 'VAL' ? 'validation' : 'test'} nodes`;
}

function failureOf(error: unknown, { id }: DatasetRecord): unknown {
  const code = nativeCodeOf(error);
  if (code !== 'DATASET_CORRUPT' && code !== 'DATASET_NOT_FOUND') return error;
  const details = { resource: `datasets/${id}`, cause: error };
  return new GnndError('DATASET_CORRUPT', messageOf(error), details);
}

interface LedgerEntry {
  readonly bytes: number;
  readonly sha256: string;
}

/** Size and digest of every file that passes by. */
function createLedger() {
  const sizes = new Map<string, { readonly bytes: number; readonly hash: Hash }>();
  let current: Hash | null = null;
  return {
    async *noting(parts: Iterable<ExportPart> | AsyncIterable<ExportPart>) {
      for await (const part of parts) {
        if (part.kind === 'file') {
          current = createHash('sha256');
          sizes.set(part.name, { bytes: part.bytes, hash: current });
        } else if (part.kind === 'data') {
          current?.update(part.bytes);
        }
        yield part;
      }
    },
    files(): Readonly<Record<string, LedgerEntry>> {
      const entries = [...sizes].map(
        ([name, { bytes, hash }]) => [name, { bytes, sha256: hash.digest('hex') }] as const,
      );
      return Object.fromEntries(entries);
    },
  };
}

interface Exported {
  readonly record: CheckpointRecord;
  readonly model: ModelOptions;
  readonly job: JobRecord;
  readonly prediction: Prediction | null;
  /** Of the parameters as they are exported. */
  readonly parametersSha256: string;
  readonly standardization: { readonly isFolded: boolean; readonly moments: Moments | null };
}

/** export.json (docs/formats/checkpoint.md): the same bytes whenever the same is exported. */
function* summaryParts(
  { record, model, job, prediction, parametersSha256, standardization }: Exported,
  files: Readonly<Record<string, LedgerEntry>>,
): Generator<ExportPart, void, void> {
  const summary = {
    format: 1,
    job: job.id,
    checkpoint: record.kind.toLowerCase(),
    epoch: record.epoch,
    val_accuracy: record.valAccuracy,
    test_accuracy: record.testAccuracy,
    dataset: { id: job.effectiveSpec.dataset, digest: job.datasetDigest },
    model: {
      type: model.type,
      layers: model.layers,
      in_dim: model.inDim,
      hidden_dim: model.hiddenDim,
      out_dim: model.outDim,
      heads: model.heads,
      activation: model.activation,
      normalization: model.normalization,
      residual: model.residual,
    },
    ...standardizationFacts(job, standardization),
    parameters_sha256: parametersSha256,
    tensors: record.file.tensors,
    predictions:
      prediction === null
        ? null
        : {
            nodes: prediction.nodes.toLowerCase(),
            class_names: prediction.manifest.class_names ?? null,
          },
    files,
  };
  const bytes = Buffer.from(`${JSON.stringify(summary, null, 2)}\n`);
  yield { kind: 'file', name: 'export.json', bytes: bytes.length };
  yield { kind: 'data', bytes };
}

/** What the model wants done to features; nothing once that is folded into its parameters. */
function standardizationFacts(
  { effectiveSpec: { features } }: JobRecord,
  { isFolded, moments }: Exported['standardization'],
) {
  const isWanted = features.standardize && !isFolded;
  return {
    standardized_features: isWanted,
    feature_mean: isWanted && moments !== null ? [...moments.mean] : null,
    feature_deviation: isWanted && moments !== null ? [...moments.deviation] : null,
    folded_standardization: isFolded,
  };
}
