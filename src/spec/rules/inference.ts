import { show } from '../spec-checker.ts';
import { reads } from '../spec-parts.ts';
import type { Rule } from './rule.ts';

/** Paths are those of the daemon's host, which is no Windows. */
const isAbsolute = (path: string) => path.startsWith('/');

/** Checks which nodes are predicted, where those are listed, and which files are written. */
export const inferenceRule: Rule = (spec, { check }) => {
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
  for (const key of ['outputs', 'formats'] as const) {
    const names: readonly string[] = inference[key];
    names.forEach((name, index) => {
      if (names.indexOf(name) === index) return;
      check.violate(`spec.inference.${key}[${index}]`, `${name}: is there already`);
    });
  }
};
