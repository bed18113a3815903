import { automaticStandardize } from '../standardize.ts';
import type { Rule } from './rule.ts';

/** Resolves whether features are standardised: it decides bits, so it is decided once. */
export const featuresRule: Rule = (spec, { check, context }) => {
  const { features } = spec;
  if (check.failed('spec.features.standardize') || features.standardize !== 'AUTO') return;
  features.standardize = automaticStandardize(spec, context).value;
};
