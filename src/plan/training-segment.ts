import type { EvaluationSizes, SegmentSpec } from '../native/contract.ts';
import { sharesHistory } from '../spec/rules/history.ts';
import { adapts, favours, scaleParts } from '../spec/rules/locality.ts';
import { type CachedRows, historyConfigOf, noHistory } from './history.ts';
import type { Batches, SegmentRequest } from './plan-kind.ts';

/** Rows for respawns of a long job; a row takes 6 KiB of the sparse segment once it is used. */
const spareRows = 1000;

/** Rows of executors: none is used twice. Respawns are bounded per time window, not in all. */
export function executorRows({ spec, executorCount }: SegmentRequest): number {
  return executorCount + spec.restart.executorRestarts + spareRows;
}

/** Members of a segment whose job trains nothing: single steps, no early stop, nothing favoured. */
export const untrained = {
  batchLimit: 0,
  batchesPerStep: 1,
  staleness: 0,
  stalenessCompensation: 'NONE',
  chunkCounts: 0,
  keptBytes: 0,
  lowWater: 0,
  stopPatience: 0,
  stopMinDelta: 0,
  history: noHistory,
  localityScale: scaleParts,
  localityAdapts: 0,
} as const;

export interface JobSegmentSizes {
  readonly numSlots: number;
  readonly evaluation: EvaluationSizes;
  /** The cached rows that Trainers share together with their history. */
  readonly cached: CachedRows;
  /** Bytes of the largest record of a trial; 0 = unknown. */
  readonly recordBytes: number;
}

/** The segment of a job that trains. */
export function jobSegment(
  batches: Batches,
  request: SegmentRequest,
  { numSlots, evaluation, recordBytes, cached }: JobSegmentSizes,
): SegmentSpec {
  const { spec } = request;
  const { judged } = request.layout;
  const { batchesPerStep, staleness, stalenessCompensation } = spec.training;
  return {
    ...commonSegment(request),
    ...batches.segment(request, numSlots, recordBytes),
    batchLimit: 0,
    epochs: spec.training.epochs,
    firstEpoch: 0,
    batchesPerStep,
    staleness,
    stalenessCompensation,
    numSlots,
    maxExecutors: executorRows(request),
    evaluateEveryEpochs: spec.evaluation.everyEpochs,
    evaluationChunks: evaluation.chunks,
    chunkCounts: judged.chunkCounts,
    keptBytes: judged.rankedBytes,
    lowWater: Math.floor(numSlots / 4),
    stopPatience: spec.training.earlyStop.patienceEpochs,
    stopMinDelta: spec.training.earlyStop.minDelta,
    history: sharesHistory(spec) ? historyConfigOf(request, cached) : noHistory,
    localityScale: favours(spec) ? spec.sampling.locality.maxScale * scaleParts : scaleParts,
    localityAdapts: adapts(spec) ? 1 : 0,
  };
}

/** Sizes that a job's segment and that of its trial have in common. */
export function commonSegment({ spec, layout, deviceCount }: SegmentRequest) {
  return {
    batchesPerEpoch: layout.batchesPerEpoch,
    slotBytes: layout.slotBytes,
    queueMaxBytes: spec.queue.maxBytes,
    parameterFloats: layout.manifest.numFloats,
    // Adam keeps two moments per parameter; others leave a part unused.
    optimizerFloats: 2 * layout.manifest.numFloats,
    numDevices: deviceCount,
    batchSize: spec.training.batchSize,
    trainNodes: layout.items,
  };
}
