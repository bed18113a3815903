import type { JobSpec, JobSpecInput } from './job-spec.ts';
import { integerLimits, specDefaults } from './limits.ts';
import {
  decay,
  notNegative,
  positive,
  type SpecChecker,
  share,
  unusedField,
} from './spec-checker.ts';

type Training = JobSpec['training'];
type TrainingInput = NonNullable<JobSpecInput['training']>;

/** How a step follows from its gradient. */
export function resolveOptimizer(
  check: SpecChecker,
  optimizer: TrainingInput['optimizer'],
): Training['optimizer'] {
  const defaults = specDefaults.optimizer;
  const path = (field: string) => `spec.training.optimizer.${field}`;
  const type = check.choice(path('type'), optimizer?.type, ['ADAM', 'ADAMW', 'SGD'], defaults.type);
  const momentum = optimizer?.momentum;
  return {
    type,
    learningRate: check.real(
      path('learning_rate'),
      optimizer?.learningRate,
      positive,
      defaults.learningRate,
    ),
    beta1: check.real(path('beta1'), optimizer?.beta1, share, defaults.beta1),
    beta2: check.real(path('beta2'), optimizer?.beta2, share, defaults.beta2),
    epsilon: check.real(path('epsilon'), optimizer?.epsilon, positive, defaults.epsilon),
    weightDecay: check.real(
      path('weight_decay'),
      optimizer?.weightDecay,
      notNegative,
      defaults.weightDecay,
    ),
    weightDecayScope: check.choice(
      path('weight_decay_scope'),
      optimizer?.weightDecayScope,
      ['ALL', 'FIRST_LAYER'],
      defaults.weightDecayScope,
    ),
    momentum:
      type === 'SGD'
        ? check.real(path('momentum'), momentum, share, defaults.momentum)
        : unusedField(check, path('momentum'), momentum, 0, 'type SGD'),
    clipNorm: check.real(path('clip_norm'), optimizer?.clipNorm, notNegative, defaults.clipNorm),
  };
}

/** The learning rate over the job's `epochs`. */
export function resolveLrSchedule(
  check: SpecChecker,
  schedule: TrainingInput['lrSchedule'],
  epochs: number,
): Training['lrSchedule'] {
  const defaults = specDefaults.lrSchedule;
  const path = (field: string) => `spec.training.lr_schedule.${field}`;
  const type = check.choice(
    path('type'),
    schedule?.type,
    ['CONSTANT', 'STEP', 'COSINE'],
    defaults.type,
  );
  const warmupEpochs = check.integer(
    path('warmup_epochs'),
    schedule?.warmupEpochs,
    { min: 0, max: epochs },
    defaults.warmupEpochs,
  );
  const { stepEpochs, gamma } = schedule ?? {};
  if (type !== 'STEP') {
    return {
      type,
      stepEpochs: unusedField(check, path('step_epochs'), stepEpochs, 0, 'type STEP'),
      gamma: unusedField(check, path('gamma'), gamma, 0, 'type STEP'),
      warmupEpochs,
    };
  }
  return {
    type,
    stepEpochs: check.integer(
      path('step_epochs'),
      stepEpochs,
      integerLimits.stepEpochs,
      defaults.stepEpochs,
    ),
    gamma: check.real(path('gamma'), gamma, decay, defaults.gamma),
    warmupEpochs,
  };
}
