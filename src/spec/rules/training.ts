import { automaticSteps } from '../batches-per-step.ts';
import type { DatasetTask } from '../job-spec.ts';
import { itemsOf, knownOf } from '../learnt.ts';
import {
  automaticDecay,
  automaticDropout,
  automaticEpochs,
  automaticRate,
  automaticSchedule,
} from '../schedule.ts';
import { show } from '../spec-checker.ts';
import { rangeOf } from '../spec-fields.ts';
import { reads } from '../spec-parts.ts';
import type { Rule } from './rule.ts';

/** Resolves fields that follow from the dataset's and the host's sizes, and from the delay. */
export const trainingRule: Rule = (spec, { check, given, context }) => {
  const { training, model } = spec;
  const { deviceCores } = context;
  const items = itemsOf(spec, context) ?? training.batchSize;
  training.batchSize = Math.max(1, Math.min(training.batchSize, items));
  const threads = 'training.threads_per_trainer';
  const askedThreads = given.training?.threadsPerTrainer;
  const isScript = model.type === 'TORCHSCRIPT';
  if (askedThreads === undefined || check.failed(`spec.${threads}`)) {
    const most = rangeOf(threads).max;
    training.threadsPerTrainer = isScript ? Math.max(1, Math.min(most, ...deviceCores)) : 0;
  } else if (isScript && askedThreads === 0) {
    check.violate(
      `spec.${threads}`,
      '0: the number decides bits of a TORCHSCRIPT; expected 1 or more',
    );
  }
  const compensation = 'spec.training.staleness_compensation';
  if (given.training?.stalenessCompensation === undefined || check.failed(compensation)) {
    training.stalenessCompensation = training.staleness > 0 ? 'PREDICT' : 'NONE';
  }
};

/** How long and how a job trains where that is left open; after the size of batches. */
export const scheduleRule: Rule = (spec, { check, given, context }) => {
  const { training } = spec;
  const items = itemsOf(spec, context);
  if (given.training?.epochs === undefined) {
    training.epochs = automaticEpochs(spec, items).value;
  }
  const { learningRate } = given.training?.optimizer ?? {};
  if (learningRate === undefined || check.failed('spec.training.optimizer.learning_rate')) {
    training.optimizer.learningRate = automaticRate(spec, { ...context, items }).value;
  }
  const { lrSchedule } = training;
  const asked = given.training?.lrSchedule?.type;
  if (asked === undefined || check.failed('spec.training.lr_schedule.type')) {
    lrSchedule.type = automaticSchedule(spec).value;
  }
  const { weightDecay } = given.training?.optimizer ?? {};
  if (weightDecay === undefined || check.failed('spec.training.optimizer.weight_decay')) {
    training.optimizer.weightDecay = automaticDecay(spec, context).value;
  }
  const isScript = spec.model.type === 'TORCHSCRIPT';
  if (!isScript && (given.model?.dropout === undefined || check.failed('spec.model.dropout'))) {
    spec.model.dropout = automaticDropout(spec, { ...context, items }).value;
  }
};

/** How many batches a step averages where that is left open; after what decides who trains. */
export const stepsRule: Rule = (spec, { given, context }) => {
  const { training } = spec;
  if (training.batchesPerStep !== 0) return;
  const batches = Math.ceil((itemsOf(spec, context) ?? 0) / training.batchSize);
  const { batchesPerStep, learningRate } = automaticSteps(given, spec, batches);
  training.batchesPerStep = batchesPerStep;
  training.optimizer.learningRate = learningRate;
};

/** Whoever trains learns from labels, or from links. */
export const labelsRule: Rule = ({ kind, task, dataset }, { check, context }) => {
  if (!reads({ kind }, 'training') || !reads({ task }, 'labels')) return;
  if (context.targets?.count !== 0) return;
  check.violate(
    'spec.dataset',
    `${show(dataset)}: has no labels, so that nothing can be learnt of its nodes; learn which of ` +
      'them belong together (task LINKS, docs/links.md), predict it with a model that was ' +
      `trained elsewhere (gnnctl predict JOB --dataset ${dataset}), or import it with labels and ` +
      'a training split',
  );
};

