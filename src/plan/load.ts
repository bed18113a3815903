import type { DatasetCounts, GraphSchema, SegmentSpec } from '../native/contract.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { blocks } from './blocks.ts';
import { queuePart } from './memory-parts.ts';
import {
  type Batches,
  type LinkCounts,
  noLinks,
  nothingJudged,
  type PairOptions,
  type PlanKind,
  type SegmentRequest,
} from './plan-kind.ts';
import { modelGraphOf, relationBlocks } from './relation-blocks.ts';
import { commonSegment, executorRows, untrained } from './training-segment.ts';

/** Lending batches to a process of the user's: one device lends, and the others sample. */
export const load: PlanKind = {
  batches: blocks,
  outDim: (_, { numClasses }) => Math.max(1, numClasses),
  items: itemsOf,
  links: linksOf,
  pairs: pairsOf,
  judged: () => nothingJudged,
  crew: ({ placement }) => ({ samplers: placement.samplers, trainers: 1 }),
  // Readers gather rows by themselves.
  pinned: () => ({ rows: 0, bytes: 0, reason: '' }),
  ownMemory: (spec, layout, facts) => ({
    parts: [queuePart(blocks, spec, layout, facts)],
    rows: null,
    inference: null,
  }),
};

/** The same of several types: readers map the rows that they want, and the job reads none. */
export function loadRelations(schema: GraphSchema): PlanKind {
  const ones = schema.types.map(() => 1);
  const graph = modelGraphOf(schema, ones);
  const batches: Batches = {
    ...relationBlocks(schema),
    // A Lender's model means nothing; types need no features.
    input: () => ({ inDim: 0, graph, numOperators: 0, numHops: 0 }),
    evaluated: () => null,
    featuresBytes: () => 0,
    batchBytes: () => ({ stored: 0, extracted: 0 }),
  };
  return {
    ...load,
    batches,
    ownMemory: (spec, layout, facts) => ({
      parts: [queuePart(batches, spec, layout, facts)],
      rows: null,
      inference: null,
    }),
  };
}

function itemsOf({ load }: JobSpec, { train }: DatasetCounts): number {
  if (load.linksFile !== '') return load.links;
  return load.nodesFile === '' ? train : load.nodes;
}

/** Reverses are left out beside links; where the graph has none of them, nothing is. */
function linksOf({ load: { links } }: JobSpec): LinkCounts {
  return { ...noLinks, train: links, symmetric: true };
}

/** Negatives may be links, for their list is in the user's order, in which none is looked up. */
function pairsOf({ load }: JobSpec): PairOptions {
  const exclude = load.excludeLinks ? 'BATCH' : 'NONE';
  return { method: 'UNIFORM', negatives: load.negatives, known: 'ALLOW', exclude, given: true };
}

/** A vector's worth: the ledger's steps have parameters, and a Lender's mean nothing. */
const parameterFloats = 16;

/** A segment whose steps are single batches, without evaluations. */
export function loadSegment(request: SegmentRequest, numSlots: number): SegmentSpec {
  const { spec } = request;
  return {
    ...commonSegment(request),
    ...blocks.segment(request, numSlots, 0),
    ...untrained,
    epochs: spec.training.epochs,
    firstEpoch: spec.load.firstEpoch,
    numSlots,
    parameterFloats,
    optimizerFloats: parameterFloats,
    maxExecutors: executorRows(request),
    evaluateEveryEpochs: 0,
    evaluationChunks: 0,
  };
}
