import { expect, test } from 'vitest';
import type { JobPlan, PlanMeasurement } from '../../../src/records/job-record.ts';
import { surpriseOf } from '../../../src/records/plan-surprise.ts';
import { jobPlan } from '../store/job-values.ts';

const way = jobPlan().ways[0];

function planOf(batchMs: number, change: Partial<JobPlan> = {}): JobPlan {
  if (way === undefined) throw new Error('the plan follows no way');
  const times = { samplerBatchNs: 1e6, trainerBatchNs: 2e6, standbyBatchNs: 0 };
  const ways = [{ ...way, batchNs: batchMs * 1e6 }];
  return { ...jobPlan(), estimated: false, ...times, ways, ...change };
}

function measured(batchMs: number, change: Partial<PlanMeasurement> = {}): PlanMeasurement {
  const times = { samplerBatchNs: 1e6, trainerBatchNs: 2e6, standbyBatchNs: 0 };
  return { epochs: 4, epochNs: 5e9, batchNs: batchMs * 1e6, ...times, ...change };
}

test('what takes 35 times as long is told, with what was predicted and what is slow', () => {
  const text = surpriseOf(planOf(2), measured(70, { trainerBatchNs: 60e6 }));
  expect(text).toContain('35 times as long as predicted: 70 ms in the median of 4 epochs');
  expect(text).toContain('not 2 ms, which follows from trial batches');
  expect(text).toContain('Trainers take 60 ms a batch, 2 ms in the trial');
  expect(text).not.toContain('Samplers take');
});

test('where executors are as fast as they were, they wait', () => {
  expect(surpriseOf(planOf(2), measured(70))).toContain('they wait, for steps in their order');
});

test('what is far shorter is told, too', () => {
  expect(surpriseOf(planOf(50), measured(5))).toContain('takes 10 % as long as predicted');
});

test.each([
  ['near what was predicted', planOf(2), measured(3.9)],
  ['over in a moment', planOf(2), measured(70, { epochs: 1, epochNs: 9e8 })],
  ['a guess', planOf(2, { estimated: true }), measured(70)],
  ['without a prediction', planOf(2, { ways: [] }), measured(70)],
  ['not measured', planOf(2), null],
])('nothing is said of what is %s', (_, plan, found) => {
  expect(surpriseOf(plan, found)).toBeNull();
});
