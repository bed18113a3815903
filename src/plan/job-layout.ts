import type {
  CoreAddon,
  DatasetCounts,
  EvaluationSizes,
  JobMemory,
  ModelManifest,
  ModelOptions,
  SamplingOptions,
  SegmentSpec,
  TrainerOptions,
} from '../native/contract.ts';
import { trialEpoch } from '../native/contract.ts';
import { mayCache } from '../spec/cache-spec.ts';
import { hasOwnMemory } from '../spec/device-kinds.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { decidingMetric, usualMetric } from '../spec/metrics.ts';
import { kindOf, takesRows } from '../spec/model-kinds.ts';
import { sharesHistory } from '../spec/rules/history.ts';
import { infers } from '../spec/rules/inference.ts';
import { adapts, favours, scaleParts } from '../spec/rules/locality.ts';
import { type CachedRows, historyConfigOf, noHistory } from './history.ts';
import { rankedOf } from './ranking.ts';
import { rowValueBytes } from './row-sizes.ts';

/** What a job's spec means in native terms: options, sizes, the segment to make. */

/** Rows for respawns of a long job; a row takes 6 KiB of the sparse segment once it is used. */
const spareRows = 1000;

/** Batches of a trial: enough for medians, few enough to take no notice of. */
const trialBatches = 24;

export interface JobLayout {
  readonly model: ModelOptions;
  readonly sampling: SamplingOptions;
  /** The model's tensors; none for a TORCHSCRIPT model that was not probed yet. */
  readonly manifest: ModelManifest;
  /** Number of batches of an epoch, M. */
  readonly batchesPerEpoch: number;
  /** Virtual bytes of a slot: the largest record the job can make. */
  readonly slotBytes: number;
  /** Bytes of its parts, as far as they follow from the job's shape. */
  readonly memory: JobMemory;
}

const pageBytes = 4096;
const rowSlotBytes = pageBytes;
/** Enough that no Trainer lacks a batch; each costs a word. */
const rowSlots = 64;

const unknownManifest: ModelManifest = { tensors: [], numFloats: 0, widths: [] };

/** The native functions that say how large things are. */
export type SizesAddon = Pick<CoreAddon, 'modelManifest' | 'recordSlotBytes' | 'jobMemory'>;

/** Throws with native code SPEC_INVALID when a bound does not fit (docs/formats/record.md). */
export function layoutOf(native: SizesAddon, spec: JobSpec, counts: DatasetCounts): JobLayout {
  const model = modelOptionsOf(spec, counts);
  const sampling = samplingOf(spec);
  const isScript = spec.model.type === 'TORCHSCRIPT';
  const manifest = isScript ? unknownManifest : native.modelManifest(model);
  // Batches of rows have no record.
  const slotBytes = model.numHops > 0 ? rowSlotBytes : native.recordSlotBytes(counts, sampling);
  const sizes = { parameterFloats: manifest.numFloats, slotBytes };
  return {
    model,
    sampling,
    manifest,
    // A dataset that is only predicted may have no training nodes.
    batchesPerEpoch: Math.max(1, Math.ceil(counts.train / spec.training.batchSize)),
    slotBytes,
    memory: jobMemoryOf(native, { spec, counts, model }, sizes),
  };
}

/** The parts of a spec that say what a batch takes. */
export type BatchSpec = Pick<
  JobSpec,
  'kind' | 'model' | 'propagation' | 'training' | 'sampling' | 'inference'
>;

export function modelOptionsOf(spec: BatchSpec, counts: DatasetCounts): ModelOptions {
  const rows = takesRows(spec.model.type);
  return {
    ...spec.model,
    inDim: counts.numFeatures,
    // Another dataset than that of the training may have other classes.
    outDim: infers(spec) ? spec.inference.classes : counts.numClasses,
    numOperators: rows ? spec.propagation.operators.length : 0,
    numHops: rows ? spec.propagation.hops : 0,
  };
}

