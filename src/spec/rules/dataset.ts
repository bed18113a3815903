import { idPattern, idRule } from '../limits.ts';
import { show } from '../spec-checker.ts';
import type { Rule } from './rule.ts';

export const datasetRule: Rule = ({ dataset }, { check }) => {
  if (check.failed('spec.dataset') || idPattern.test(dataset)) return;
  check.violate('spec.dataset', `${show(dataset)}: expected an id: ${idRule}`);
};
