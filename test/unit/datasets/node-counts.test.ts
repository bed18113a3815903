import { expect, test } from 'vitest';
import { nodeCountProblems } from '../../../src/datasets/node-counts.ts';
import {
  bool,
  folderOf,
  int32,
  linesOf,
  npy,
  pathGraph,
  trustingValidator,
  tryImport,
} from './workbench.ts';

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

test('labels that are cut short are one problem, and not one of every other array', async () => {
  const { 'indptr.npy': _, 'indices.npy': __, ...nodes } = pathGraph;
  const source = folderOf({
    ...nodes,
    'edge_index.npy': npy('int64', [2, 2], BigInt64Array.of(0n, 1n, 2n, 2n)),
    'labels.npy': int32(0, 1),
    'train.npy': bool(true, false, false),
    'val.npy': bool(false, true, false),
  });
  expect(await linesOf('NPY', source)).toEqual([
    'labels.npy: has 2 rows, expected 3, as features.npy, train.npy and val.npy have it',
  ]);
});

test('what is wrong with elements is told of the arrays as they are called', async () => {
  const { 'features.npy': x, 'train.npy': train, ...others } = pathGraph;
  const source = folderOf({ ...others, 'x.npy': x, 'train_idx.npy': train });
  const checked = {
    ...trustingValidator(),
    datasetValidate: async () => ({
      problems: [
        { path: 'features.npy', description: 'must be finite' },
        { path: 'val.npy', description: 'must share no node with train.npy' },
      ],
      problemCount: 2,
    }),
  };
  await expect(tryImport('NPY', source, { native: checked })).rejects.toMatchObject({
    problems: [
      { path: 'x.npy', description: 'must be finite' },
      { path: 'val.npy', description: 'must share no node with train_idx.npy' },
    ],
  });
});
