import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { EpochReportSchema } from '../../../src/api/gen/gnnd/v1/epoch_report_pb.ts';
import { JobSchema } from '../../../src/api/gen/gnnd/v1/job_pb.ts';
import { cellOf, historyCharts, sumsOf } from '../../../src/cli/commands/history.ts';
import { epochColumnsOf } from '../../../src/cli/show/job-view.ts';
import { svgOf } from '../../../src/cli/show/svg.ts';

const job = (testAccuracyBest: number, times: object, last: object = times) =>
  create(JobSchema, {
    result: { testAccuracyBest },
    epochs: [{ executorTimes: [times] }, { executorTimes: [last] }],
  });

test('a cell has what was saved, found and taken, over all jobs and epochs', () => {
  const plain = sumsOf([job(0.7, { readRows: 1000n, extractNs: 40n, trainNs: 60n })]);
  const kept = {
    ...{ cachedRows: 100n, readRows: 300n, prunedRows: 600n },
    ...{ historyLookups: 50n, historyHits: 20n },
    ...{ historyCompared: 8n, historySimilar: 6n, historyCosine: 7, historyLag: 80n },
    ...{ pruneNs: 2n, historyNs: 4n, extractNs: 20n, trainNs: 58n },
  };
  // What a cache has given up is a state, and the caches of an epoch may be one.
  const later = { ...kept, cacheBorder: 60n, cacheGivenUpRows: 40n };
  const sums = sumsOf([
    job(0.6, { ...kept, cacheBorder: 90n, cacheGivenUpRows: 10n }, later),
    job(0.8, kept),
  ]);
  const setting = { gradientShare: 0.9, staleSteps: 10 };
  const cell = cellOf(setting, sums, plain);
  expect(cell).toMatchObject({ ...setting, wantedRows: 4000, saving: 0.7, hitRate: 0.4 });
  expect(cell).toMatchObject({ cosine: 7 / 8, similarShare: 0.75, lagSteps: 10, givenUpRows: 20 });
  expect(cell.test.name).toBe('accuracy');
  expect(cell.test.value).toBeCloseTo(0.7);
  expect(cell.pruneShare).toBeCloseTo(2 / 80);
  expect(cell.updateShare).toBeCloseTo(4 / 80);
});

test('what decides is called by its name', () => {
  const ended = create(JobSchema, { result: { testMetricsBest: [{ name: 'mae', value: 2.5 }] } });
  expect(sumsOf([ended, ended]).test).toEqual({ name: 'mae', value: 2.5 });
});

test('a job without a cache and without history saves nothing, and has nothing to find', () => {
  const sums = sumsOf([job(0.7, { readRows: 5n, trainNs: 10n })]);
  expect(cellOf({ gradientShare: 0, staleSteps: 0 }, sums, sums)).toMatchObject({
    ...{ saving: 0, hitRate: 0, stepRatio: 1, cosine: null, similarShare: null, lagSteps: null },
  });
});

test('epochs have a column for the border where embeddings took cached rows', () => {
  const caches = (...borders: readonly (readonly [bigint, bigint])[]) =>
    create(EpochReportSchema, {
      executorTimes: [
        {},
        ...borders.map(([cacheBorder, cacheGivenUpRows]) => ({ cacheBorder, cacheGivenUpRows })),
      ],
    });
  const shownOf = (...epochs: readonly ReturnType<typeof caches>[]) => {
    const columns = epochColumnsOf(epochs).filter(({ title }) => /BORDER|GIVEN/.test(title));
    return epochs.map((epoch) => columns.map(({ shown }) => shown(epoch)));
  };
  expect(shownOf(caches([1200n, 0n]))).toEqual([[]]);
  expect(shownOf(caches([1200n, 0n]), caches([100n, 1100n], [0n, 1200n]), caches())).toEqual([
    ['1,200', '0'],
    ['0', '1,200'],
    ['', '0'],
  ]);
});

test('charts have a line for each share over the ages, and a level one without history', () => {
  const cell = (
    gradientShare: number,
    staleSteps: number,
    saving: number,
    metric = 'accuracy',
  ) => ({
    ...{ gradientShare, staleSteps, saving, wantedRows: 1, hitRate: 0 },
    test: { name: metric, value: 0.7 },
    ...{ pruneShare: 0, updateShare: 0, stepRatio: 1, givenUpRows: 0 },
    ...{ cosine: null, similarShare: null, lagSteps: null },
  });
  const cells = [cell(0, 0, 0), cell(0.9, 10, 0.2), cell(0.9, 50, 0.4), cell(1, 10, 0.3)];
  const [saving, accuracy] = historyCharts('cora', cells);
  expect(saving).toMatchObject({
    series: [
      {
        name: 'without history',
        points: [
          { x: 10, y: 0 },
          { x: 50, y: 0 },
        ],
      },
      {
        name: 'p_grad 0.9',
        points: [
          { x: 10, y: 20 },
          { x: 50, y: 40 },
        ],
      },
      { name: 'p_grad 1', points: [{ x: 10, y: 30 }] },
    ],
  });
  expect(accuracy).toMatchObject({ title: 'cora: test accuracy', yRange: { low: 70, high: 75 } });
  // The axis is in percent.
  expect(historyCharts('cora', [cell(0, 0, 0, 'mae')])).toHaveLength(1);
  const drawn = svgOf(historyCharts('cora', cells));
  expect(drawn).toContain('t_stale, in steps');
  expect(drawn).toContain('>50<');
});
