/** The face of the room: attempts and their crews, and children that do one task each. */

export { timed } from './attempt-parts.ts';
export type { AttemptContext, AttemptEvent, AttemptInput, AttemptPart } from './attempt-types.ts';
export {
  type AttemptWork,
  type Calibration,
  type EndedEpochs,
  type FinalWork,
  noEpochs,
  type ProgressFacts,
  type RunningCrew,
  type RunningWork,
  type Standing,
  standingOf,
  type Told,
} from './attempt-work.ts';
export type { CrewParts, PlacedViews } from './crew.ts';
export { matrixLibraryOf } from './executor-process.ts';
export { ExecutorTimer } from './executor-times.ts';
export { ExecutorUsage } from './executor-usage.ts';
export { CheckpointError } from './finalize.ts';
export { attemptFailureOf, JobAttempt } from './job-attempt.ts';
export { isAlive, type Look } from './look.ts';
export { type PredictionPart, predict } from './prediction.ts';
export { createPreparer } from './preparer.ts';
export { runTask, TaskError, type TaskOptions } from './task.ts';
export { readTimeline } from './timeline.ts';
export { timingsOf } from './timings.ts';
