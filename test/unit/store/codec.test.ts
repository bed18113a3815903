import { expect, test } from 'vitest';
import { integer, later, object, text } from '../../../src/store/codec.ts';

test('a member that came later has a value where older ones were stored', () => {
  const shape = object({ name: text, rows: later(integer, 0) });
  expect(shape({ name: 'old' }, 'plan')).toEqual({ name: 'old', rows: 0 });
  expect(shape({ name: 'new', rows: 7 }, 'plan')).toEqual({ name: 'new', rows: 7 });
  expect(() => shape({ name: 'bad', rows: 'many' }, 'plan')).toThrow(/plan\.rows/);
  expect(() => shape({ rows: 7 }, 'plan')).toThrow(/a member name/);
});
