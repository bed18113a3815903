import { expect, test } from 'vitest';
import type { SegmentEpoch } from '../../../src/native/contract.ts';
import { epochReportOf } from '../../../src/supervisor/progress.ts';

const msPerNs = 1e6;

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
    evaluation: {
      valNodes: 10,
      valCorrect: 5,
      bestEpoch: 0,
      endNs: evaluatedMs * msPerNs,
    },
    test: null,
    complete: true,
    parametersSha256: 'p',
  };
}

test("an epoch's time leaves out the evaluation of the one before it", () => {
  const first = epoch(0, 1000, 3000, 9000);
  // Its first batch was claimed while the first epoch was evaluated.
  const second = epoch(1, 3001, 11_000, 17_000);
  expect(epochReportOf(first, null, ['cpu:0'], []).durationMs).toBe(2000);
  expect(epochReportOf(second, first, ['cpu:0'], []).durationMs).toBe(2000);
  const late = epoch(1, 9500, 11_000, 17_000);
  expect(epochReportOf(late, first, ['cpu:0'], []).durationMs).toBe(1500);
});

test('a ledger with a batch that was not committed once is no report', () => {
  const torn = { ...epoch(0, 0, 1, 2), ledgerDigest: 'b' };
  expect(() => epochReportOf(torn, null, ['cpu:0'], [])).toThrow('not committed exactly once');
});
