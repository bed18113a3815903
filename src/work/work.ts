import type { ScheduledWork } from '../scheduler/request.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { takesRows } from '../spec/model-kinds.ts';
import { infers } from '../spec/rules/inference.ts';
import type { AttemptWork } from '../supervisor/attempt-work.ts';
import { Blocks } from './blocks.ts';
import type { WorkContext } from './context.ts';
import { InferAttempt, inferSchedule } from './infer.ts';
import { Rows } from './rows.ts';
import { TrainBlocksAttempt, trainBlocksSchedule } from './train-blocks.ts';
import { TrainRowsAttempt, trainRowsSchedule } from './train-rows.ts';

/** What a job does: it trains on blocks, trains on rows, or predicts with a trained model. */
export interface Work {
  readonly schedule: ScheduledWork;
  /** The work of one attempt at the job. */
  attempt(context: WorkContext): AttemptWork;
}

/** Chooses by the spec. Attempts, crews and the scheduler ask the work; plans ask the spec. */
export function workOf(spec: JobSpec): Work {
  const rows = takesRows(spec.model.type);
  if (infers(spec)) {
    const inputOf = (context: WorkContext) => (rows ? new Rows(context) : new Blocks(context));
    const attempt = (context: WorkContext) => new InferAttempt(context, inputOf(context));
    return { schedule: inferSchedule, attempt };
  }
  return rows
    ? { schedule: trainRowsSchedule, attempt: (context) => new TrainRowsAttempt(context) }
    : { schedule: trainBlocksSchedule, attempt: (context) => new TrainBlocksAttempt(context) };
}
