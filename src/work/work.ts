import type { DatasetCounts, GraphSchema } from '../native/contract.ts';
import {
  type Batches,
  blocks,
  infer,
  type JobLayout,
  layoutOf,
  load,
  loadRelations,
  type MemoryFacts,
  memoryPlanOf,
  type PlanKind,
  type RowPlanFacts,
  type RowSpec,
  relationBlocks,
  rowPlanOf,
  rows,
  rowsOfLinks,
  type SizesAddon,
  trainBlocks,
  trainLinkRows,
  trainLinks,
  trainRelations,
  trainRows,
} from '../plan/plan.ts';
import type { MemoryPlan, RowPlan } from '../records/memory-plan.ts';
import type { ScheduledWork } from '../scheduler/request.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { reads } from '../spec/spec-parts.ts';
import type { AttemptWork } from '../supervisor/supervisor.ts';
import { Blocks } from './blocks.ts';
import type { WorkContext } from './context.ts';
import { InferAttempt, inferSchedule } from './infer.ts';
import { LoadAttempt, loadSchedule } from './load.ts';
import type { WorkInput } from './preparation.ts';
import { Rows } from './rows.ts';
import { TrainBlocksAttempt, trainBlocksSchedule } from './train-blocks.ts';
import {
  linkRowsToInfer,
  linksToInfer,
  TrainLinkRowsAttempt,
  TrainLinksAttempt,
} from './train-links.ts';
import { TrainRowsAttempt, trainRowsSchedule } from './train-rows.ts';

/** What a job does: it trains on blocks, links or rows, predicts with a model, or lends. */
export interface Work {
  readonly schedule: ScheduledWork;
  /** The job in native terms. Throws with native code SPEC_INVALID when a bound does not fit. */
  layout(native: SizesAddon, counts: DatasetCounts): JobLayout;
  /** Host memory that the job will take. Throws what `layout` throws. */
  memory(facts: MemoryFacts): MemoryPlan;
  readonly queueSlots: Batches['queueSlots'];
  /** The work of one attempt at the job. */
  attempt(context: WorkContext): AttemptWork;
}

/** A kind of jobs. */
interface Kind extends Pick<Work, 'schedule' | 'attempt'> {
  readonly plan: PlanKind;
}

const training: Kind = {
  plan: trainBlocks,
  schedule: trainBlocksSchedule,
  attempt: (context) => new TrainBlocksAttempt(context),
};

const trainingOnLinks: Kind = {
  plan: trainLinks,
  schedule: trainBlocksSchedule,
  attempt: (context) => new TrainLinksAttempt(context),
};

const trainingOnLinkRows: Kind = {
  plan: trainLinkRows,
  schedule: trainRowsSchedule,
  attempt: (context) => new TrainLinkRowsAttempt(context),
};

const trainingOnRows: Kind = {
  plan: trainRows,
  schedule: trainRowsSchedule,
  attempt: (context) => new TrainRowsAttempt(context),
};

const lending: Kind = {
  plan: load,
  schedule: loadSchedule,
  attempt: (context) => new LoadAttempt(context),
};

function inferring(batches: Batches, inputOf: (context: WorkContext) => WorkInput): Kind {
  const plan = infer(batches);
  const attempt = (context: WorkContext) => new InferAttempt(context, plan, inputOf(context));
  return { plan, schedule: inferSchedule, attempt };
}

const inferringBlocks = inferring(blocks, (context) => new Blocks(context));
const inferringOnLinks = inferring(blocks, linksToInfer);
const inferringOnLinkRows = inferring(rowsOfLinks, linkRowsToInfer);
const inferringRows = inferring(rows, (context) => new Rows(context));

/** Schema of jobs on graphs of one type. */
const ofOneType: GraphSchema = { types: [], relations: [] };

/** Training on blocks of several types, which the kind knows. */
function trainingOnRelations(schema: GraphSchema): Kind {
  const plan = trainRelations(schema);
  const attempt = (context: WorkContext) => new TrainBlocksAttempt(context, plan);
  return { plan, schedule: trainBlocksSchedule, attempt };
}

function inferringOnRelations(schema: GraphSchema): Kind {
  return inferring(relationBlocks(schema), (context) => new Blocks(context));
}

function lendingOfTypes(schema: GraphSchema): Kind {
  const plan = loadRelations(schema);
  return { ...lending, plan, attempt: (context) => new LoadAttempt(context, plan) };
}

/**
 * Attempts, crews, plans and the scheduler ask the work; nothing else asks what a job does. The
 * schema is that of the dataset as the job takes it.
 */
export function workOf(spec: JobSpec, schema: GraphSchema = ofOneType): Work {
  const { plan, ...kind } = chosen(spec, schema);
  return {
    ...kind,
    layout: (native, counts) => layoutOf(plan, native, spec, counts),
    memory: (facts) => memoryPlanOf(plan, spec, facts),
    queueSlots: plan.batches.queueSlots,
  };
}

/** Where a job reads rows, also of one whose spec is not decided in all fields. */
export function rowPlanOfJob(spec: RowSpec, facts: RowPlanFacts): RowPlan {
  return rowPlanOf(chosen(spec, ofOneType).plan, spec, facts);
}

/** Chooses by the spec. */
function chosen(
  { kind, task, model }: Pick<JobSpec, 'kind' | 'task' | 'model'>,
  schema: GraphSchema,
): Kind {
  if (kind === 'LOAD') return reads({ model }, 'relations') ? lendingOfTypes(schema) : lending;
  if (reads({ model }, 'relations')) {
    return reads({ kind }, 'training') ? trainingOnRelations(schema) : inferringOnRelations(schema);
  }
  const isOnRows = reads({ model }, 'propagation');
  const isOfLinks = reads({ kind, task }, 'links');
  if (!reads({ kind }, 'training')) {
    if (isOfLinks) return isOnRows ? inferringOnLinkRows : inferringOnLinks;
    return isOnRows ? inferringRows : inferringBlocks;
  }
  if (isOfLinks) return isOnRows ? trainingOnLinkRows : trainingOnLinks;
  return isOnRows ? trainingOnRows : training;
}
