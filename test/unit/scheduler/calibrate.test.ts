import { describe, expect, test } from 'vitest';
import {
  calibrate,
  type DurationRings,
  medianNs,
  runningEstimates,
} from '../../../src/scheduler/calibrate.ts';

const sampler = (sampleNs: number) => ({ sampleNs, markNs: 1, copyNs: 2 });
const trainer = (extractNs: number, trainNs: number) => ({ extractNs, trainNs });

const trial: DurationRings = {
  sampler: [9000, 8000, 10, 12, 11].map(sampler),
  trainer: [trainer(9000, 9000), trainer(9000, 9000), trainer(5, 20), trainer(7, 22)],
  standby: [trainer(9000, 9000), trainer(9000, 9000), trainer(30, 20)],
};

describe('calibration', () => {
  test('takes medians of whole batches after two batches of warm-up', () => {
    expect(calibrate(trial, false)).toEqual({
      samplerBatchNs: 14,
      trainerBatchNs: 27,
      standbyBatchNs: 50,
    });
  });

  test('counts the longer of extraction and training where they overlap', () => {
    expect(calibrate(trial, true)).toMatchObject({ trainerBatchNs: 21, standbyBatchNs: 30 });
  });

  test('takes the last batch where there was hardly more than the warm-up', () => {
    const short = { ...trial, sampler: [900, 800].map(sampler) };
    expect(calibrate(short, false)?.samplerBatchNs).toBe(803);
  });

  test('lets one kind of Trainer stand for the other', () => {
    expect(calibrate({ ...trial, standby: [] }, false)?.standbyBatchNs).toBe(27);
    expect(calibrate({ ...trial, trainer: [] }, false)?.trainerBatchNs).toBe(50);
  });

  test('says nothing where a side was not measured', () => {
    expect(calibrate({ ...trial, sampler: [] }, false)).toBeNull();
    expect(calibrate({ ...trial, trainer: [], standby: [] }, false)).toBeNull();
  });
});

describe('running estimates', () => {
  const former = { samplerBatchNs: 1, trainerBatchNs: 2, standbyBatchNs: 3 };

  test('follow the last 32 batches and keep what has no news', () => {
    const old = Array.from({ length: 40 }, () => sampler(1000));
    const recent = Array.from({ length: 32 }, () => sampler(7));
    const rings = { sampler: [...old, ...recent], trainer: [trainer(4, 4)], standby: [] };
    expect(runningEstimates(rings, false, former)).toEqual({
      samplerBatchNs: 10,
      trainerBatchNs: 8,
      standbyBatchNs: 3,
    });
  });
});

describe('the median', () => {
  test.each([
    [[], null],
    [[5], 5],
    [[9, 1, 5], 5],
    [[4, 1], 2],
    [[Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER - 2], Number.MAX_SAFE_INTEGER - 1],
  ])('of %j is %j', (durations, median) => {
    expect(medianNs(durations)).toBe(median);
  });
});
