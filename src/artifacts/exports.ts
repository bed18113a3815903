import { createHash } from 'node:crypto';
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';
import { makeFolder } from '../base/atomic-file.ts';
import { GnndError, messageOf } from '../base/errors.ts';
import { createLine } from '../base/line.ts';
import { readRegular } from '../base/regular-file.ts';
import {
  countsOf,
  dataOf,
  jobDataOf,
  requireOneType,
  requireReady,
} from '../datasets/ready-dataset.ts';
import { type CheckpointFile, type CheckpointKind, parametersOf } from '../files/checkpoint.ts';
import type { CoreAddon, ModelOptions, PredictOptions } from '../native/contract.ts';
import { nativeCodeOf } from '../native/load.ts';
import { taskTopologyPlace } from '../plan/plan.ts';
import { type Pool, poolTask } from '../pool/pool.ts';
import {
  type DataWitness,
  type FeaturesRequest,
  idOf,
  type LoadedDataset,
  loadDataset,
  loadFeatures,
  loadTypedRows,
  type Moments,
  type Propagations,
  type SharedTopology,
  type Topologies,
  trainedSource,
} from '../prepare/prepare.ts';
import type { DatasetManifest, DatasetRecord } from '../records/dataset-record.ts';
import type { JobRecord } from '../records/job-record.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { automaticCores } from '../spec/limits.ts';
import { show } from '../spec/spec-checker.ts';
import { reads } from '../spec/spec-parts.ts';
import type { Store } from '../store/store.ts';
import { predict } from '../supervisor/supervisor.ts';
import { corrupt, read, recordOfFile, type TrainedJob, trainedJob } from './checkpoint-record.ts';
import {
  createLedger,
  type ExportPart,
  type MomentsOfTypes,
  summaryParts,
} from './export-files.ts';
import { labelsOfSplit } from './export-labels.ts';
import { checkpointFile, foldedCheckpoint } from './export-model.ts';
import { checkFold, exportedRows, momentsOf, momentsOfTypes } from './export-standardization.ts';

/** What a job left, as files to take away: its model, what it predicts, and what they are. */

export interface ExportRequest {
  readonly jobId: string;
  readonly kind: CheckpointKind;
  readonly predictions: 'NONE' | PredictOptions['nodes'];
  /** Bound on hidden layers' rows; 0 = 1 GiB. */
  readonly memoryBytes: number;
  /** Whether the model is to take features as they were imported. */
  readonly foldStandardization: boolean;
}

export interface ExportsOptions {
  readonly store: Store;
  readonly native: CoreAddon;
  readonly pool: Pool;
  readonly topologies: Topologies;
  readonly witness: DataWitness;
  readonly propagations: Pick<Propagations, 'moments' | 'open' | 'hold'>;
  /** Holds derived features. */
  readonly featuresFolder: string;
  /** The state folder, whose log folder takes the children's logs. */
  readonly stateDir: string;
}

const reading = poolTask(import.meta.url, './export-model.ts', 'LONG', checkpointFile);
const folding = poolTask(import.meta.url, './export-model.ts', 'LONG', foldedCheckpoint);

const labelling = poolTask(import.meta.url, './export-labels.ts', 'LONG', labelsOfSplit);

const memoryBytesMin = 2 ** 20;
const pieceBytes = 256 * 1024;

/**
 * The checkpoint, then files: model.safetensors, predictions, export.json. Nothing is computed
 * ahead of the reader, and nothing is left when it goes away or `signal` aborts. Throws
 * JOB_NOT_FOUND, JOB_STATE_CONFLICT, SPEC_INVALID, DATASET_NOT_READY, DATASET_CHANGED,
 * DATASET_CORRUPT and CHECKPOINT_CORRUPT.
 */
export type Export = (
  request: ExportRequest,
  signal: AbortSignal,
) => AsyncGenerator<ExportPart, void, void>;

export function createExport(options: ExportsOptions): Export {
  // One model predicts at a time: memory for one is what a host can be expected to spare.
  const line = createLine();
  return async function* exportOne(request, signal) {
    checkRequest(request);
    const found = trainedJob(options.store, request.jobId);
    const file = await read(found, request.kind, async (folder, kind) =>
      withBuffer(await options.pool.run(reading, { folder, kind }, signal)),
    );
    const record = recordOfFile(found, request.kind, file);
    const { model } = file;
    if (request.foldStandardization) checkFold(found.job, model);
    const moments = await standardizationOf(options, found.job, model, { request, signal });
    const ofTypes = await typedStandardization(options, found.job, model, signal);
    const exported =
      request.foldStandardization && moments !== null
        ? await read(found, request.kind, async (folder, kind) =>
            withBuffer(await options.pool.run(folding, { folder, kind, model, moments }, signal)),
          )
        : file;
    const { predictions: nodes, memoryBytes } = request;
    const prediction =
      nodes === 'NONE' ? null : await prepare(options, found, file, { model, nodes, memoryBytes });
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
        yield* ledger.noting(labelParts(options, prediction, signal));
      } finally {
        leave();
      }
    }
    const { foldStandardization: isFolded } = request;
    const { parametersSha256 } = exported;
    const standardization = { isFolded, moments: ofTypes ?? moments };
    const rows = await exportedRows(options.propagations, found.job, model);
    const said =
      prediction === null
        ? null
        : { nodes: prediction.nodes, classNames: prediction.manifest.class_names ?? null };
    yield* summaryParts(
      { record, model, job: found.job, prediction: said, parametersSha256, standardization, rows },
      ledger.files(),
    );
  };
}

