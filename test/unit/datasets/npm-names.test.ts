import { expect, test } from 'vitest';
import {
  classNamesOf,
  featuresOf,
  hashText,
  labelOf,
  npmFeatureColumns,
  splitOf,
  tokensOf,
} from '../../../src/datasets/npm-names.ts';

test('the hash has the values of the recipe', () => {
  expect(hashText('')).toBe(0xab3e7c0b);
  expect(hashText('^re')).toBe(0x4e9fe513);
  expect(hashText('split:gulp-sass')).toBe(0x175bb9a9);
});

test('tokens are lower-case and split at runs of - and _ only', () => {
  expect(tokensOf('GULP--Sass_')).toEqual(['gulp', 'sass']);
  expect(tokensOf(' a.b/c 1')).toEqual([' a.b/c 1']);
  expect(tokensOf('_-')).toEqual([]);
});

test('classes are the most frequent first tokens, ties by token, some words excepted', () => {
  const names = ['b-1', 'b-2', 'c-1', 'a_1', 'node-x', 'is-y', 'z', 'js-a', '-q-r'];
  expect(classNamesOf(names)).toEqual(['b', 'a', 'c', 'q']);
  const many = Array.from({ length: 60 }, (_, i) => `t${String(i).padStart(2, '0')}-x`);
  expect(classNamesOf(many)).toHaveLength(44);
  expect(classNamesOf(many).at(-1)).toBe('t43');
});

test('a name of one token has no label', () => {
  const classes = new Map([['gulp', 3]]);
  expect(labelOf('gulp-sass', classes)).toBe(3);
  expect(labelOf('GULP_x', classes)).toBe(3);
  expect(labelOf('gulp', classes)).toBe(-1);
  expect(labelOf('sass-gulp', classes)).toBe(-1);
});

test('the split follows from the name as it is', () => {
  // 0x175bb9a9 mod 100 = 73.
  expect(splitOf('gulp-sass')).toBe('val');
  const names = Array.from({ length: 1000 }, (_, i) => `name-${i}`);
  const train = names.filter((name) => splitOf(name) === 'train').length;
  expect(train).toBeGreaterThan(500);
  expect(train).toBeLessThan(700);
});

test('features are signed 3-gram counts of what is left without class tokens', () => {
  // 'dom': H('^do') = 0xcaad743d, H('dom') = 0xfc3c34bd, H('om$') = 0xa8954e92: columns 61, 61
  // and 18, all with bit 31 set. (-2, -1) / sqrt(5).
  const rows = featuresOf(['react-dom', 'react', 'x'], ['react', 'gulp']);
  expect(rows).toHaveLength(3 * npmFeatureColumns);
  const nonZero = (row: number) =>
    [...rows.subarray(row * npmFeatureColumns, (row + 1) * npmFeatureColumns).entries()].filter(
      ([, value]) => value !== 0,
    );
  expect(nonZero(0)).toEqual([
    [18, Math.fround(-1 / Math.sqrt(5))],
    [61, Math.fround(-2 / Math.sqrt(5))],
  ]);
  expect(nonZero(1)).toEqual([]);
  expect(nonZero(2)).toHaveLength(1);
});
