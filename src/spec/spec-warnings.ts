import type { JobSpec } from './job-spec.ts';
import { defaultStaleness } from './resolve-job-spec.ts';

/** What its author should know about a spec with which nothing is wrong, a sentence each. */
export function warningsOf({ training, resources }: JobSpec): readonly string[] {
  const { staleness, stalenessCompensation } = training;
  const usual = defaultStaleness(resources.devices);
  if (staleness <= usual) return [];
  const steps = staleness === 1 ? '1 step' : `${staleness} steps`;
  const eased =
    stalenessCompensation === 'PREDICT'
      ? 'even predicted, as training.staleness_compensation has it'
      : 'most of it won back by training.staleness_compensation: PREDICT';
  return [
    `training.staleness is ${staleness}, the default ${usual}: batches are computed on ` +
      `parameters that are ${steps} old, which costs accuracy after the same number of epochs, ` +
      `${eased} (docs/job-spec.md, "Staleness")`,
  ];
}
