import { describe, expect, test } from 'vitest';
import { makePlan, type PlanRequest } from '../../../src/scheduler/plan.ts';
import { noEvidence, reconsiderSplit } from '../../../src/scheduler/resplit.ts';
import { decide, initialState, planOf } from '../../../src/scheduler/scheduler.ts';
import { plainRequest } from './script-language.ts';

const request: PlanRequest = {
  devices: ['a', 'b', 'c', 'd', 'e'],
  policy: 'AUTO',
  fixedSamplers: 0,
  standby: 'AUTO',
  timings: { samplerBatchNs: 1_010_000_000, trainerBatchNs: 4_030_000_000, standbyBatchNs: 5e9 },
  standbyRoom: [],
  estimated: false,
};

describe('the plan', () => {
  test('gives the first devices to Samplers, the rest to Trainers, standby beside Samplers', () => {
    const plan = makePlan({ ...request, policy: 'PAPER' });
    expect(plan?.executors).toEqual([
      { role: 'SAMPLER', device: 'a' },
      { role: 'SAMPLER', device: 'b' },
      { role: 'TRAINER', device: 'c' },
      { role: 'TRAINER', device: 'd' },
      { role: 'TRAINER', device: 'e' },
      { role: 'STANDBY', device: 'a' },
      { role: 'STANDBY', device: 'b' },
    ]);
    expect(plan).toMatchObject({ samplers: 2, trainers: 3, policy: 'PAPER', standby: 'AUTO' });
  });

  test('says why in one sentence', () => {
    expect(makePlan(request)?.explanation).toBe(
      "1 Sampler and 4 Trainers, predicted 1010 ms per batch by MINMAX, faster than PAPER's " +
        '2 Samplers and 3 Trainers with 1340 ms; standby Trainers armed: they take batches when ' +
        'that empties the queue sooner',
    );
  });

  test('says when devices that do both in turn would be faster', () => {
    const timings = { samplerBatchNs: 20e6, trainerBatchNs: 30e6, standbyBatchNs: 20e6 };
    const sentence = makePlan({ ...request, devices: ['a', 'b'], timings })?.explanation;
    const fact = '; time sharing would be faster, predicted 20 ms per batch; it is not followed, ';
    const why = 'because every device has one role: ';
    const counted = 'only standby Trainers take turns with Samplers, which no time here counts';
    expect(sentence).toContain(`${fact}${why}${counted}`);
    const alone = makePlan({ ...request, devices: ['a', 'b'], timings, standby: 'OFF' });
    const off = 'standby Trainers, which take turns with Samplers, are off';
    expect(alone?.explanation).toContain(`${fact}${why}${off}`);
    const slower = makePlan({
      ...request,
      devices: ['a', 'b'],
      timings: { ...timings, standbyBatchNs: 50e6 },
    });
    expect(slower?.explanation).not.toContain('time sharing');
  });

  test('shows no times and says so before anything was measured', () => {
    const plan = makePlan({ ...request, timings: null, estimated: true });
    expect(plan).toMatchObject({ estimated: true, samplers: 3, k: 0, batchNs: 0 });
    expect(plan?.choices.every(({ batchNs }) => batchNs === 0)).toBe(true);
    expect(plan?.explanation).toContain('calibration has yet to measure');
  });

  test('survives JSON even where K is unbounded', () => {
    const timings = { samplerBatchNs: 0, trainerBatchNs: 1, standbyBatchNs: 1 };
    const plan = makePlan({ ...request, timings });
    expect(JSON.parse(JSON.stringify(plan))).toEqual(plan);
  });

  test('is null where only standby Trainers could train and they do not fit', () => {
    const standbyRoom = [{ device: 'a', freeBytes: 1, neededBytes: 2 }];
    expect(makePlan({ ...request, devices: ['a'], standbyRoom })).toBeNull();
  });

  test('is estimated for a job that waits, even for more devices than there are', () => {
    const devices = { kind: 'count', count: 3 } as const;
    const event = { kind: 'submitted', nowMs: 0, jobs: [{ ...plainRequest, devices }] } as const;
    const { state } = decide(initialState, event);
    expect(planOf(state, 'job')).toMatchObject({ estimated: true, samplers: 2, trainers: 1 });
    expect(planOf(state, 'nobody')).toBeNull();
  });
});

describe('reconsidering the split', () => {
  const plan = makePlan(request);
  if (plan === null) throw new Error('the plan of five devices is feasible');
  const timings = (samplerBatchNs: number, trainerBatchNs: number) => ({
    samplerBatchNs,
    trainerBatchNs,
    standbyBatchNs: trainerBatchNs,
  });
  const evidence = { plan, policy: 'AUTO', epoch: 1 } as const;
  const clearlyBetter = { ...evidence, timings: timings(120, 160) };

  test('recommends another split only when two epochs agree on it', () => {
    const once = reconsiderSplit(noEvidence, clearlyBetter);
    expect(once.recommendation).toBeNull();
    const twice = reconsiderSplit(once, { ...clearlyBetter, epoch: 2 });
    expect(twice.recommendation).toEqual({
      samplers: 2,
      trainers: 3,
      batchNs: 60,
      presentBatchNs: 120,
      sinceEpoch: 2,
    });
  });

  test('keeps a recommendation that has become less clear, and drops it when hardly so', () => {
    const once = reconsiderSplit(noEvidence, clearlyBetter);
    const twice = reconsiderSplit(once, { ...clearlyBetter, epoch: 2 });
    // 107 against 100 for 2 + 3: less than it takes to recommend, enough to remain so.
    const lessClear = { ...evidence, epoch: 3, timings: timings(107, 300) };
    const kept = reconsiderSplit(twice, lessClear);
    expect(kept.recommendation).toMatchObject({ samplers: 2, sinceEpoch: 2 });
    expect(reconsiderSplit(noEvidence, lessClear)).toEqual(noEvidence);
    const hardly = { ...evidence, epoch: 4, timings: timings(104, 300) };
    expect(reconsiderSplit(kept, hardly)).toEqual(noEvidence);
  });

  test('never questions a split that the job fixed', () => {
    const once = reconsiderSplit(noEvidence, { ...clearlyBetter, policy: 'FIXED' });
    expect(once).toEqual(noEvidence);
  });
});