/** The file with a Buffer: bytes that crossed from a thread have lost their class. */
function withBuffer(file: CheckpointFile): CheckpointFile {
  const { buffer, byteOffset, byteLength } = file.bytes;
  return { ...file, bytes: Buffer.from(buffer, byteOffset, byteLength) };
}

function checkRequest({ memoryBytes }: ExportRequest): void {
  const max = totalmem();
  if (memoryBytes === 0 || (memoryBytes >= memoryBytesMin && memoryBytes <= max)) return;
  const description = `${show(memoryBytes)}: expected 0 or from ${memoryBytesMin} to ${max}`;
  throw new GnndError('SPEC_INVALID', 'invalid request: memory_bytes', {
    violations: [{ path: 'memory_bytes', description }],
  });
}

/**
 * By what the job's features were standardised; null where they were not, and where nobody can tell
 * any more because the dataset is gone. Folding needs it and throws why.
 */
async function standardizationOf(
  options: ExportsOptions,
  job: JobRecord,
  model: ModelOptions,
  { request, signal }: { readonly request: ExportRequest; readonly signal: AbortSignal },
): Promise<Moments | null> {
  if (job.effectiveSpec.features.standardize === 'OFF') return null;
  try {
    const dataset = requireOneType(options.store, job.effectiveSpec.dataset);
    await unchangedManifest(job, dataset);
    return await momentsOf(model.inDim, async () => {
      const task = exportTask(options, job, signal);
      return (await loadFeatures(options.witness, featuresOf(options, job, dataset), task))
        .featuresPath;
    });
  } catch (error) {
    signal.throwIfAborted();
    if (request.foldStandardization) throw error;
    return null;
  }
}

