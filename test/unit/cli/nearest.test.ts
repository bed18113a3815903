import { expect, test } from 'vitest';
import { nearest } from '../../../src/cli/read/nearest.ts';

const keys = ['epochs', 'batch_size', 'batches_per_step', 'random_seed', 'learning_rate'];

test('a typing error finds the key that was meant', () => {
  expect(nearest('batch_sze', keys)).toBe('batch_size');
  expect(nearest('epoch', keys)).toBe('epochs');
  expect(nearest('batchSize', keys)).toBe('batch_size');
});

test('a part of a key or its initials find it', () => {
  expect(nearest('seed', keys)).toBe('random_seed');
  expect(nearest('lr', keys)).toBe('learning_rate');
});

test('what is like no key finds none', () => {
  expect(nearest('momentum', keys)).toBeNull();
});
