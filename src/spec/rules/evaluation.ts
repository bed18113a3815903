import type { SpecDraft } from '../job-spec.ts';
import { learntTask } from '../learnt.ts';
import { isError, metricsOfTask, poolMetrics, usualMetric } from '../metrics.ts';
import { defaultOf } from '../spec-fields.ts';
import { reads } from '../spec-parts.ts';
import type { Rule, RuleFacts } from './rule.ts';

/** How often and on which neighbourhoods a job is evaluated; AUTO becomes EXACT or SAMPLED. */
export const evaluationRule: Rule = (spec, facts) => {
  const { evaluation, model, training } = spec;
  const { check, context } = facts;
  if (evaluation.everyEpochs === 0 && training.earlyStop.patienceEpochs > 0) {
    const description =
      '0: expected 1 or more beside training.early_stop, which counts evaluations before the end';
    check.violate('spec.evaluation.every_epochs', description);
  }
  resolveMetric(spec, facts);
  const asked = evaluation.method;
  const given = facts.given.evaluation?.fanouts ?? [];
  if (asked === 'EXACT' && given.length > 0) {
    check.violate('spec.evaluation.fanouts', 'expected none for EXACT, which takes all neighbours');
  }
  checkFanouts(given, spec, facts);
  if (asked === 'AUTO') {
    const fits =
      reads(spec, 'links') ||
      reads({ model }, 'relations') ||
      !reads({ model }, 'sampling') ||
      hiddenBytes(model, context.numNodes ?? 0) <= evaluation.maxBytes;
    evaluation.method = fits ? 'EXACT' : 'SAMPLED';
  }
  // Training's own if none are given: what a model was trained on, at a known cost.
  const sampled = given.length === 0 ? spec.sampling.fanouts : given;
  evaluation.fanouts = evaluation.method === 'EXACT' ? [] : sampled;
};

/** AUTO becomes what decides of the dataset's task. */
function resolveMetric(spec: SpecDraft, { check, context }: RuleFacts): void {
  const { kind, evaluation, training } = spec;
  const { targets } = context;
  if (targets === undefined || !reads({ kind }, 'training')) return;
  const task = learntTask(spec, targets.task);
  const isPooled = reads(spec, 'links') && spec.links.evaluation.negatives === 'POOL';
  const usual = isPooled ? poolMetrics.usual : usualMetric[task];
  const metric = evaluation.metric === 'AUTO' ? usual : evaluation.metric;
  evaluation.metric = metric;
  const { minDelta } = training.earlyStop;
  if (minDelta >= 1 && !isError(metric)) {
    const description = `${minDelta}: expected below 1, for ${metric} is a share`;
    check.violate('spec.training.early_stop.min_delta', description);
  }
  const known = isPooled ? poolMetrics.known : metricsOfTask[task];
  if (known.includes(metric)) return;
  const whose = task === targets.task ? "the dataset's task" : 'the task';
  const why = isPooled ? 'links share a pool of negatives' : `${whose} is ${task}`;
  check.violate('spec.evaluation.metric', `${metric}: expected one of ${known.join(', ')}: ${why}`);
}

/**
 * Bytes of the hidden rows that an exact evaluation holds at once: a layer's input and its output,
 * in float32. The last layer's output is not among them, it is computed for the targets only.
 */
export function hiddenBytes({ layers, hiddenDim }: SpecDraft['model'], numNodes: number): number {
  const width = hiddenDim === 0 ? defaultOf<number>('model.hidden_dim') : hiddenDim;
  const heldAtOnce = Math.min(2, layers - 1);
  return numNodes * heldAtOnce * width * Float32Array.BYTES_PER_ELEMENT;
}

function checkFanouts(
  given: readonly number[],
  { model, sampling }: SpecDraft,
  { check }: RuleFacts,
): void {
  if (given.length === 0) return;
  const path = 'spec.evaluation.fanouts';
  if (sampling.algorithm === 'RANDOM_WALK') {
    check.violate(path, 'expected none for RANDOM_WALK, whose walks are those of training');
  } else if (given.length !== model.layers && !check.failed('spec.model.layers')) {
    check.violate(path, `${given.length}: expected ${model.layers}, one for each layer`);
  }
}
