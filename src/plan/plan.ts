/** The face of the room: sizes and options that follow from a spec, for `src/work` and the crew. */

export { blocks } from './blocks.ts';
export { cachePlanOf } from './cache-plan.ts';
export {
  budgetBytesOf,
  deviceOptionsOf,
  heldByTrainers,
  reservedBytesOf,
  standbyRoomOf,
  takenBeside,
  torchBytesOf,
} from './device-memory.ts';
export {
  createScratch,
  type EvaluationPlan,
  evaluationBytesOf,
  evaluationPlanOf,
  evaluationSampling,
} from './evaluation-plan.ts';
export { type CachedRows, historyOptionsOf, isHistoryWarm, noCachedRows } from './history.ts';
export {
  infer,
  inferencePlanOf,
  inferenceSegment,
  nodesOf,
  outputsOf,
  questionOf,
} from './infer.ts';
export { layoutOf, linkTrainingOf, optimizerOf } from './job-layout.ts';
export { load, loadRelations, loadSegment } from './load.ts';
export { memoryPlanOf, memoryViolations, taskTopologyPlace } from './memory-plan.ts';
export type {
  Batches,
  JobLayout,
  MemoryFacts,
  PlanKind,
  SegmentRequest,
  SizesAddon,
} from './plan-kind.ts';
export { namesOf, relationBlocks } from './relation-blocks.ts';
export { type RowPlanFacts, type RowSpec, rowPlanOf, rows, rowsOfLinks } from './rows.ts';
export { trainBlocks, trialSegment } from './train-blocks.ts';
export { trainLinkRows } from './train-link-rows.ts';
export { trainLinks } from './train-links.ts';
export { trainRelations } from './train-relations.ts';
export { trainRows } from './train-rows.ts';
export { trainerThreads } from './trainer-threads.ts';
export { jobSegment } from './training-segment.ts';
