import type { Rule } from './rule.ts';

/** Which links are learnt, and from which pairs. */
export const linksRule: Rule = ({ task }, { check }) => {
  if (task !== 'LINKS') return;
  check.violate('spec.task', 'LINKS: not available in this build; expected NODES');
};
