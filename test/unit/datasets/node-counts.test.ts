import { expect, test } from 'vitest';
import { nodeCountProblems } from '../../../src/datasets/node-counts.ts';

const array = (path: string, rows: number) => ({ path, rows, isIndptr: path === 'indptr' });

test('one array of another length is one problem, whichever it is', () => {
  const right = [array('x', 10), array('y', 10), array('train', 10), array('indptr', 11)];
  expect(nodeCountProblems(right)).toEqual([]);
  expect(nodeCountProblems([array('val', 9), ...right])).toEqual([
    { path: 'val', description: 'has 9 rows, expected 10, as x, y, train and 1 more have it' },
  ]);
  const [x, y, train] = [array('x', 10), array('y', 10), array('train', 10)];
  expect(nodeCountProblems([array('indptr', 10), x, y, train])).toEqual([
    {
      path: 'indptr',
      description: 'has 10 rows, expected 11 (one more than nodes), as x, y and train have it',
    },
  ]);
});

test('arrays of which none has more on its side are one problem together', () => {
  expect(nodeCountProblems([array('x', 10), array('y', 9)])).toEqual([
    { path: 'x', description: 'has 10 rows and y 9: which is right? Expected one a node' },
  ]);
  const four = [array('x', 10), array('train', 10), array('y', 9), array('indptr', 10)];
  expect(nodeCountProblems(four)).toHaveLength(1);
});
