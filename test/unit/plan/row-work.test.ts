import { expect, test } from 'vitest';
import { type RowShape, rowWorkBytes } from '../../../src/plan/row-work.ts';
import { someSpec } from '../store/job-values.ts';

const shape: RowShape = { numFeatures: 128, numClasses: 3, numFloats: 500, val: 10, test: 20 };

type Model = Partial<(typeof someSpec)['model']>;

function workOf(model: Model, changes: Partial<RowShape> = {}, batchSize = 1000, hops = 2): number {
  const propagation = { ...someSpec.propagation, operators: ['SYMMETRIC' as const], hops };
  const training = { ...someSpec.training, batchSize };
  const fixed = { layers: 3, hiddenDim: 256, heads: 1, inputDropout: 0, hopLayers: 0 };
  const spec = { model: { ...someSpec.model, ...fixed, ...model }, propagation, training };
  return rowWorkBytes(spec, { ...shape, ...changes });
}

test('the work on rows is two batches, an evaluation, and the tensors of one', () => {
  const rows = (2 * 1000 + 20) * 128;
  const tensors = 1.5 * 1000 * (128 + 4 * 3);
  expect(workOf({ type: 'SGC' })).toBe(4 * (rows + tensors + 2 * 500) + 16 * 2 ** 20);
});

test.each<[string, Model]>([
  ['SGC', { type: 'SGC' }],
  ['SIGN', { type: 'SIGN', variant: 'FUSED' }],
  ['SIGN by hops', { type: 'SIGN', variant: 'CONCAT' }],
  ['HOGA', { type: 'HOGA', variant: 'GATED' }],
  ['HOGA of 2024', { type: 'HOGA', variant: 'DAC24' }],
])('the work of %s grows with what makes it more', (_, model) => {
  const least = workOf(model);
  expect(workOf(model, {}, 2000)).toBeGreaterThan(least);
  expect(workOf(model, { numFeatures: 256 })).toBeGreaterThan(least);
  expect(workOf({ ...model, inputDropout: 0.1 })).toBeGreaterThan(least);
  // 4,096 rows at a time, four times a batch.
  const evaluates = workOf(model, { val: 5000 });
  expect(evaluates).toBeGreaterThan(least);
  expect(workOf(model, { test: 50_000 })).toBe(evaluates);
  if (model.type === 'SGC') return;
  expect(workOf({ ...model, layers: 4 })).toBeGreaterThan(least);
  expect(workOf(model, {}, 1000, 3)).toBeGreaterThan(least);
});
