import { describe, expect, test } from 'vitest';
import {
  allocate,
  minmaxSamplers,
  paperSamplers,
  predictBatchNs,
  type Timings,
} from '../../../src/scheduler/allocate.ts';
import { forAll, type Random } from '../../support/random.ts';

/** Hundredths of a second, as the paper prints them, in ns. */
const hundredthNs = 10_000_000;

function timings(samplerBatchNs: number, trainerBatchNs: number): Timings {
  return { samplerBatchNs, trainerBatchNs, standbyBatchNs: trainerBatchNs };
}

/** [workload, S+M+C, E, T in hundredths of a second, N_s at 8 devices]. */
type StageTimes = readonly [string, number, number, number, number];

function paperChoice([, sample, extract, train]: StageTimes): number {
  const trainer = Math.max(extract, train);
  return paperSamplers(8, timings(sample * hundredthNs, trainer * hundredthNs));
}

// GNNLab, Table 5 (stage times) and Table 4 (allocation): the rows the formula reproduces.
const reproduced: readonly StageTimes[] = [
  ['GCN/TW', 37, 80, 150, 2],
  ['GCN/PA', 96, 61, 381, 2],
  ['GCN/UK', 56, 308, 312, 2],
  ['GraphSAGE/PR', 20, 10, 24, 4],
  ['PinSAGE/PR', 20, 10, 172, 1],
  ['PinSAGE/TW', 28, 55, 254, 1],
  ['PinSAGE/PA', 61, 41, 597, 1],
  ['PinSAGE/UK', 65, 339, 699, 1],
];

// The other four: the paper chose 3, 2, 2, 1; this is what its formula gives.
const notReproduced: readonly StageTimes[] = [
  ['GCN/PR', 39, 19, 118, 2],
  ['GraphSAGE/TW', 16, 44, 42, 3],
  ['GraphSAGE/PA', 46, 34, 112, 3],
  ['GraphSAGE/UK', 27, 144, 102, 2],
];

// Stage times that the paper's artifact prints; the last two differ from the paper's choice.
const artifact: readonly StageTimes[] = [
  ['GCN/TW', 36, 81, 173, 2],
  ['GCN/PA', 95, 50, 446, 2],
  ['GCN/UK', 55, 306, 357, 2],
  ['GraphSAGE/PR', 20, 8, 29, 4],
  ['GraphSAGE/TW', 15, 48, 52, 2],
  ['GraphSAGE/PA', 45, 35, 147, 2],
  ['PinSAGE/PR', 20, 7, 193, 1],
  ['PinSAGE/TW', 28, 58, 286, 1],
  ['PinSAGE/PA', 62, 34, 694, 1],
  ['PinSAGE/UK', 63, 339, 800, 1],
  ['GCN/PR', 39, 15, 130, 2],
  ['GraphSAGE/UK', 26, 135, 127, 2],
];

describe('the number of Samplers follows the allocation rule of GNNLab', () => {
  test.each(reproduced)('%s: the paper allocates what its stage times imply', (...row) => {
    expect(paperChoice(row)).toBe(row[4]);
  });

  test.each(reproduced)('%s: rounding of the printed times does not matter', (...row) => {
    const [, sample, extract, train, samplers] = row;
    const roundings = [-0.5, 0, 0.5];
    for (const s of roundings) {
      for (const e of roundings) {
        for (const t of roundings) {
          const rounded: StageTimes = ['', sample + s, extract + e, train + t, samplers];
          expect(paperChoice(rounded), `${s} ${e} ${t}`).toBe(samplers);
        }
      }
    }
  });

  test.each(notReproduced)('%s: the formula, not the paper, is followed', (...row) => {
    expect(paperChoice(row)).toBe(row[4]);
  });

  test.each(artifact)("%s: the artifact's stage times", (...row) => {
    expect(paperChoice(row)).toBe(row[4]);
  });

  test.each([
    ['K = 3 exactly, which doubles miss', 8, 100_000_000, 300_000_000, 2],
    ['K = 7 exactly', 8, 1, 7, 1],
    ['K = 1 on two devices', 2, 1, 1, 1],
    ['K = 0.9 on two devices would leave no Trainer', 2, 10, 9, 1],
    ['K = 0.2 on two devices would leave no Trainer', 2, 10, 2, 1],
    ['K = 0.142 on eight devices would leave no Trainer', 8, 1000, 142, 7],
    ['training is free', 8, 5, 0, 7],
    ['sampling is free', 8, 0, 5, 1],
    ['both are free', 8, 0, 0, 1],
    ['one device, slow sampling', 1, 9, 1, 1],
    ['one device, slow training', 1, 1, 9, 1],
    ['products beyond 2^53', 1000, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, 500],
  ])('%s', (_name, deviceCount, samplerBatchNs, trainerBatchNs, samplers) => {
    expect(paperSamplers(deviceCount, timings(samplerBatchNs, trainerBatchNs))).toBe(samplers);
  });
});

