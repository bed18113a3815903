import { expect, test } from 'vitest';
import { reportOf } from '../../../src/spec/job-report.ts';
import {
  type Cell,
  type ClassReport,
  cellAfter,
  cellAt,
  cellText,
  gridOf,
  shareAt,
  sideOf,
} from '../../../src/web/confusion.ts';

/** The picture of a matrix of confusion has all classes, and says what is in each cell. */

const array = (values: readonly number[]) => ({ shape: [values.length], values });

const report = reportOf({
  ...{ task: 'CLASSIFICATION', width: 3, names: ['cat', 'dog', 'eel'] },
  labels: array([0, 0, 0, 1]),
  predictions: array([0, 0, 1, 1]),
}) as ClassReport;

test.each([
  [2, 300],
  [12, 640],
  [31, 360],
  [400, 1200],
  [1000, 320],
])('%s classes in %s pixels: the corners are the first and the last class', (classes, width) => {
  const grid = gridOf(width, classes, 20);
  const side = sideOf(grid);
  expect(side).toBeLessThanOrEqual(width);
  expect(cellAt(grid, grid.margin + 0.01, grid.margin + 0.01)).toEqual({ known: 0, predicted: 0 });
  expect(cellAt(grid, side - 0.01, grid.margin + 0.01)).toEqual({
    known: 0,
    predicted: classes - 1,
  });
  expect(cellAt(grid, side + 1, side + 1)).toBeNull();
  expect(cellAt(grid, grid.margin - 1, side - 1)).toBeNull();
});

test('names have room where there are few classes, and every cell has a pixel of 400', () => {
  expect(gridOf(640, 7, 20).margin).toBeGreaterThan(80);
  expect(gridOf(640, 7, 1).margin).toBeLessThan(30);
  expect(gridOf(640, 400, 20)).toEqual({ margin: 0, cell: 1, classes: 400 });
  expect(gridOf(900, 400, 20)).toEqual({ margin: 0, cell: 2, classes: 400 });
});

test('a cell is told in words', () => {
  expect(cellText(report, { known: 0, predicted: 1 })).toBe(
    '1 of 3 nodes of cat (33.3\u00a0%) are said to be dog',
  );
  expect(shareAt(report, { known: 2, predicted: 0 })).toBe(0);
});

test('keys lead from cell to cell and never out', () => {
  const from: Cell = { known: 0, predicted: 1 };
  expect(cellAfter('ArrowLeft', from, 3)).toEqual({ known: 0, predicted: 0 });
  expect(cellAfter('ArrowUp', from, 3)).toEqual(from);
  expect(cellAfter('ArrowDown', from, 3)).toEqual({ known: 1, predicted: 1 });
  expect(cellAfter('PageDown', from, 3)).toEqual({ known: 2, predicted: 1 });
  expect(cellAfter('End', from, 3)).toEqual({ known: 2, predicted: 2 });
  expect(cellAfter('x', from, 3)).toBeNull();
});
