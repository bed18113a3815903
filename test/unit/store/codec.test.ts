import { expect, test } from 'vitest';
import { integer, object, text } from '../../../src/store/codec.ts';

test('a value that lacks a member, or has one of another type, is refused by its name', () => {
  const shape = object({ name: text, rows: integer });
  expect(shape({ name: 'new', rows: 7 }, 'plan')).toEqual({ name: 'new', rows: 7 });
  expect(() => shape({ name: 'bad', rows: 'many' }, 'plan')).toThrow(/plan\.rows/);
  expect(() => shape({ rows: 7 }, 'plan')).toThrow(/a member name/);
});
