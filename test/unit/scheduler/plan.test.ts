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
  timings: {
    samplerBatchNs: 1_010_000_000,
    trainerBatchNs: 4_030_000_000,
    standbyBatchNs: 5e9,
    parts: null,
  },
  steps: { batchesPerStep: 1, staleness: 7 },
  epoch: null,
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

  test.each([2, 3, 4, 8])('uses %i devices with as many batches a step', (count) => {
    const devices = Array.from({ length: count }, (_, index) => `sim:${index}`);
    const standbyRoom = devices.map((device) => ({ device, freeBytes: 2, neededBytes: 1 }));
    const epoch = { batches: 200, slots: 16 };
    for (const k of [1, 3, 5, 10, 20]) {
      const trainNs = 1e9 * k;
      const parts = {
        ...{ extractNs: 2e8 * k, trainNs: 8e8 * k, applyNs: 1e8 },
        ...{ standbyExtractNs: 2e8 * k, standbyTrainNs: 8e8 * k },
        prefetch: true,
      };
      const timings = {
        ...{ samplerBatchNs: 1e9, trainerBatchNs: trainNs, standbyBatchNs: trainNs },
        parts,
      };
      const batchNs = (batchesPerStep: number) => {
        const steps = { batchesPerStep, staleness: 0 };
        return makePlan({ ...request, devices, timings, steps, epoch, standbyRoom })?.batchNs ?? 0;
      };
      expect(batchNs(count)).toBeLessThanOrEqual(batchNs(count - 1));
      // From K = 3 on, most of what so many devices could.
      if (k >= 3) expect(batchNs(1) / batchNs(count)).toBeGreaterThan(0.65 * count);
    }
  });

  test('says why in one sentence', () => {
    const sentence = [
      '1 Sampler and 4 Trainers, predicted 1010 ms per batch, as fast as they sample, by MINMAX,',
      "faster than PAPER's 2 Samplers and 3 Trainers with 1050 ms;",
      'standby Trainers armed: they take batches when that empties the queue sooner;',
      'predicted of others: the split without switching 1010 ms, time sharing 1200 ms',
    ];
    expect(makePlan(request)?.explanation).toBe(sentence.join(' '));
  });

  test('shares all devices where that is clearly faster, and says what others would take', () => {
    const timings = {
      samplerBatchNs: 30e6,
      trainerBatchNs: 10e6,
      standbyBatchNs: 10e6,
      parts: null,
    };
    const plan = makePlan({ ...request, devices: ['a', 'b'], timings });
    expect(plan).toMatchObject({ samplers: 2, trainers: 0, policy: 'AUTO', standby: 'AUTO' });
    expect(plan?.executors.map(({ role, device }) => `${role} ${device}`)).toEqual([
      ...['SAMPLER a', 'SAMPLER b', 'STANDBY a', 'STANDBY b'],
    ]);
    expect(plan?.ways.map(({ way, batchNs }) => [way, batchNs / 1e6])).toEqual([
      ['SHARING', 20],
      ['SWITCHING', 30],
      ['SPLIT', 30],
    ]);
    expect(plan?.explanation).toContain(
      'each of 2 devices alternates between sampling and training',
    );
    expect(plan?.explanation).toContain('the split with switching 30 ms');
    const alone = makePlan({ ...request, devices: ['a', 'b'], timings, standby: 'OFF' });
    expect(alone).toMatchObject({
      samplers: 1,
      trainers: 1,
      standby: 'OFF',
      timeSharingBatchNs: 0,
    });
  });

  test('starts no standby Trainers that would only slow steps down, and says so', () => {
    const timings = {
      samplerBatchNs: 1e6,
      trainerBatchNs: 10e6,
      standbyBatchNs: 40e6,
      parts: null,
    };
    const steps = { batchesPerStep: 1, staleness: 0 };
    const plan = makePlan({ ...request, devices: ['a', 'b'], timings, steps });
    expect(plan?.executors.map(({ role }) => role)).toEqual(['SAMPLER', 'TRAINER']);
    expect(plan?.explanation).toContain(
      'no standby Trainers: a batch takes 23.5 ms with them, not 10 ms',
    );
  });

  test('says how many batches are computed at once where that is the limit', () => {
    const timings = { samplerBatchNs: 1e6, trainerBatchNs: 9e6, standbyBatchNs: 9e6, parts: null };
    const of = (staleness: number, batchesPerStep: number) =>
      makePlan({ ...request, timings, steps: { staleness, batchesPerStep } })?.explanation;
    expect(of(0, 1)).toContain('9 ms per batch, as fast as steps follow: 1 batch is computed at');
    expect(of(0, 2)).toContain('2 batches are computed at once (S = 0, G = 2)');
    expect(of(1, 1)).toContain('2 batches are computed at once (S = 1, G = 1)');
    expect(of(9, 1)).not.toContain('at once');
  });

  test('shows no times and says so before anything was measured', () => {
    const plan = makePlan({ ...request, timings: null, estimated: true });
    expect(plan).toMatchObject({ estimated: true, samplers: 3, k: 0, batchNs: 0 });
    expect(plan?.choices.every(({ batchNs }) => batchNs === 0)).toBe(true);
    expect(plan?.explanation).toContain('calibration has yet to measure');
  });

  test('survives JSON even where K is unbounded', () => {
    const timings = { samplerBatchNs: 0, trainerBatchNs: 1, standbyBatchNs: 1, parts: null };
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
  const plan = makePlan({ ...request, standby: 'OFF' });
  if (plan === null) throw new Error('the plan of five devices is feasible');
  const timings = (samplerBatchNs: number, trainerBatchNs: number) => ({
    samplerBatchNs,
    trainerBatchNs,
    standbyBatchNs: trainerBatchNs,
    parts: null,
  });
  const paceOf = (sampler: number, trainer: number) => ({
    timings: timings(sampler, trainer),
    steps: request.steps,
    epoch: null,
  });
  const evidence = { plan, policy: 'AUTO', standby: 'OFF', epoch: 1 } as const;
  const clearlyBetter = { ...evidence, pace: paceOf(120, 160) };

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
    const lessClear = { ...evidence, epoch: 3, pace: paceOf(107, 300) };
    const kept = reconsiderSplit(twice, lessClear);
    expect(kept.recommendation).toMatchObject({ samplers: 2, sinceEpoch: 2 });
    expect(reconsiderSplit(noEvidence, lessClear)).toEqual(noEvidence);
    const hardly = { ...evidence, epoch: 4, pace: paceOf(104, 300) };
    expect(reconsiderSplit(kept, hardly)).toEqual(noEvidence);
  });

  test('never questions a split that the job fixed', () => {
    const once = reconsiderSplit(noEvidence, { ...clearlyBetter, policy: 'FIXED' });
    expect(once).toEqual(noEvidence);
  });
});

