import { show } from '../spec-checker.ts';
import { rangeOf } from '../spec-fields.ts';
import type { Rule } from './rule.ts';

/** What follows from the dataset's and the host's sizes, and from the delay. */
export const trainingRule: Rule = ({ training }, { check, given, context }) => {
  const { trainNodes, smallestDeviceCores } = context;
  training.batchSize = Math.max(1, Math.min(training.batchSize, trainNodes ?? training.batchSize));
  const threads = 'training.threads_per_trainer';
  if (given.training?.threadsPerTrainer === undefined || check.failed(`spec.${threads}`)) {
    const { min, max } = rangeOf(threads);
    training.threadsPerTrainer = Math.min(Math.max(smallestDeviceCores, min), max);
  }
  const compensation = 'spec.training.staleness_compensation';
  if (given.training?.stalenessCompensation === undefined || check.failed(compensation)) {
    training.stalenessCompensation = training.staleness > 0 ? 'PREDICT' : 'NONE';
  }
};

/** When to stop before the last epoch: patience is spent on evaluations of validation nodes. */
export const earlyStopRule: Rule = ({ training }, { check, given, context }) => {
  const { earlyStop } = training;
  const path = (field: string) => `spec.training.early_stop.${field}`;
  const { patienceEpochs, minDelta } = given.training?.earlyStop ?? {};
  const isAsked = patienceEpochs !== undefined && patienceEpochs !== 0;
  if (!isAsked && minDelta !== undefined && minDelta !== 0) {
    if (!check.failed(path('min_delta'))) {
      check.violate(path('min_delta'), `${show(minDelta)}: only for a job with patience_epochs`);
    }
    earlyStop.minDelta = 0;
  }
  if (isAsked && context.valNodes === 0) {
    const description = 'the dataset has no validation nodes, so nothing is evaluated';
    check.violate(path('patience_epochs'), `${patienceEpochs}: ${description}`);
  }
};