export function jobMemoryOf(
  native: Pick<CoreAddon, 'jobMemory'>,
  job: { readonly spec: BatchSpec; readonly counts: DatasetCounts; readonly model: ModelOptions },
  sizes: { readonly parameterFloats: number; readonly slotBytes: number },
): JobMemory {
  const { spec, counts, model } = job;
  return native.jobMemory({
    ...{ counts, model, ...sizes },
    precision: spec.training.precision,
    batchSize: spec.training.batchSize,
    rowValueBytes: rowValueBytes[spec.propagation.rowDtype],
    alias: spec.sampling.algorithm === 'KHOP_WEIGHTED',
  });
}

function samplingOf(spec: JobSpec): SamplingOptions {
  const { algorithm, fanouts, walk, plugin } = spec.sampling;
  const walkHops = Array<number>(spec.model.layers).fill(walk.neighbors);
  return {
    ...spec.sampling,
    fanouts: algorithm === 'RANDOM_WALK' ? walkHops : fanouts,
    batchSize: spec.training.batchSize,
    edgeWeights: plugin.weights ? 'GIVEN' : edgeWeightsOf(spec.sampling, spec.model.type),
    hotRanks: mayCache(spec),
  };
}

/** Edge weights that records carry; a plug-in states its own. */
export function edgeWeightsOf(
  { algorithm, locality }: Pick<SamplingOptions, 'algorithm' | 'locality'>,
  model: ModelOptions['type'],
): SamplingOptions['edgeWeights'] {
  if (algorithm === 'RANDOM_WALK') return 'VISITS';
  if (algorithm === 'LABOR') return 'INVERSE';
  if (kindOf(model).normalizes) return 'GCN';
  return locality.maxScale > 1 ? 'SHARES' : 'NONE';
}

/** Schedules count epochs of the job, in a trial, too: its steps are thrown away. */
export function optimizerOf(spec: JobSpec, layout: JobLayout): TrainerOptions['optimizer'] {
  const { optimizer, lrSchedule, batchesPerStep, epochs } = spec.training;
  return {
    ...optimizer,
    schedule: {
      ...lrSchedule,
      stepsPerEpoch: Math.ceil(layout.batchesPerEpoch / batchesPerStep),
      epochs,
    },
  };
}

export interface SegmentRequest {
  readonly spec: JobSpec;
  readonly counts: DatasetCounts;
  readonly layout: JobLayout;
  readonly deviceCount: number;
  readonly executorCount: number;
}

/** Slots of the job's queue. `recordBytes` is what a trial saw a record take; 0 = unknown. */
export function queueSlots(
  native: Pick<CoreAddon, 'segmentDefaultSlots'>,
  request: SegmentRequest,
  recordBytes: number,
): number {
  const { spec, layout, deviceCount } = request;
  const { batchesPerStep, staleness } = spec.training;
  if (takesRows(spec.model.type)) return batchesPerStep * (staleness + 1) + deviceCount + rowSlots;
  const defaultSlots = native.segmentDefaultSlots({
    batchesPerStep,
    staleness,
    numDevices: deviceCount,
    batchesPerEpoch: layout.batchesPerEpoch,
    queueMaxBytes: spec.queue.maxBytes,
    recordBytes,
  });
  return spec.queue.capacity === 0 ? defaultSlots : spec.queue.capacity;
}

export interface JobSegmentSizes {
  readonly numSlots: number;
  readonly evaluation: EvaluationSizes;
  /** The cached rows that Trainers share together with their history. */
  readonly cached: CachedRows;
  /** Bytes of the largest record of a trial; 0 = unknown. */
  readonly recordBytes: number;
}

/**
 * The usual part of a slot: what a trial's largest record took and a quarter more, within the
 * budget of the queue, for what is registered is real memory. 0 where nobody registers.
 */
