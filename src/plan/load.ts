import type { DatasetCounts, SegmentSpec } from '../native/contract.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { scaleParts } from '../spec/rules/locality.ts';
import { blocks } from './blocks.ts';
import { noHistory } from './history.ts';
import { queuePart } from './memory-parts.ts';
import type { PlanKind, SegmentRequest } from './plan-kind.ts';

/** Lending batches to a process of the user's: one device lends, and the others sample. */
export const load: PlanKind = {
  batches: blocks,
  outDim: (_, { numClasses }) => Math.max(1, numClasses),
  items: itemsOf,
  crew: ({ placement }) => ({ samplers: placement.samplers, trainers: 1 }),
  // Readers gather rows by themselves.
  pinned: () => ({ rows: 0, bytes: 0, reason: '' }),
  ownMemory: (spec, layout, facts) => ({
    parts: [queuePart(blocks, spec, layout, facts)],
    rows: null,
    inference: null,
  }),
};

function itemsOf({ load: { nodesFile, nodes } }: JobSpec, { train }: DatasetCounts): number {
  return nodesFile === '' ? train : nodes;
}

/** A vector's worth: the ledger's steps have parameters, and a Lender's mean nothing. */
const parameterFloats = 16;

/** A segment whose steps are single batches, without evaluations. */
export function loadSegment(request: SegmentRequest, numSlots: number): SegmentSpec {
  const { spec, counts, layout, deviceCount, executorCount } = request;
  const { training, queue, restart } = spec;
  return {
    ...blocks.segment(request, numSlots, 0),
    batchesPerEpoch: layout.batchesPerEpoch,
    batchLimit: 0,
    batchSize: training.batchSize,
    trainNodes: itemsOf(spec, counts),
    epochs: training.epochs,
    firstEpoch: spec.load.firstEpoch,
    batchesPerStep: 1,
    staleness: 0,
    stalenessCompensation: 'NONE',
    numSlots,
    slotBytes: layout.slotBytes,
    queueMaxBytes: queue.maxBytes,
    parameterFloats,
    optimizerFloats: parameterFloats,
    numDevices: deviceCount,
    maxExecutors: executorCount + restart.executorRestarts + 1000,
    evaluateEveryEpochs: 0,
    evaluationChunks: 0,
    chunkCounts: 0,
    keptBytes: 0,
    lowWater: 0,
    stopPatience: 0,
    stopMinDelta: 0,
    history: noHistory,
    localityScale: scaleParts,
    localityAdapts: 0,
  };
}
