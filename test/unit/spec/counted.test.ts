import { expect, test } from 'vitest';
import { counted } from '../../../src/spec/counted.ts';

test('one thing is no things', () => {
  const seen = [0, 1, 2, 12_345, 1n].map((value) => counted(value, 'batch', 'batches'));
  expect(seen).toEqual(['0 batches', '1 batch', '2 batches', '12,345 batches', '1 batch']);
  expect(counted(1, 'job')).toBe('1 job');
});
