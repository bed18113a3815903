import { evaluationMethods, type JobSpec, type JobSpecInput } from './job-spec.ts';
import { integerLimits, specDefaults } from './limits.ts';
import { checkFanouts } from './resolve-sampling.ts';
import type { SpecChecker } from './spec-checker.ts';

type Evaluation = JobSpec['evaluation'];
type Model = JobSpec['model'];

/** What else of a spec decides about its evaluation; `numNodes` is null for an unknown dataset. */
interface Surroundings {
  readonly model: Model;
  readonly sampling: JobSpec['sampling'];
  readonly training: JobSpec['training'];
  readonly context: { readonly numNodes: number | null };
}

/** How often and on which neighbourhoods a job is evaluated; AUTO becomes EXACT or SAMPLED. */
export function resolveEvaluation(
  check: SpecChecker,
  evaluation: JobSpecInput['evaluation'],
  { model, sampling, training, context }: Surroundings,
): Evaluation {
  const defaults = specDefaults.evaluation;
  const everyPath = 'spec.evaluation.every_epochs';
  const everyEpochs = check.integer(
    everyPath,
    evaluation?.everyEpochs,
    integerLimits.everyEpochs,
    defaults.everyEpochs,
  );
  if (everyEpochs === 0 && training.earlyStop.patienceEpochs > 0) {
    const description =
      '0: expected 1 or more beside training.early_stop, which counts evaluations before the end';
    check.violate(everyPath, description);
  }
  const maxBytes = check.integer(
    'spec.evaluation.max_bytes',
    evaluation?.maxBytes,
    integerLimits.memoryBytes,
    defaults.maxBytes,
  );
  const path = 'spec.evaluation.method';
  const asked = check.choice(
    path,
    evaluation?.method,
    ['AUTO', ...evaluationMethods],
    defaults.method,
  );
  const fits = hiddenBytes(model, context.numNodes ?? 0) <= maxBytes;
  const automatic = fits ? 'EXACT' : 'SAMPLED';
  const method = asked === 'AUTO' ? automatic : asked;
  const given = evaluation?.fanouts ?? [];
  if (asked === 'EXACT' && given.length > 0 && !check.failed(path)) {
    check.violate('spec.evaluation.fanouts', 'expected none for EXACT, which takes all neighbours');
  }
  const fanouts = resolveFanouts(check, given, { model, sampling });
  return { everyEpochs, method, fanouts: method === 'EXACT' ? [] : fanouts, maxBytes };
}

/**
 * Bytes of the hidden rows that an exact evaluation holds at once: a layer's input and its output,
 * in float32. The last layer's output is not among them, it is computed for the targets only.
 */
export function hiddenBytes({ layers, hiddenDim }: Model, numNodes: number): number {
  const width = hiddenDim === 0 ? specDefaults.model.hiddenDim : hiddenDim;
  const heldAtOnce = Math.min(2, layers - 1);
  return numNodes * heldAtOnce * width * Float32Array.BYTES_PER_ELEMENT;
}

/** Training's own fanouts if none are given: what a model was trained on, at a known cost. */
function resolveFanouts(
  check: SpecChecker,
  given: readonly number[],
  { model, sampling }: Pick<Surroundings, 'model' | 'sampling'>,
): readonly number[] {
  if (given.length === 0) return sampling.fanouts;
  const path = 'spec.evaluation.fanouts';
  if (sampling.algorithm === 'RANDOM_WALK') {
    check.violate(path, 'expected none for RANDOM_WALK, whose walks are those of training');
  } else if (given.length !== model.layers) {
    const expected = `expected ${model.layers}, one for each layer`;
    if (!check.failed('spec.model.layers')) check.violate(path, `${given.length}: ${expected}`);
  } else checkFanouts(check, path, given);
  return given;
}
