import { expect, test } from 'vitest';
import { isHistoryWarm } from '../../../src/plan/history.ts';

const history = { startStep: 20, staleSteps: 6, gradientShare: 0.9, levels: [1], maxBytes: 1 };

function warmAfter(changes: Partial<typeof history>, steps: number): boolean {
  const spec = { kind: 'TRAINING', history: { ...history, ...changes } } as const;
  return isHistoryWarm(spec, { steps, stepsPerEpoch: 34 });
}

test('batches tell of the split once history holds as many steps as it ever will', () => {
  expect([25, 26].map((steps) => warmAfter({}, steps))).toEqual([false, true]);
  // Whatever is never too old is there after an epoch.
  expect([53, 54].map((steps) => warmAfter({ staleSteps: 9000 }, steps))).toEqual([false, true]);
});

test('a job without history is always warm', () => {
  expect(warmAfter({ staleSteps: 0 }, 0)).toBe(true);
  expect(warmAfter({ gradientShare: 0 }, 0)).toBe(true);
});
