import type { SpecDraft } from '../job-spec.ts';
import { kindOf } from '../model-kinds.ts';
import { isAbsolute, show } from '../spec-checker.ts';
import { reads } from '../spec-parts.ts';
import { checkAsked } from './link-inference.ts';
import type { Rule, RuleFacts } from './rule.ts';

/** The layer whose rows embeddings are; 0 is the last hidden one. */
function checkLayer({ task, inference, model }: SpecDraft, { check }: RuleFacts): void {
  const path = 'spec.inference.layer';
  const { layer } = inference;
  if (!inference.outputs.includes('EMBEDDINGS')) {
    if (layer > 0) check.violate(path, `${layer}: only for outputs EMBEDDINGS`);
    return;
  }
  const { layers, type } = model;
  const { noHiddenRows } = kindOf(type);
  const isOfLinks = reads({ task }, 'links');
  if (layer === 0) {
    const isLast = noHiddenRows !== '' || isOfLinks;
    inference.layer = isLast ? layers : Math.max(1, layers - 1);
  } else if (layer > layers) {
    const last = isOfLinks ? 'what the head reads' : 'the logits';
    check.violate(path, `${layer}: the model has ${layers}, of which the last gives ${last}`);
  } else if (layer < layers && noHiddenRows !== '') {
    const only = `expected ${layers}, whose rows are the logits`;
    check.violate(path, `${layer}: ${noHiddenRows}; ${only}`);
  }
}

/** Checks which nodes are predicted, where those are listed, and which files are written. */
export const inferenceRule: Rule = (spec, facts) => {
  const { check } = facts;
  if (!reads(spec, 'inference')) return;
  const { inference } = spec;
  if (inference.job === '' && inference.path === '') {
    check.violate('spec.inference.job', 'required: the job whose model predicts, or path');
  }
  if (inference.path !== '' && !isAbsolute(inference.path)) {
    check.violate('spec.inference.path', `${show(inference.path)}: expected an absolute path`);
  }
  const isListed = inference.nodes === 'LISTED';
  const { nodesFile: file, nodeIds } = inference;
  if (nodeIds.length > 0 && (!isListed || file !== '')) {
    const why = isListed ? 'expected none beside nodes_file' : 'only for nodes LISTED';
    check.violate('spec.inference.node_ids', `${nodeIds.length} given: ${why}`);
  }
  if (isListed && file === '' && nodeIds.length === 0) {
    check.violate('spec.inference.nodes_file', 'required for nodes LISTED, or node_ids');
  } else if (!isListed && file !== '') {
    check.violate('spec.inference.nodes_file', `${show(file)}: only for nodes LISTED`);
  } else if (isListed && file !== '' && !isAbsolute(file)) {
    check.violate('spec.inference.nodes_file', `${show(file)}: expected an absolute path`);
  }
  const shares = inference.outputs.indexOf('PROBABILITIES');
  if (inference.task === 'REGRESSION' && shares >= 0) {
    check.violate(
      `spec.inference.outputs[${shares}]`,
      'PROBABILITIES: the model regresses, which gives none',
    );
  }
  checkLayer(spec, facts);
  checkAsked(spec, facts);
  for (const key of ['outputs', 'formats'] as const) {
    const names: readonly string[] = inference[key];
    names.forEach((name, index) => {
      if (names.indexOf(name) === index) return;
      check.violate(`spec.inference.${key}[${index}]`, `${name}: is there already`);
    });
  }
};