describe('who samples', () => {
  const samplerSets = [[], ['c'], ['c', 'a'], ['a', 'b', 'c']];
  const samplersOf = (change: Partial<PlanRequest>) =>
    makePlan({ ...request, policy: 'PAPER', samplerSets, ...change })?.executors.flatMap(
      ({ role, device }) => (role === 'TRAINER' ? [] : `${role} ${device}`),
    );

  test('are the devices whose links Trainers miss least, in device order', () => {
    const both = ['SAMPLER a', 'SAMPLER c', 'STANDBY a', 'STANDBY c'];
    expect(samplersOf({})).toEqual(both);
    const trainers = makePlan({ ...request, policy: 'PAPER', samplerSets })?.executors;
    expect(trainers?.flatMap(({ role, device }) => (role === 'TRAINER' ? device : []))).toEqual([
      'b',
      'd',
      'e',
    ]);
  });

  test('are the first devices where the spec says how many, or nobody knows of the set', () => {
    const first = ['SAMPLER a', 'SAMPLER b', 'STANDBY a', 'STANDBY b'];
    expect(samplersOf({ policy: 'FIXED', fixedSamplers: 2 })).toEqual(first);
    expect(samplersOf({ samplerSets: [] })).toEqual(first);
    expect(samplersOf({ samplerSets: [[], [], ['c', 'z']] })).toEqual(first);
  });
});
