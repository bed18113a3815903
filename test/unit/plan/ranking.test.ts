import { expect, test } from 'vitest';
import type { DatasetCounts } from '../../../src/native/contract.ts';
import { rankedOf } from '../../../src/plan/ranking.ts';
import type { DecidingMetric } from '../../../src/spec/metrics.ts';
import { someSpec } from '../store/job-values.ts';

/** What evaluations keep to rank nodes by. */

const counts = { task: 'CLASSIFICATION', val: 300, test: 500 } as DatasetCounts;

function ranked(change: Partial<DatasetCounts>, metric: DecidingMetric | 'AUTO' = 'AUTO') {
  const spec = { ...someSpec, evaluation: { ...someSpec.evaluation, metric } };
  return rankedOf(spec, { ...counts, ...change });
}

test('labels are ranked, and two classes; more classes where that decides', () => {
  const labels = { task: 'MULTI_LABEL', numClasses: 112 } as const;
  expect(ranked(labels)).toEqual({ rankedColumns: 112, rankedNodes: 500, bytes: 5 * 112 * 500 });
  expect(ranked({ numClasses: 2 }).rankedColumns).toBe(1);
  expect(ranked({ numClasses: 7 }).rankedColumns).toBe(0);
  expect(ranked({ numClasses: 7 }, 'MACRO_F1').rankedColumns).toBe(0);
  expect(ranked({ numClasses: 7 }, 'ROC_AUC').rankedColumns).toBe(7);
  expect(ranked({ numClasses: 7 }, 'AVERAGE_PRECISION').rankedColumns).toBe(7);
  expect(ranked({ task: 'REGRESSION', numClasses: 2 }).rankedColumns).toBe(0);
});

test('nobody who did not ask pays a gibibyte for it', () => {
  const many = { task: 'MULTI_LABEL', numClasses: 100 } as const;
  const fits = Math.floor(2 ** 30 / 500);
  expect(ranked({ ...many, val: fits }).rankedColumns).toBe(100);
  expect(ranked({ ...many, val: fits + 1 }).rankedColumns).toBe(0);
  expect(ranked({ ...many, val: fits + 1 }, 'ROC_AUC').rankedColumns).toBe(100);
  expect(ranked({ ...many, val: 0, test: 0 }).rankedColumns).toBe(0);
});
