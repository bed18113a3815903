import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { columnsProblem, featureNamesOf } from '../../../src/datasets/feature-names.ts';
import { folderOf, makeFolder } from './workbench.ts';

test('a model takes the columns that it was trained on, in their order', () => {
  expect(columnsProblem(['a', 'b', 'c'], ['a', 'b', 'c'])).toBeNull();
});

test.each([
  [['b', 'a', 'c'], /another order: column 0 is 'b' here and 'a' in the model.*'a', 'b', 'c'/],
  [['a', 'b'], /^lacks the columns 'c' of the model: import it with/],
  [['a', 'b', 'c', 'd'], /^has 'd', which the model does not take/],
  [['a', 'x', 'c'], /^lacks the columns 'b' of the model and has 'x', which the model does not/],
])('columns %j are refused by name', (names, problem) => {
  expect(columnsProblem(['a', 'b', 'c'], names)).toMatch(problem);
});

test('of many names that differ some are listed', () => {
  const many = Array.from({ length: 1000 }, (_, at) => `c${at}`);
  const problem = columnsProblem(many, ['other']);
  expect(problem).toContain("'c0', 'c1', 'c2', 'c3', 'c4' and 995 more");
  expect(problem?.length).toBeLessThan(300);
});

test('names come from import.json; where they are not there, nobody knows them', () => {
  const story = (value: unknown) => folderOf({ 'import.json': JSON.stringify(value) });
  expect(featureNamesOf(story({ feature_names: ['a', 'b'] }))).toEqual(['a', 'b']);
  for (const value of [{}, null, 3, { feature_names: 'a' }, { feature_names: [1] }]) {
    expect(featureNamesOf(story(value))).toBeNull();
  }
  expect(featureNamesOf(makeFolder())).toBeNull();
  const broken = makeFolder();
  writeFileSync(join(broken, 'import.json'), '{');
  expect(featureNamesOf(broken)).toBeNull();
});
