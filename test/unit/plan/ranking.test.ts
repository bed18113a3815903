import { expect, test } from 'vitest';
import type { DatasetCounts } from '../../../src/native/contract.ts';
import { chunkCountsOf, rankedBytesOf } from '../../../src/plan/ranking.ts';
import type { DecidingMetric } from '../../../src/spec/metrics.ts';
import { someSpec } from '../store/job-values.ts';

/** What evaluations keep to rank nodes by. */

const counts = { task: 'CLASSIFICATION', val: 300, test: 500 } as DatasetCounts;

function ranked(change: Partial<DatasetCounts>, metric: DecidingMetric | 'AUTO' = 'AUTO') {
  const spec = { ...someSpec, evaluation: { ...someSpec.evaluation, metric } };
  return rankedBytesOf(spec, { ...counts, ...change });
}

test('labels are ranked, and two classes; more classes where that decides', () => {
  const labels = { task: 'MULTI_LABEL', numClasses: 112 } as const;
  expect(ranked(labels)).toBe(112 * (16 + 5 * 500));
  expect(ranked({ numClasses: 2 })).toBe(16 + 5 * 500);
  expect(ranked({ numClasses: 7 })).toBe(0);
  expect(ranked({ numClasses: 7 }, 'MACRO_F1')).toBe(0);
  expect(ranked({ numClasses: 7 }, 'ROC_AUC')).toBe(7 * (16 + 5 * 500));
  expect(ranked({ numClasses: 7 }, 'AVERAGE_PRECISION')).toBe(7 * (16 + 5 * 500));
  expect(ranked({ task: 'REGRESSION', numClasses: 2 })).toBe(0);
});

test('nobody who did not ask pays a gibibyte for it', () => {
  const many = { task: 'MULTI_LABEL', numClasses: 100 } as const;
  const fits = Math.floor(2 ** 30 / 500);
  expect(ranked({ ...many, val: fits })).toBeGreaterThan(5 * 100 * fits);
  expect(ranked({ ...many, val: fits + 1 })).toBe(0);
  expect(ranked({ ...many, val: fits + 1 }, 'ROC_AUC')).toBeGreaterThan(5 * 100 * fits);
  expect(ranked({ ...many, val: 0, test: 0 })).toBe(0);
});

test('a chunk counts three integers for each class or label, and none for numbers', () => {
  const sized = (task: DatasetCounts['task']) => chunkCountsOf({ ...counts, task, numClasses: 7 });
  expect(sized('CLASSIFICATION')).toBe(21);
  expect(sized('MULTI_LABEL')).toBe(21);
  expect(sized('REGRESSION')).toBe(0);
});
