import { expect, test } from 'vitest';
import { meantBy, nearestOf } from '../../../src/spec/nearest.ts';

const keys = ['epochs', 'batch_size', 'batches_per_step', 'random_seed', 'learning_rate'];

test('a typing error finds the key that was meant', () => {
  expect(nearestOf('batch_sze', keys)).toBe('batch_size');
  expect(nearestOf('epoch', keys)).toBe('epochs');
  expect(nearestOf('batchSize', keys)).toBe('batch_size');
});

test('a part of a key or its initials find it', () => {
  expect(nearestOf('seed', keys)).toBe('random_seed');
  expect(nearestOf('lr', keys)).toBe('learning_rate');
});

test('what is like no key finds none', () => {
  expect(nearestOf('momentum', keys)).toBeNull();
});

test('two letters that changed places are one mistake, and a part of a name is the name', () => {
  expect(nearestOf('frist', ['fast', 'first'])).toBe('first');
  expect(nearestOf('products', ['cora', 'ogbn-products'])).toBe('ogbn-products');
  expect(nearestOf('xyz', ['abc'])).toBeNull();
  expect([meantBy('coar', ['cora']), meantBy('nothing', ['cora'])]).toEqual([
    '; did you mean cora?',
    '',
  ]);
});
