import type { Rule } from './rule.ts';

/** How likely a plug-in is to reach a node can be counted, not computed. */
export const cacheRule: Rule = ({ cache, sampling }, { check, given }) => {
  const path = 'spec.cache.policy';
  const isPlugin = sampling.algorithm === 'KHOP_PLUGIN';
  if (given.cache?.policy === undefined || check.failed(path)) {
    cache.policy = isPlugin ? 'PRESC' : 'COMBINED';
  } else if (isPlugin && (cache.policy === 'COMBINED' || cache.policy === 'PROBABILITY')) {
    const description = 'what KHOP_PLUGIN draws has no known probabilities; use PRESC';
    check.violate(path, `${cache.policy}: ${description}`);
  }
};