/** The same of several types, by their names; null where a job has one. */
async function typedStandardization(
  options: ExportsOptions,
  job: JobRecord,
  model: ModelOptions,
  signal: AbortSignal,
): Promise<MomentsOfTypes | null> {
  const { effectiveSpec: spec, datasetDigest } = job;
  const isTyped = reads(spec, 'relations');
  if (!isTyped || spec.features.standardize === 'OFF') return null;
  try {
    const record = requireReady(options.store, spec.dataset);
    await unchangedManifest(job, record);
    const folder = options.featuresFolder;
    const dataset = jobDataOf(record, spec);
    const request = { dataset, datasetDigest, standardizedFolder: folder, derivedFolder: folder };
    const task = exportTask(options, job, signal);
    const { typeRows } = await loadTypedRows(options.witness, request, task);
    return await momentsOfTypes(model, typeRows);
  } catch {
    signal.throwIfAborted();
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
  { store, native }: ExportsOptions,
  { job }: TrainedJob,
  file: CheckpointFile,
  wanted: Pick<Prediction, 'model' | 'nodes' | 'memoryBytes'>,
): Promise<Prediction> {
  const { effectiveSpec: spec } = job;
  refusePredictions(job, wanted.nodes);
  const dataset = requireOneType(store, spec.dataset);
  const manifest = await unchangedManifest(job, dataset);
  try {
    const parameters = parametersOf(native.modelManifest(wanted.model), file);
    return { job, dataset, manifest, parameters, ...wanted };
  } catch (cause) {
    throw corrupt(job, cause);
  }
}

/**
 * A script has its own code beside the parameters, which only its job's executors have loaded; of
 * rows only those of labelled nodes were propagated.
 */
function refusePredictions(
  { id, effectiveSpec: { task, model } }: JobRecord,
  nodes: PredictOptions['nodes'],
): void {
  if (!reads({ task }, 'labels')) {
    throw new GnndError('SPEC_INVALID', 'invalid request: predictions', {
      violations: [
        {
          path: 'predictions',
          description: `job ${id} has learnt links, and nothing that is of one node: expected NONE`,
        },
      ],
    });
  }
  if (reads({ model }, 'relations')) {
    const why = 'an export predicts nothing of several types: expected NONE';
    const description = `job ${id}: ${why}; gnnctl predict ${id} makes a job that does`;
    throw new GnndError('SPEC_INVALID', 'invalid request: predictions', {
      violations: [{ path: 'predictions', description }],
    });
  }
  const isRows = reads({ model }, 'propagation');
  if (model.type !== 'TORCHSCRIPT' && !(isRows && nodes === 'ALL')) return;
  const what = isRows ? model.type : 'a TorchScript model';
  const expected = isRows ? 'NONE, VAL or TEST' : 'NONE';
  const description =
    `job ${id} trained ${what}: expected ${expected}; ` +
    `gnnctl predict ${id} makes a job that predicts all nodes`;
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

function modelParts({ bytes }: CheckpointFile): Generator<ExportPart, void, void> {
  return fileParts('model.safetensors', bytes);
}

/** What is known of the nodes that were predicted; of all nodes the dataset itself says it. */
async function* labelParts(
  { pool }: ExportsOptions,
  { dataset, nodes }: Prediction,
  signal: AbortSignal,
): AsyncGenerator<ExportPart, void, void> {
  if (nodes === 'ALL') return;
  const place = { folder: dataset.path, split: nodes === 'VAL' ? 'val' : 'test' } as const;
  yield* fileParts('labels.npy', await pool.run(labelling, place, signal));
}

function* fileParts(name: string, bytes: Uint8Array): Generator<ExportPart, void, void> {
  yield { kind: 'file', name, bytes: bytes.length };
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    yield { kind: 'data', bytes: bytes.subarray(at, at + pieceBytes) };
  }
}

/** As many as a Trainer could have on this host; the job's own, where they decide bits. */
function threadsOf({ training: { threadsPerTrainer } }: JobSpec): number {
  return threadsPerTrainer || Math.min(automaticCores, availableParallelism());
}

/** Where the tasks of an export run and what they write to. */
function exportTask({ native, stateDir }: ExportsOptions, job: JobRecord, signal: AbortSignal) {
  return {
    cores: [],
    logPath: join(stateDir, 'log', 'export.log'),
    threads: threadsOf(job.effectiveSpec),
    instructionSet: native.hostInstructionSet(),
    matrixLibrary: job.effectiveSpec.training.matrixLibrary,
    signal,
  };
}

/** The dataset with the features that the job read. The caller closes its topology. */
async function loadForExport(
  options: ExportsOptions,
  {
    job,
    dataset,
    signal,
  }: { readonly job: JobRecord; readonly dataset: DatasetRecord; readonly signal: AbortSignal },
): Promise<LoadedDataset> {
  return await loadDataset(
    options,
    {
      ...featuresOf(options, job, dataset),
      place: taskTopologyPlace(options.native, countsOf(dataset), false),
      alias: false,
      node: null,
    },
    exportTask(options, job, signal),
  );
}

function featuresOf(
  { featuresFolder }: ExportsOptions,
  { datasetDigest, effectiveSpec }: JobRecord,
  dataset: DatasetRecord,
): FeaturesRequest {
  return {
    dataset: dataOf(dataset),
    datasetDigest,
    standardizedFolder: effectiveSpec.features.standardize === 'ON' ? featuresFolder : null,
  };
}

async function* predictionParts(
  options: ExportsOptions,
  { job, dataset, model, parameters, nodes, memoryBytes }: Prediction,
  signal: AbortSignal,
): AsyncGenerator<ExportPart, void, void> {
  const { effectiveSpec: spec } = job;
  let topology: SharedTopology | null = null;
  let release = () => {};
  const task = exportTask(options, job, signal);
  try {
    let rowsFolder = '';
    if (reads({ model }, 'propagation')) {
      const id = idOf(trainedSource(job.effectiveSpec, job.datasetDigest));
      release = options.propagations.hold(id);
      rowsFolder = await options.propagations.open(id, job.datasetDigest, task);
    }
    const loaded = await loadForExport(options, { job, dataset, signal });
    topology = loaded.topology;
    makeFolder(options.featuresFolder);
    const parts = predict(
      {
        dataset: loaded.location,
        model,
        parameters,
        nodes,
        rowsFolder,
        // As evaluation does.
        weightedMeans: spec.sampling.algorithm === 'KHOP_WEIGHTED',
        threads: threadsOf(spec),
        memoryBytes: memoryBytes === 0 ? spec.evaluation.maxBytes : memoryBytes,
        scratchFolder: options.featuresFolder,
      },
      { ...task, topologyFd: topology.fd },
    );
    for await (const part of parts) {
      if (part.kind !== 'progress') yield part;
      else yield { ...part, message: `predicting ${nodesText(nodes)}` };
    }
  } catch (error) {
    signal.throwIfAborted();
    throw failureOf(error, dataset);
  } finally {
    topology?.release();
    release();
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
