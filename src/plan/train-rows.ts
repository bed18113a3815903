import type { MemoryPart } from '../records/memory-plan.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { cacheParts, parameterPart, queuePart } from './memory-parts.ts';
import { pinnedOf } from './pinned-plan.ts';
import {
  type JobLayout,
  learntPairs,
  type MemoryFacts,
  noLinks,
  type OwnMemory,
  type PlanKind,
} from './plan-kind.ts';
import { judgedNodes } from './ranking.ts';
import { rowPlanOf, rows } from './rows.ts';

/** Training on rows of propagated features: every device trains, and nobody samples. */
export const trainRows: PlanKind = {
  batches: rows,
  outDim: (_, { numClasses }) => numClasses,
  items: (_, { train }) => train,
  links: () => noLinks,
  pairs: learntPairs,
  judged: judgedNodes,
  crew: ({ resources }) => ({ samplers: 0, trainers: resources.devices }),
  pinned: pinnedOf,

  ownMemory: (...job) => rowPartsOf(trainRows, ...job),
};

/** What training on rows takes, whatever its items are. */
export function rowPartsOf(
  kind: PlanKind,
  spec: JobSpec,
  layout: JobLayout,
  facts: MemoryFacts,
): OwnMemory {
  const plan = rowPlanOf(kind, spec, facts);
  const parts = [
    workPart(spec, layout),
    ...(plan.tier === 'DISK' ? [stagedPart(spec, layout)] : []),
    ...cacheParts(spec, facts.counts, kind.crew(spec)),
    parameterPart(spec, layout),
    queuePart(kind.batches, spec, layout, facts),
  ];
  return { parts, rows: plan, inference: null };
}

/** Batches that were read, and all that is computed from one. */
function workPart({ resources }: JobSpec, { memory }: JobLayout): MemoryPart {
  return {
    name: 'batches, and the work on them',
    bytes: resources.devices * memory.rowWorkBytes,
    isBound: true,
    field: 'training.batch_size',
    remedy: 'smaller batches take less, and so does a narrower model',
  };
}

/** Rows that a Trainer reads from disk ahead: the batch that is taken and those after it. */
function stagedPart({ resources }: JobSpec, { memory }: JobLayout): MemoryPart {
  return {
    name: 'rows read ahead from disk',
    bytes: resources.devices * memory.rowStagedBytes,
    isBound: true,
    field: 'training.batch_size',
    remedy: 'smaller batches take less',
  };
}
