import { describe, expect, test } from 'vitest';
import { labelsOfSplit } from '../../../src/artifacts/export-labels.ts';
import { Session } from '../../../src/cli/session/session.ts';
import { reportText } from '../../../src/cli/show/job-report.ts';
import { type Compared, reportOf } from '../../../src/spec/job-report.ts';
import { arrayOf } from '../../../src/spec/npy-array.ts';
import { folderOf, int64, npy } from '../datasets/workbench.ts';
import { createTestIo } from './test-io.ts';

const session = new Session(createTestIo().io, { headers: true, color: 'never' });
const array = (values: readonly number[]) => ({ shape: [values.length], values });

/** Of seven nodes the class of one is not known. */
const classes: Compared = {
  ...{ task: 'CLASSIFICATION', width: 3, names: ['cat', 'dog', 'eel'] },
  labels: array([0, 0, 0, 1, 1, 2, -1]),
  predictions: array([0, 0, 1, 1, 1, 0, 2]),
};

describe('a report', () => {
  test('has shares of each class, and who is taken for whom', () => {
    const report = reportOf(classes);
    expect(report).toMatchObject({
      accuracy: 4 / 6,
      classes: [
        { name: 'cat', precision: 2 / 3, recall: 2 / 3, support: 3 },
        { name: 'dog', precision: 2 / 3, recall: 1, f1: 0.8, support: 2 },
        { name: 'eel', precision: 0, recall: 0, f1: 0, support: 1 },
      ],
      confusion: [
        [2, 1, 0],
        [0, 2, 0],
        [1, 0, 0],
      ],
    });
    expect(reportText(session, report).split('\n')).toEqual([
      'CLASS     PRECISION  RECALL      F1  NODES',
      'cat          0.6667  0.6667  0.6667      3',
      'dog          0.6667  1.0000  0.8000      2',
      'eel          0.0000  0.0000  0.0000      1',
      'mean         0.4444  0.5556  0.4889      6',
      'by nodes     0.5556  0.6667  0.6000      6',
      '',
      'accuracy 0.6667',
      '',
      'CLASS \\ PREDICTED  cat  dog  eel',
      'cat                  2    1    0',
      'dog                  0    2    0',
      'eel                  1    0    0',
    ]);
  });

  test('of many classes names the pairs that are mixed up most', () => {
    const report = reportOf({ ...classes, width: 20, names: null });
    expect(reportText(session, report).split('\n').slice(-3)).toEqual([
      'MOST MIXED UP  PREDICTED  NODES',
      '0              1              1',
      '2              0              1',
    ]);
  });

  test('of several labels leaves out those that are not known', () => {
    const [labels, predictions] = [array([1, 0, 1, 255, 0, 1]), array([1, 1, 0, 1, 0, 1])];
    const report = reportOf({ task: 'MULTI_LABEL', width: 2, names: null, labels, predictions });
    expect(report).toEqual({
      task: 'MULTI_LABEL',
      labels: [
        { name: '0', precision: 1, recall: 1 / 2, f1: 2 / 3, support: 2 },
        { name: '1', precision: 1 / 2, recall: 1, f1: 2 / 3, support: 1 },
      ],
    });
  });

  test('of numbers has the errors of each target', () => {
    const [labels, predictions] = [array([1, 5, 2, Number.NaN]), array([2, 5, 5, 7])];
    const names = ['a', 'b'];
    const report = reportOf({ task: 'REGRESSION', width: 2, names, labels, predictions });
    expect(report).toEqual({
      task: 'REGRESSION',
      targets: [
        { name: 'a', mae: 2, rmse: Math.sqrt(5), support: 2 },
        { name: 'b', mae: 0, rmse: 0, support: 1 },
      ],
    });
    expect(reportText(session, report)).toMatch(/TARGET +MAE +RMSE +NODES\na +2\.000 +2\.236 +2/);
  });
});

describe('labels of a split', () => {
  test('are rows of the dataset, by ascending nodes, also across blocks', async () => {
    const [rows, columns] = [50_000, 50];
    const labels = Uint8Array.from({ length: rows * columns }, (_, at) => (at * 7) % 251);
    const nodes = [49_999, 0, 20_971, 20_972, 41_943];
    const folder = folderOf({
      'labels.npy': npy('uint8', [rows, columns], labels),
      'test.npy': int64(...nodes),
    });
    const found = arrayOf(await labelsOfSplit({ folder, split: 'test' }));
    expect(found.shape).toEqual([5, columns]);
    const wanted = nodes.toSorted((a, b) => a - b);
    const expected = wanted.flatMap((node) => [
      ...labels.subarray(node * columns, (node + 1) * columns),
    ]);
    expect(Array.from(found.values)).toEqual(expected);
  });
});

test('arrays are read wherever in memory their file lies', () => {
  const file = npy('int32', [3], Int32Array.of(-1, 2, 3));
  const moved = Buffer.concat([Buffer.of(0), file]).subarray(1);
  expect(Array.from(arrayOf(moved).values)).toEqual([-1, 2, 3]);
  expect(Array.from(arrayOf(int64(7, -8)).values)).toEqual([7, -8]);
  expect(() => arrayOf(npy('float64', [1], Float64Array.of(1)))).toThrow(/type '<f8', expected/);
});