function registeredBytesOf(
  { spec, layout }: SegmentRequest,
  numSlots: number,
  recordBytes: number,
): number {
  if (!hasOwnMemory(spec.resources) || takesRows(spec.model.type)) return 0;
  const usual = recordBytes === 0 ? layout.slotBytes : Math.ceil(1.25 * recordBytes);
  const share = Math.floor(spec.queue.maxBytes / numSlots / pageBytes) * pageBytes;
  return Math.min(layout.slotBytes, usual, share);
}

/** The job's segment. */
export function jobSegment(
  request: SegmentRequest,
  { numSlots, evaluation, recordBytes, cached }: JobSegmentSizes,
): SegmentSpec {
  const { spec } = request;
  const { batchesPerStep, staleness, stalenessCompensation } = spec.training;
  const { rankedColumns, rankedNodes } = rankedOf(spec, request.counts);
  return {
    ...common(request),
    registeredBytes: registeredBytesOf(request, numSlots, recordBytes),
    batchLimit: 0,
    epochs: spec.training.epochs,
    firstEpoch: 0,
    batchesPerStep,
    staleness,
    stalenessCompensation,
    numSlots,
    // A row is never used twice. Respawns are bounded per time window, not in all.
    maxExecutors: request.executorCount + spec.restart.executorRestarts + spareRows,
    evaluateEveryEpochs: spec.evaluation.everyEpochs,
    evaluationChunks: evaluation.chunks,
    evaluationClasses: request.counts.task === 'REGRESSION' ? 0 : request.counts.numClasses,
    decides: decidingMetric(spec, request.counts.task),
    rankedColumns,
    rankedNodes,
    lowWater: Math.floor(numSlots / 4),
    stopPatience: spec.training.earlyStop.patienceEpochs,
    stopMinDelta: spec.training.earlyStop.minDelta,
    history: sharesHistory(spec) ? historyConfigOf(request, cached) : noHistory,
    localityScale: favours(spec) ? spec.sampling.locality.maxScale * scaleParts : scaleParts,
    localityAdapts: adapts(spec) ? 1 : 0,
  };
}

/** A trial's segment: the first batches of the reserved epoch, no evaluation, room for all. */
export function trialSegment(request: SegmentRequest): SegmentSpec {
  const batches = Math.min(trialBatches, request.layout.batchesPerEpoch);
  return {
    ...common(request),
    registeredBytes: registeredBytesOf(request, batches, 0),
    batchLimit: batches,
    epochs: 1,
    firstEpoch: trialEpoch,
    batchesPerStep: 1,
    staleness: 0,
    stalenessCompensation: 'NONE',
    numSlots: batches,
    maxExecutors: request.executorCount,
    evaluateEveryEpochs: 0,
    evaluationChunks: 0,
    evaluationClasses: 0,
    decides: usualMetric[request.counts.task],
    ...{ rankedColumns: 0, rankedNodes: 0 },
    lowWater: 0,
    stopPatience: 0,
    stopMinDelta: 0,
    history: noHistory,
    localityScale: firstScale(request.spec),
    localityAdapts: 0,
  };
}

/** Scale of the first epoch, times `scaleParts`. */
function firstScale(spec: JobSpec): number {
  return favours(spec) && !adapts(spec) ? spec.sampling.locality.maxScale * scaleParts : scaleParts;
}

function common({ spec, counts, layout, deviceCount }: SegmentRequest) {
  return {
    task: counts.task,
    bornReady: takesRows(spec.model.type),
    batchesPerEpoch: layout.batchesPerEpoch,
    slotBytes: layout.slotBytes,
    queueMaxBytes: spec.queue.maxBytes,
    parameterFloats: layout.manifest.numFloats,
    // Adam keeps two moments per parameter; others leave a part unused.
    optimizerFloats: 2 * layout.manifest.numFloats,
    numDevices: deviceCount,
    batchSize: spec.training.batchSize,
    trainNodes: counts.train,
  };
}