/** Chooses the library that multiplies matrices: OpenBLAS runs everywhere. */
export const matrixLibraryRule: Rule = ({ training }, { check, given, context }) => {
  const path = 'spec.training.matrix_library';
  const asked = given.training?.matrixLibrary;
  if (asked === undefined || check.failed(path)) {
    training.matrixLibrary = context.matrixLibrary;
  } else if (asked === 'ONEDNN' && context.matrixLibrary !== 'ONEDNN') {
    check.violate(path, 'ONEDNN: this host has none of its kernels (x86-64 with AVX2 or more)');
  }
};

/** Keeps from a PORTABLE job what computes by kernels that go by the processor. */
export const portableRule: Rule = ({ training, model }, { check, given, context }) => {
  if (training.determinism !== 'PORTABLE') return;
  const path = (field: string) => `spec.training.${field}`;
  if (context.matrixLibrary !== 'ONEDNN') {
    const lacks = 'PORTABLE: this host has no x86-64 processor with AVX2';
    check.violate(path('determinism'), `${lacks}; expected STRICT`);
  }
  if (given.training?.matrixLibrary === 'ONEDNN') {
    const why = 'ONEDNN: chooses its kernels by the processor';
    check.violate(path('matrix_library'), `${why}; expected OPENBLAS for determinism PORTABLE`);
  }
  training.matrixLibrary = 'OPENBLAS';
  if (training.precision !== 'FLOAT32' && training.precision !== 'AUTO') {
    const expected = 'expected FLOAT32 for determinism PORTABLE';
    check.violate(path('precision'), `${training.precision}: ${expected}`);
  }
  if (model.type === 'TORCHSCRIPT') {
    const why = 'PORTABLE: a TORCHSCRIPT computes by kernels of PyTorch, which go by the processor';
    check.violate(path('determinism'), `${why}; expected STRICT`);
  }
};

/** When to stop before the last epoch: patience is spent on evaluations of validation nodes. */
export const earlyStopRule: Rule = ({ task, training }, { check, given, context }) => {
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
  if (isAsked && reads({ task }, 'labels') && context.valNodes === 0) {
    const description = 'the dataset has no validation nodes, so nothing is evaluated';
    check.violate(path('patience_epochs'), `${patienceEpochs}: ${description}`);
  }
};

const ofLinks = 'links are of no class; leave it out';

/** Why weights of classes mean nothing for a task; null where they do. */
function whyWithoutClasses(task: DatasetTask | undefined): string | null {
  if (task !== 'REGRESSION') return null;
  return 'the dataset has numbers to regress on, which are of no class; leave it out';
}

/** Weights are of classes or labels, one each. */
export const classWeightsRule: Rule = (spec, { check, context }) => {
  const { kind, training } = spec;
  if (!reads({ kind }, 'training')) return;
  const { classWeights, balanceClasses } = training;
  const targets = knownOf(spec, context.targets);
  const weights = 'spec.training.class_weights';
  const balance = 'spec.training.balance_classes';
  const why = targets === null ? ofLinks : whyWithoutClasses(targets?.task);
  if (why !== null) {
    if (classWeights.length > 0) check.violate(weights, `${classWeights.length} given: ${why}`);
    if (balanceClasses) check.violate(balance, `true: ${why}`);
    return;
  }
  if (classWeights.length > 0 && balanceClasses) {
    check.violate(balance, 'true: beside class_weights; expected one of them');
  }
  if (classWeights.length === 0 || targets == null || check.failed(weights)) return;
  if (classWeights.length === targets.count) return;
  const unit = targets.task === 'MULTI_LABEL' ? 'label' : 'class';
  check.violate(
    weights,
    `${classWeights.length} given: expected ${targets.count}, one for each ${unit} of the dataset`,
  );
};
