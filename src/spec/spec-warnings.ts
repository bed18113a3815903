import { trainersOf, waitingText } from './batches-per-step.ts';
import type { JobSpec } from './job-spec.ts';
import { defaultOf } from './spec-fields.ts';
import { reads } from './spec-parts.ts';

/**
 * What its author should know about a spec with which nothing is wrong, a sentence each. `trainers`
 * are those that its devices turned out to have.
 */
export function warningsOf(spec: JobSpec, trainers = trainersOf(spec)): readonly string[] {
  const { kind, training } = spec;
  // Whoever predicts with a model does not train it.
  if (!reads({ kind }, 'training')) return [];
  const waiting = waitingText(spec, trainers);
  return [
    ...(waiting === null ? [] : [waiting]),
    ...delayWarnings(training),
    ...precisionWarnings(training),
  ];
}

function precisionWarnings({ precision, matrixLibrary }: JobSpec['training']): readonly string[] {
  if (precision !== 'BFLOAT16' || matrixLibrary !== 'OPENBLAS') return [];
  return [
    'training.precision is BFLOAT16, which OPENBLAS multiplies as float32: it saves memory, no ' +
      'time (docs/job-spec.md, "Precision")',
  ];
}

function delayWarnings(training: JobSpec['training']): readonly string[] {
  const { staleness, stalenessCompensation } = training;
  const usual = defaultOf<number>('training.staleness');
  if (staleness <= usual) return [];
  const steps = staleness === 1 ? '1 step' : `${staleness} steps`;
  const isMild = staleness === 1 && stalenessCompensation === 'PREDICT';
  const price = isMild ? 'up to one point' : 'from one point to many';
  return [
    `training.staleness is ${staleness}, the default ${usual}: batches are computed on ` +
      `parameters that are ${steps} old, which costs accuracy after the same number of epochs, ` +
      `${price} (docs/job-spec.md, "Staleness")`,
  ];
}
