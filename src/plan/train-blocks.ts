import type { DatasetCounts, SegmentSpec } from '../native/contract.ts';
import { trialEpoch } from '../native/contract.ts';
import type { MemoryPart } from '../records/memory-plan.ts';
import { trainsInOwnMemory } from '../spec/device-kinds.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { cachesBesideHistory, keepsHistory, sharesHistory } from '../spec/rules/history.ts';
import { adapts, favours, scaleParts } from '../spec/rules/locality.ts';
import { blocks } from './blocks.ts';
import { evaluationSizesOf, scratchOf } from './evaluation-plan.ts';
import { noHistory } from './history.ts';
import { cacheBytesOf, cacheParts, parameterPart, queuePart } from './memory-parts.ts';
import { pinnedOf } from './pinned-plan.ts';
import {
  type Batches,
  type Crew,
  type JobLayout,
  learntPairs,
  type MemoryFacts,
  noLinks,
  type PlanKind,
  type SegmentRequest,
} from './plan-kind.ts';
import { judgedNodes } from './ranking.ts';
import { commonSegment } from './training-segment.ts';

/** Batches of a trial: enough for medians, few enough to take no notice of. */
const trialBatches = 24;

/** Training on blocks: some devices sample, others train, and some do both. */
export const trainBlocks: PlanKind = {
  batches: blocks,
  outDim: (_, { numClasses }) => numClasses,
  items: (_, { train }) => train,
  links: () => noLinks,
  pairs: learntPairs,
  judged: judgedNodes,
  crew: crewOf,
  pinned: pinnedOf,

  ownMemory(spec, layout, facts) {
    const crew = crewOf(spec);
    const { counts } = facts;
    const parts = [
      ...evaluationParts(spec, layout, facts, crew),
      ...cacheParts(spec, counts, crew),
      ...historyParts(spec, counts, crew),
      parameterPart(spec, layout),
      extractionPart(blocks, spec, layout, facts, crew),
      queuePart(blocks, spec, layout, facts),
    ];
    return { parts, rows: null, inference: null };
  },
};

function crewOf({ resources: { devices }, placement }: JobSpec): Crew {
  const { policy, samplers, standby } = placement;
  const isFixed = policy === 'FIXED';
  const helped = standby === 'OFF' ? devices - (isFixed ? samplers : 1) : devices;
  return {
    samplers: Math.max(1, isFixed ? samplers : devices - 1),
    trainers: devices === 1 ? 1 : helped,
  };
}

/** Memory of exact evaluations, and of what they rank. */
export function evaluationParts(
  spec: JobSpec,
  layout: JobLayout,
  { native, counts }: MemoryFacts,
  { trainers }: Crew,
): readonly MemoryPart[] {
  // The widths of a TorchScript model are known only once it was loaded.
  if (spec.model.type === 'TORCHSCRIPT') return [];
  const { rankedBytes: bytes } = layout.judged;
  const sizes = evaluationSizesOf(native, layout, spec, counts);
  const scratch = scratchOf(spec, sizes);
  return [
    {
      name: "an evaluation's hidden rows",
      bytes: scratch.inMemory ? scratch.scratchBytes : 0,
      isBound: false,
      field: 'evaluation.max_bytes',
      remedy: `below ${sizes.scratchBytes} they go to a file; evaluation.method SAMPLED has none`,
    },
    {
      name: 'sums of features kept for evaluations',
      bytes: scratch.keptBytes,
      isBound: true,
      field: 'evaluation.max_bytes',
      remedy: 'with less they are made anew each time',
    },
    {
      name: 'scores that evaluations rank nodes by',
      bytes,
      isBound: true,
      field: 'evaluation.metric',
      remedy: 'ROC_AUC and AVERAGE_PRECISION of many classes and nodes are only computed if asked',
    },
    {
      name: 'the work of evaluations',
      bytes:
        trainers *
        (sizes.workBytes + (trainsInOwnMemory(spec) ? layout.memory.evaluationPartBytes : 0)),
      isBound: true,
      field: 'resources.devices',
      remedy: 'fewer Trainers take less',
    },
  ];
}

/**
 * Embeddings and where each node's lie; what batches leave until their step is committed aside.
 * Where cached feature rows lie in the same memory, what they have of it counts there.
 */
function historyParts(
  spec: JobSpec,
  counts: DatasetCounts,
  { trainers }: Crew,
): readonly MemoryPart[] {
  if (!keepsHistory(spec)) return [];
  const copies = sharesHistory(spec) ? 1 : trainers;
  const { maxBytes, levels } = spec.history;
  const cached = cachesBesideHistory(spec) ? cacheBytesOf(spec, counts) : 0;
  const isBeyond = cached > 0;
  return [
    {
      name: isBeyond
        ? 'embeddings of earlier steps, beyond what cached rows give up'
        : 'embeddings of earlier steps',
      bytes: copies * (Math.max(0, maxBytes - cached) + levels.length * 4 * counts.numNodes),
      isBound: true,
      field: 'history.max_bytes',
      remedy:
        'of more embeddings than fit the oldest are given up; history.stale_steps 0 keeps none',
    },
  ];
}

/** Two batches a Trainer: one that is computed, one that is read meanwhile. */
export function extractionPart(
  batches: Batches,
  spec: JobSpec,
  layout: JobLayout,
  { counts }: MemoryFacts,
  { trainers }: Crew,
): MemoryPart {
  return {
    name: 'extracted batches',
    bytes: trainers * 2 * batches.batchBytes(spec, layout, counts).extracted,
    isBound: true,
    field: 'training.batch_size',
    remedy: 'smaller batches, or smaller sampling.fanouts, take less',
  };
}

/** A trial's segment: the first batches of the reserved epoch, no evaluation, room for all. */
export function trialSegment(request: SegmentRequest): SegmentSpec {
  const batches = Math.min(trialBatches, request.layout.batchesPerEpoch);
  return {
    ...commonSegment(request),
    ...blocks.segment(request, batches, 0),
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
    ...{ chunkCounts: 0, keptBytes: 0 },
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