// GCN on PA: T_s = 1.01 s, T_t = 4.03 s.
const gcnOnPa = timings(101 * hundredthNs, 403 * hundredthNs);

describe('the minmax rule', () => {
  test.each([
    // N_g, minmax, paper
    [2, 1, 1],
    [3, 1, 1],
    [4, 1, 1],
    [5, 1, 2],
    [6, 2, 2],
    [7, 2, 2],
    [8, 2, 2],
  ])(
    'on %i devices it takes %i Samplers where the paper takes %i',
    (deviceCount, minmax, paper) => {
      expect(minmaxSamplers(deviceCount, gcnOnPa)).toBe(minmax);
      expect(paperSamplers(deviceCount, gcnOnPa)).toBe(paper);
    },
  );

  test('takes the smaller number of Samplers on ties', () => {
    // max(4/1, 4/2) = max(4/2, 4/1).
    expect(minmaxSamplers(3, timings(4, 4))).toBe(1);
  });

  test('one device has one Sampler', () => {
    expect(minmaxSamplers(1, gcnOnPa)).toBe(1);
  });

  test('sees differences below a nanosecond', () => {
    // 1 Sampler: 10/1 against 2 Samplers: 29/3 = 9.67, both 10 ns when rounded up.
    const close = timings(10, 29);
    expect(predictBatchNs({ deviceCount: 5, samplers: 1, timings: close })).toBe(10);
    expect(predictBatchNs({ deviceCount: 5, samplers: 2, timings: close })).toBe(10);
    expect(minmaxSamplers(5, close)).toBe(2);
  });
});

describe('allocate', () => {
  test('AUTO takes the better predicted policy and tells what each would have chosen', () => {
    const five = allocate({
      deviceCount: 5,
      policy: 'AUTO',
      fixedSamplers: 0,
      timings: gcnOnPa,
    });
    expect(five).toMatchObject({ samplers: 1, trainers: 4, policy: 'MINMAX' });
    expect(five.choices).toEqual([
      { policy: 'PAPER', samplers: 2, trainers: 3, batchNs: 1_343_333_334 },
      { policy: 'MINMAX', samplers: 1, trainers: 4, batchNs: 1_010_000_000 },
    ]);
    expect(five.k).toBeCloseTo(3.99, 2);
  });

  test('AUTO goes with the paper on a tie', () => {
    const tied = allocate({
      deviceCount: 3,
      policy: 'AUTO',
      fixedSamplers: 0,
      timings: timings(4, 4),
    });
    expect(tied).toMatchObject({ samplers: 2, policy: 'PAPER', batchNs: 4 });
    expect(tied.choices.map(({ samplers }) => samplers)).toEqual([2, 1]);
  });

  test('FIXED does as told and still tells what the policies would have chosen', () => {
    const fixed = allocate({
      deviceCount: 5,
      policy: 'FIXED',
      fixedSamplers: 4,
      timings: gcnOnPa,
    });
    expect(fixed).toMatchObject({ samplers: 4, trainers: 1, policy: 'FIXED' });
    expect(fixed.choices.map(({ samplers }) => samplers)).toEqual([2, 1, 4]);
  });

  test('one device alternates: no Trainer, and a batch costs both in turn', () => {
    const alone = allocate({
      deviceCount: 1,
      policy: 'AUTO',
      fixedSamplers: 0,
      timings: { samplerBatchNs: 10, trainerBatchNs: 20, standbyBatchNs: 25 },
    });
    expect(alone).toMatchObject({ samplers: 1, trainers: 0, batchNs: 35, timeSharingBatchNs: 35 });
    expect(alone.timeSharingFaster).toBe(false);
  });

  test('says when time sharing would be faster, and when the smaller cache forbids it', () => {
    const request = { deviceCount: 2, policy: 'AUTO', fixedSamplers: 0 } as const;
    const unbalanced = { samplerBatchNs: 10, trainerBatchNs: 30 };
    const small = allocate({ ...request, timings: { ...unbalanced, standbyBatchNs: 30 } });
    expect(small).toMatchObject({ batchNs: 30, timeSharingBatchNs: 20, timeSharingFaster: true });
    const large = allocate({ ...request, timings: { ...unbalanced, standbyBatchNs: 90 } });
    expect(large).toMatchObject({ batchNs: 30, timeSharingBatchNs: 50, timeSharingFaster: false });
  });

  // Tables 1, 4 and 5: S+M+C, E + T of a Trainer and E + T of a device that samples, too, without
  // prefetching. PR fits one device whole; on PA such a device caches 7 % of the rows, not 21 %.
  test.each([
    ['GCN/PR', 39, 19 + 118, 19 + 118, true],
    ['GraphSAGE/PR', 20, 10 + 24, 10 + 24, true],
    ['PinSAGE/PR', 20, 10 + 172, 10 + 172, true],
    ['GCN/PA', 96, 61 + 381, 362 + 400, false],
  ])('%s on 8 devices: the faster way is the one that GNNLab measured', (_name, ...row) => {
    const [sample, train, shared, timeSharingFaster] = row;
    const times = timings(sample * hundredthNs, train * hundredthNs);
    const found = allocate({
      deviceCount: 8,
      policy: 'AUTO',
      fixedSamplers: 0,
      timings: { ...times, standbyBatchNs: shared * hundredthNs },
    });
    expect(found.timeSharingFaster).toBe(timeSharingFaster);
  });

  test.each([
    [0, 1, 10, 10],
    [4, 0, 10, 10],
    [4, 4, 10, 10],
    [4, 1.5, 10, 10],
    [4, 1, -1, 10],
    [4, 1, 10, 0.5],
    [4, 1, Number.NaN, 10],
  ])('refuses %d devices, %d Samplers, %d ns and %d ns', (deviceCount, fixedSamplers, s, t) => {
    const request = {
      deviceCount,
      policy: 'FIXED',
      fixedSamplers,
      timings: timings(s, t),
    } as const;
    expect(() => allocate(request)).toThrow(RangeError);
  });
});

