import type { Rule } from './rule.ts';

/** Checks what a way of sampling needs of the dataset, and which options it has. */
export const samplingRule: Rule = ({ sampling }, { check, given, context }) => {
  const { algorithm } = sampling;
  const path = 'spec.sampling.algorithm';
  if (algorithm === 'KHOP_WEIGHTED' && context.hasEdgeWeights === false) {
    check.violate(path, 'KHOP_WEIGHTED: the dataset has no edge weights');
  }
  if (sampling.replace && algorithm !== 'KHOP_UNIFORM' && algorithm !== 'KHOP_WEIGHTED') {
    check.violate('spec.sampling.replace', `true: not with algorithm ${algorithm}`);
  }
  if (algorithm !== 'RANDOM_WALK') return;
  if ((given.sampling?.fanouts ?? []).length > 0) {
    check.violate(
      'spec.sampling.fanouts',
      'expected none for RANDOM_WALK, which has walk.neighbors and model.layers',
    );
  }
  sampling.fanouts = [];
};
