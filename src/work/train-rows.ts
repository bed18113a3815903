import { type PlanKind, trainRows } from '../plan/plan.ts';
import type { ScheduledWork } from '../scheduler/request.ts';
import type { WorkContext } from './context.ts';
import { untried, type WorkInput } from './preparation.ts';
import { Rows } from './rows.ts';
import { modelFinalizeMs, TrainingAttempt } from './training.ts';

export const trainRowsSchedule: ScheduledWork = {
  withoutSamplers: 'batches are rows of propagated features, which nobody samples',
  finalizeMs: modelFinalizeMs,
};

/** An attempt at training on rows, which nobody samples: there is nothing to rank or to try. */
export class TrainRowsAttempt extends TrainingAttempt {
  constructor(
    context: WorkContext,
    plan: PlanKind = trainRows,
    input: WorkInput = new Rows(context),
  ) {
    super(context, plan, input);
  }

  trial(): never {
    return untried();
  }

  tried(): never {
    return untried();
  }
}
