import { trainRows } from '../plan/plan.ts';
import type { ScheduledWork } from '../scheduler/request.ts';
import type { WorkContext } from './context.ts';
import { untried } from './preparation.ts';
import { Rows } from './rows.ts';
import { modelFinalizeMs, TrainingAttempt } from './training.ts';

export const trainRowsSchedule: ScheduledWork = {
  withoutSamplers: 'batches are rows of propagated features, which nobody samples',
  finalizeMs: modelFinalizeMs,
};

/** An attempt at training on rows, which nobody samples: there is nothing to rank or to try. */
export class TrainRowsAttempt extends TrainingAttempt {
  constructor(context: WorkContext) {
    super(context, trainRows, new Rows(context));
  }

  trial(): never {
    return untried();
  }

  tried(): never {
    return untried();
  }
}
