import { createHash, type Hash } from 'node:crypto';
import { closeSync, mkdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { GnndError, messageOf } from '../base/errors.ts';
import type { CoreAddon, ModelOptions, PredictOptions } from '../native/contract.ts';
import { nativeCodeOf } from '../native/load.ts';
import type { DatasetManifest, DatasetRecord } from '../spec/dataset-record.ts';
import type { EpochReport, JobRecord, JobResult } from '../spec/job-record.ts';
import { show } from '../spec/spec-checker.ts';
import type { Store } from '../store/store.ts';
import {
  type CheckpointFile,
  type CheckpointKind,
  parametersOf,
  readCheckpoint,
} from '../supervisor/checkpoint.ts';
import { prepareFeatures } from '../supervisor/features.ts';
import { type PredictionPart, predict } from '../supervisor/prediction.ts';
import { countsOf } from './dataset-counts.ts';
import { requireReady } from './jobs.ts';
import { createLine } from './line.ts';

/** What jobs leave: their parameters, and what those predict. */

export interface CheckpointRecord {
  readonly jobId: string;
  readonly kind: CheckpointKind;
  readonly epoch: number;
  readonly valAccuracy: number;
  readonly testAccuracy: number;
  readonly file: Omit<CheckpointFile, 'bytes'> & { readonly size: number };
}

export interface ExportRequest {
  readonly jobId: string;
  readonly kind: CheckpointKind;
  readonly predictions: 'NONE' | PredictOptions['nodes'];
  /** Bound on hidden layers' rows; 0 = 1 GiB. */
  readonly memoryBytes: number;
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
  return {
    async list(jobId) {
      const found = trainedJob(options.store, jobId);
      const files = await Promise.all(
        (['BEST', 'LAST'] as const).map((kind) => fileOf(found, kind)),
      );
      return files.map(({ record }) => record);
    },
    async *export(request, signal) {
      checkRequest(request);
      const found = trainedJob(options.store, request.jobId);
      const { record, file } = await fileOf(found, request.kind);
      const model = modelOf(found, file);
      const { predictions: nodes, memoryBytes } = request;
      const prediction =
        nodes === 'NONE'
          ? null
          : await prepare(options, found, file, { model, nodes, memoryBytes });
      const ledger = createLedger();
      yield { kind: 'checkpoint', checkpoint: record };
      yield* ledger.noting(modelParts(file));
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
      yield* summaryParts({ record, model, job: found.job, prediction }, ledger.files());
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

async function fileOf(
  { job, result, last }: TrainedJob,
  kind: CheckpointKind,
): Promise<{ readonly record: CheckpointRecord; readonly file: CheckpointFile }> {
  const file = await readCheckpoint(result.checkpointDir, kind).catch((cause: unknown) => {
    throw corrupt(job, cause);
  });
  const { bytes, ...facts } = file;
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
  const record = { jobId: job.id, kind, ...accuracies, file: { ...facts, size: bytes.length } };
  return { record, file };
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
  const text = await readFile(path).catch((cause: unknown) => {
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

async function* predictionParts(
  { native, featuresFolder, stateDir }: CheckpointsOptions,
  { job, dataset, model, parameters, nodes, memoryBytes }: Prediction,
  signal: AbortSignal,
): AsyncGenerator<ExportPart, void, void> {
  const { effectiveSpec: spec } = job;
  const { threadsPerTrainer: threads } = spec.training;
  let topologyFd: number | null = null;
  try {
    const featuresPath = await prepareFeatures(native, {
      standardize: spec.features.standardize,
      datasetFolder: dataset.path,
      datasetDigest: job.datasetDigest,
      folder: featuresFolder,
    });
    const location = { folder: dataset.path, counts: countsOf(dataset), featuresPath };
    mkdirSync(featuresFolder, { recursive: true });
    topologyFd = await native.topologyCreate(location, false);
    const parts = predict(
      {
        dataset: location,
        model,
        parameters,
        nodes,
        // As evaluation does.
        weightedMeans: spec.sampling.algorithm === 'KHOP_WEIGHTED',
        threads,
        memoryBytes: memoryBytes === 0 ? spec.evaluation.maxBytes : memoryBytes,
        scratchFolder: featuresFolder,
      },
      {
        cores: [],
        topologyFd,
        logPath: join(stateDir, 'log', 'export.log'),
        threads,
        instructionSet: native.hostInstructionSet(),
        signal,
      },
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
}

/** export.json (docs/formats/checkpoint.md): the same bytes whenever the same is exported. */
function* summaryParts(
  { record, model, job, prediction }: Exported,
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
    standardized_features: job.effectiveSpec.features.standardize,
    parameters_sha256: record.file.parametersSha256,
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
