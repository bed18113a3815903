import { expect, test } from 'vitest';
import {
  type DecidingMetric,
  evaluationMetrics,
  type SegmentEpoch,
  type SegmentSnapshot,
} from '../../../src/native/contract.ts';
import { metricNames } from '../../../src/spec/metrics.ts';
import type { Look } from '../../../src/supervisor/look.ts';
import { epochReportOf, inferenceProgressOf, progressOf } from '../../../src/work/progress.ts';

const msPerNs = 1e6;

type Metrics = Partial<Record<DecidingMetric, number>>;

function metricsBy(found: Metrics): readonly number[] {
  return evaluationMetrics.map((name) => found[name] ?? Number.NaN);
}

const job = { deviceNames: ['cpu:0'], decides: 'ACCURACY', negatives: '' } as const;

function epoch(index: number, startMs: number, endMs: number, evaluatedMs: number): SegmentEpoch {
  return {
    epoch: index,
    committed: true,
    startNs: startMs * msPerNs,
    endNs: endMs * msPerNs,
    batches: 2,
    steps: 2,
    retries: 0,
    seeds: 8,
    correct: 4,
    lossSum: 8,
    ledgerDigest: 'a',
    expectedLedgerDigest: 'a',
    finalVersion: 2,
    deviceBatches: [2],
    ...{ extractNs: 3e6, trainNs: 9e6, localityScale: 40, nextScale: null },
    evaluation: {
      metrics: metricsBy({ ACCURACY: 0.5, MICRO_F1: 0.5, MACRO_F1: 0.25 }),
      bestEpoch: 0,
      endNs: evaluatedMs * msPerNs,
    },
    test: null,
    complete: true,
    parametersSha256: 'p',
  };
}

function segmentSnapshot(evaluation: SegmentSnapshot['evaluation']): SegmentSnapshot {
  return {
    ...{ version: 15, committedBatches: 15, totalBatches: 30, epochsToTrain: 10, epoch: 5 },
    ...{ epochsCommitted: 5, complete: false, evaluation, queueDepth: 0, queueBytes: 0 },
    ...{ claimed: 0, taken: 0, numSlots: 4, largestRecordBytes: 1, reclaimed: 0 },
    ...{ standbyProfitNs: 0, aborted: null, executors: [] },
  };
}

test("an epoch's time leaves out the evaluation of the one before it", () => {
  const first = epoch(0, 1000, 3000, 9000);
  // The second epoch's first batch was claimed while the first epoch was evaluated.
  const second = epoch(1, 3001, 11_000, 17_000);
  expect(epochReportOf(first, null, job, []).durationMs).toBe(2000);
  expect(epochReportOf(second, first, job, []).durationMs).toBe(2000);
  const late = epoch(1, 9500, 11_000, 17_000);
  expect(epochReportOf(late, first, job, []).durationMs).toBe(1500);
});

test("a report says what an epoch's batches took, and how they were drawn", () => {
  const next = { scale: 48, before: 40, fixed: false };
  const adapting = { ...epoch(0, 1000, 3000, 9000), nextScale: next };
  const { work } = epochReportOf(adapting, null, job, []);
  expect(work).toEqual({ extractNs: 3e6, trainNs: 9e6, scale: 2.5, next });
});

test('a report has the metrics that its task has, the one that decides first', () => {
  const classified = epochReportOf(epoch(0, 1000, 3000, 9000), null, job, []);
  expect(classified.valMetrics).toEqual([
    { name: 'accuracy', value: 0.5 },
    { name: 'micro_f1', value: 0.5 },
    { name: 'macro_f1', value: 0.25 },
  ]);
  expect(classified.valAccuracy).toBe(0.5);
  const metrics = metricsBy({ MAE: 2, RMSE: 3 });
  const evaluation = { metrics, bestEpoch: 0, endNs: 9e9 };
  const regressed = { ...epoch(0, 1000, 3000, 9000), evaluation };
  const report = epochReportOf(regressed, null, { ...job, decides: 'MAE' }, []);
  expect(report.valMetrics.map(({ name }) => name)).toEqual(['mae', 'rmse']);
  expect(report.valAccuracy).toBe(null);
  const ranked = metricsBy({ MICRO_F1: 0.5, ROC_AUC: 0.75, AVERAGE_PRECISION: 0.25 });
  const byArea = { ...regressed, evaluation: { ...evaluation, metrics: ranked } };
  const labelled = epochReportOf(byArea, null, { ...job, decides: 'ROC_AUC' }, []);
  const names = labelled.valMetrics.map(({ name }) => name);
  expect(names).toEqual(['roc_auc', 'micro_f1', 'average_precision']);
  const found = metricsBy({ ROC_AUC: 0.9, MRR: 0.5, HITS_10: 0.75 });
  const ofLinks = { ...regressed, evaluation: { ...evaluation, metrics: found } };
  const linked = { ...job, decides: 'MRR', negatives: '1000' } as const;
  expect(epochReportOf(ofLinks, null, linked, []).valMetrics).toEqual([
    { name: 'mrr@1000', value: 0.5 },
    { name: 'roc_auc', value: 0.9 },
    { name: 'hits@10@1000', value: 0.75 },
  ]);
  const skipped = { ...epoch(0, 1000, 3000, 9000), evaluation: null };
  expect(epochReportOf(skipped, null, job, []).valMetrics).toEqual([]);
});

test('metrics are shown in the order of the native contract', () => {
  expect(evaluationMetrics.map((name) => name.toLowerCase())).toEqual(metricNames);
});

test('a ledger with a batch that was not committed once is no report', () => {
  const torn = { ...epoch(0, 0, 1, 2), ledgerDigest: 'b' };
  expect(() => epochReportOf(torn, null, job, [])).toThrow('not committed exactly once');
});

test('an evaluation that runs tells its rows, and its end at the rate of the last looks', () => {
  const look = (atMs: number, done: number | null) => ({
    atMs,
    snapshot: segmentSnapshot(
      done === null ? null : { kind: 'VALIDATION', epoch: 4, done, total: 1000 },
    ),
  });
  const crew = { deviceNames: ['cpu:0'], pids: new Map(), startedMs: 0 };
  const training = {
    ...{ epochs: 10, batchesPerEpoch: 3, startedBatches: 0 },
    ...{ current: epoch(4, 0, 1, 2), lastReport: null, valMetrics: [] },
  };
  const at = (before: Look | null, now: Look) =>
    progressOf({ ...crew, ...training, before, now }).evaluation;
  expect(at(look(0, null), look(1000, null))).toBe(null);
  const started = { kind: 'VALIDATION', epoch: 4, rowsDone: 200, rowsTotal: 1000 } as const;
  expect(at(null, look(1000, 200))).toEqual({ ...started, remainingMs: 0 });
  expect(at(look(0, null), look(1000, 200))).toEqual({ ...started, remainingMs: 4000 });
  expect(at(look(1000, 200), look(2000, 300))).toEqual({
    ...{ ...started, rowsDone: 300 },
    remainingMs: 7000,
  });
  // An inference has no batches: its time left is that of its rows.
  const inference = inferenceProgressOf({ ...crew, before: look(1000, 200), now: look(2000, 300) });
  expect(inference.evaluation).toMatchObject({ kind: 'PREDICTION', rowsDone: 300 });
  expect(inference).toMatchObject({ remainingMs: 7000, epochs: 0, batchesPerEpoch: 0 });
});