function randomTimings(random: Random): Timings {
  const magnitude = 10 ** random.integer(0, 9);
  const time = () => random.integer(random.chance(0.05) ? 0 : 1, magnitude * 10);
  return { samplerBatchNs: time(), trainerBatchNs: time(), standbyBatchNs: time() };
}

describe('for any times and any number of devices', () => {
  test('at least one device samples and, from two on, at least one trains', () => {
    forAll(500, (random) => {
      const deviceCount = random.integer(2, 64);
      const policy = random.pick(['AUTO', 'PAPER', 'MINMAX'] as const);
      const found = allocate({
        deviceCount,
        policy,
        fixedSamplers: 0,
        timings: randomTimings(random),
      });
      expect(found.samplers).toBeGreaterThanOrEqual(1);
      expect(found.trainers).toBeGreaterThanOrEqual(1);
      expect(found.samplers + found.trainers).toBe(deviceCount);
    });
  });

  test('only the ratio of the times counts', () => {
    forAll(500, (random) => {
      const deviceCount = random.integer(1, 64);
      const base = randomTimings(random);
      const factor = random.integer(2, 1000);
      const scaled = timings(base.samplerBatchNs * factor, base.trainerBatchNs * factor);
      expect(paperSamplers(deviceCount, scaled)).toBe(paperSamplers(deviceCount, base));
      expect(minmaxSamplers(deviceCount, scaled)).toBe(minmaxSamplers(deviceCount, base));
    });
  });

  test('minmax is never predicted worse than any other split, and AUTO never than either', () => {
    forAll(500, (random) => {
      const deviceCount = random.integer(2, 32);
      const times = randomTimings(random);
      const request = { deviceCount, fixedSamplers: 0, timings: times };
      const minmax = allocate({ ...request, policy: 'MINMAX' });
      const auto = allocate({ ...request, policy: 'AUTO' });
      for (let samplers = 1; samplers < deviceCount; samplers += 1) {
        const other = predictBatchNs({ deviceCount, samplers, timings: times });
        expect(minmax.batchNs).toBeLessThanOrEqual(other);
      }
      for (const choice of auto.choices) {
        expect(auto.batchNs).toBeLessThanOrEqual(choice.batchNs);
      }
    });
  });

  test('slower training never takes a Sampler more', () => {
    forAll(300, (random) => {
      const deviceCount = random.integer(2, 32);
      const { samplerBatchNs, trainerBatchNs } = randomTimings(random);
      const slower = timings(samplerBatchNs, trainerBatchNs + random.integer(0, 1e9));
      const faster = timings(samplerBatchNs, trainerBatchNs);
      expect(paperSamplers(deviceCount, slower)).toBeLessThanOrEqual(
        paperSamplers(deviceCount, faster),
      );
    });
  });
});
