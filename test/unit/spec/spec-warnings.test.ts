import { expect, test } from 'vitest';
import type { JobSpec } from '../../../src/spec/job-spec.ts';
import { warningsOf } from '../../../src/spec/spec-warnings.ts';
import { resolvedSpec } from '../../support/api-fakes.ts';

function warnings(
  staleness: number,
  stalenessCompensation: JobSpec['training']['stalenessCompensation'],
) {
  const { training, ...rest } = resolvedSpec();
  return warningsOf({ ...rest, training: { ...training, staleness, stalenessCompensation } });
}

test.each([
  [1, 'PREDICT', '1 step old', 'up to one point'],
  [1, 'NONE', '1 step old', 'from one point to many'],
  [2, 'PREDICT', '2 steps old', 'from one point to many'],
] as const)('a delay of %i with %s says what it costs', (staleness, how, age, price) => {
  const [warning, ...more] = warnings(staleness, how);
  expect(more).toEqual([]);
  expect(warning).toContain(`training.staleness is ${staleness}, the default 0: `);
  expect(warning).toContain(age);
  expect(warning).toContain(`costs accuracy after the same number of epochs, ${price}`);
});

test('no delay needs no words', () => {
  expect(warnings(0, 'NONE')).toEqual([]);
  expect(warnings(0, 'PREDICT')).toEqual([]);
});

test('bfloat16 that is multiplied as float32 gains no time', () => {
  const { training, ...rest } = resolvedSpec();
  const of = (changes: Partial<typeof training>) =>
    warningsOf({ ...rest, training: { ...training, ...changes } });
  expect(of({ precision: 'BFLOAT16', matrixLibrary: 'OPENBLAS' })).toEqual([
    expect.stringContaining('training.precision is BFLOAT16, which OPENBLAS multiplies as float32'),
  ]);
  expect(of({ precision: 'BFLOAT16', matrixLibrary: 'ONEDNN' })).toEqual([]);
  expect(of({ precision: 'FLOAT32', matrixLibrary: 'OPENBLAS' })).toEqual([]);
});
