import type { JobSpec } from '../spec/job-spec.ts';
import { infers } from '../spec/rules/inference.ts';
import { takesRows } from '../spec/rules/propagation.ts';
import type { AttemptWork } from '../supervisor/attempt-work.ts';
import { Blocks } from './blocks.ts';
import type { WorkContext } from './context.ts';
import { InferAttempt } from './infer.ts';
import { Rows } from './rows.ts';
import { TrainBlocksAttempt } from './train-blocks.ts';
import { TrainRowsAttempt } from './train-rows.ts';

/** What a job does: it trains on blocks, trains on rows, or predicts with a trained model. */
export interface Work {
  /** The work of one attempt at the job. */
  attempt(context: WorkContext): AttemptWork;
}

/** The one place that chooses: whoever needs a difference between kinds of jobs asks the work. */
export function workOf(spec: JobSpec): Work {
  const rows = takesRows(spec.model.type);
  if (infers(spec)) {
    const attempt = (context: WorkContext) =>
      new InferAttempt(context, rows ? new Rows(context) : new Blocks(context));
    return { attempt };
  }
  return {
    attempt: (context) => (rows ? new TrainRowsAttempt(context) : new TrainBlocksAttempt(context)),
  };
}
