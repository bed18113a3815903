import { describe, expect, test } from 'vitest';
import type { Timings } from '../../../src/records/batch-times.ts';
import { minmaxSamplers, paperSamplers, samplersOf } from '../../../src/scheduler/allocate.ts';
import { choose } from '../../../src/scheduler/choose.ts';
import { predict } from '../../../src/scheduler/predict.ts';
import { forAll, type Random } from '../../support/random.ts';

/** Hundredths of a second, as the paper prints them, in ns. */
const hundredthNs = 10_000_000;

function timings(samplerBatchNs: number, trainerBatchNs: number): Timings {
  return { samplerBatchNs, trainerBatchNs, standbyBatchNs: trainerBatchNs, parts: null };
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
    expect(minmaxSamplers(5, timings(10, 29))).toBe(2);
  });
});

/** The choice for so many devices; steps keep nobody waiting unless `change` says so. */
function chosen(deviceCount: number, change: Partial<Parameters<typeof choose>[0]>) {
  return choose({
    devices: Array.from({ length: deviceCount }, (_, index) => `cpu:${index}`),
    policy: 'AUTO',
    fixedSamplers: 0,
    standby: 'AUTO',
    timings: null,
    steps: { batchesPerStep: 1, staleness: 63 },
    epoch: null,
    standbyRoom: [],
    ...change,
  });
}

describe('the choice', () => {
  test('AUTO takes the better predicted policy and tells what each would have come to', () => {
    const five = chosen(5, { timings: gcnOnPa, standby: 'OFF' });
    expect(five.followed).toMatchObject({ way: 'SPLIT', samplers: 1, trainers: 4 });
    expect(five.policy).toBe('MINMAX');
    expect(five.choices).toEqual([
      { policy: 'PAPER', samplers: 2, trainers: 3, batchNs: 1_343_333_334 },
      { policy: 'MINMAX', samplers: 1, trainers: 4, batchNs: 1_010_000_000 },
    ]);
  });

  test('with switching the paper loses nothing: its second Sampler trains, too', () => {
    const five = chosen(5, { timings: gcnOnPa });
    expect(five.followed).toMatchObject({ way: 'SWITCHING', samplers: 2, batchNs: 1_008_000_000 });
    expect(five.policy).toBe('PAPER');
  });

  test('AUTO goes with the paper on a tie', () => {
    const tied = chosen(3, { timings: timings(4, 4), standby: 'OFF' });
    expect(tied.followed).toMatchObject({ samplers: 2, batchNs: 4 });
    expect(tied.policy).toBe('PAPER');
    expect(tied.choices.map(({ samplers }) => samplers)).toEqual([2, 1]);
  });

  test('FIXED does as told and still tells what the policies would have come to', () => {
    const fixed = chosen(5, { policy: 'FIXED', fixedSamplers: 4, timings: gcnOnPa });
    expect(fixed.followed).toMatchObject({ samplers: 4, trainers: 1 });
    expect(fixed.policy).toBe('FIXED');
    expect(fixed.choices.map(({ samplers }) => samplers)).toEqual([2, 1, 4]);
  });

  test('FIXED to all devices shares them', () => {
    const all = chosen(3, { policy: 'FIXED', fixedSamplers: 3, timings: timings(10, 20) });
    expect(all.followed).toMatchObject({ way: 'SHARING', samplers: 3, trainers: 0, batchNs: 10 });
  });

  test('one device alternates: no Trainer, and a batch costs both in turn', () => {
    const alone = chosen(1, { timings: { ...timings(10, 20), standbyBatchNs: 25 } });
    expect(alone.followed).toMatchObject({ way: 'SHARING', samplers: 1, batchNs: 35 });
    expect(alone.ways).toHaveLength(1);
  });

  // T_s, T_t, T_t' in ms: what two devices do
  test.each([
    ['as fast as time sharing, the split with switching stays', 0.8, 18.6, 18.6, 'SWITCHING'],
    ['a few percent are no reason to share', 10, 30, 29, 'SWITCHING'],
    ['the longer extraction is hidden, the better is the split', 0.8, 12, 18.6, 'SWITCHING'],
    ['a Sampler too slow for its own device', 30, 10, 10, 'SHARING'],
    ['a smaller cache forbids it', 30, 10, 60, 'SWITCHING'],
  ])('%s', (_name, s, t, standby, way) => {
    const [samplerBatchNs, trainerBatchNs, standbyBatchNs] = [s * 1e6, t * 1e6, standby * 1e6];
    const times = { samplerBatchNs, trainerBatchNs, standbyBatchNs, parts: null };
    expect(chosen(2, { timings: times }).followed.way).toBe(way);
  });

  test('without a delay and with standby Trainers that are slow, they stay out', () => {
    const steps = { batchesPerStep: 1, staleness: 0 };
    const slow = { ...timings(1e6, 10e6), standbyBatchNs: 40e6 };
    const { followed, ways } = chosen(2, { timings: slow, steps });
    expect(followed).toMatchObject({ way: 'SPLIT', batchNs: 10e6, atOnce: 1 });
    expect(ways.find(({ way }) => way === 'SWITCHING')?.batchNs).toBeGreaterThan(20e6);
  });

  test('a device without room has no standby Trainer, and all must have some to share', () => {
    const room = (device: string) => [{ device, freeBytes: 1, neededBytes: 2 }];
    const wayWith = (device: string, s: number) => {
      const request = { timings: timings(s * 1e6, 10e6), standbyRoom: room(device) };
      return chosen(2, request).ways.map(({ way }) => way);
    };
    expect(wayWith('cpu:0', 1)).toEqual(['SPLIT']);
    expect(wayWith('cpu:1', 30)).toEqual(['SWITCHING', 'SPLIT']);
  });

  // Tables 1, 4 and 5: S+M+C, E + T of a Trainer and E + T of a device that samples, too, without
  // prefetching. PR fits one device whole; on PA such a device caches 7 % of the rows, not 21 %.
  test.each([
    ['GCN/PR', 39, 19 + 118, 19 + 118, true],
    ['GraphSAGE/PR', 20, 10 + 24, 10 + 24, true],
    ['PinSAGE/PR', 20, 10 + 172, 10 + 172, true],
    ['GCN/PA', 96, 61 + 381, 362 + 400, false],
  ])('%s on 8 devices: the faster way is the one that GNNLab measured', (_name, ...row) => {
    const [sample, train, shared, isSharingFaster] = row;
    const times = {
      ...timings(sample * hundredthNs, train * hundredthNs),
      standbyBatchNs: shared * hundredthNs,
    };
    const sharing = { way: 'SHARING', samplers: 8, trainers: 0 } as const;
    const pace = { timings: times, steps: { batchesPerStep: 1, staleness: 63 }, epoch: null };
    // Without switching, as there.
    const split = chosen(8, { timings: times, standby: 'OFF' }).followed;
    expect(predict(sharing, pace).batchNs < split.batchNs).toBe(isSharingFaster);
  });

  test.each([
    [4, 0, 10, 10],
    [4, 5, 10, 10],
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
    expect(() => samplersOf(request)).toThrow(RangeError);
  });
});

function randomTimings(random: Random): Timings {
  const magnitude = 10 ** random.integer(0, 9);
  const time = () => random.integer(random.chance(0.05) ? 0 : 1, magnitude * 10);
  return { samplerBatchNs: time(), trainerBatchNs: time(), standbyBatchNs: time(), parts: null };
}

describe('for any times and any number of devices', () => {
  test('at least one device samples, and one trains', () => {
    forAll(500, (random) => {
      const deviceCount = random.integer(2, 200);
      const policy = random.pick(['AUTO', 'PAPER', 'MINMAX'] as const);
      const { way, samplers, trainers } = chosen(deviceCount, {
        policy,
        timings: randomTimings(random),
      }).followed;
      expect(samplers).toBeGreaterThanOrEqual(1);
      expect(trainers).toBeGreaterThanOrEqual(way === 'SHARING' ? 0 : 1);
      expect(samplers + trainers).toBe(deviceCount);
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

  test('minmax is never predicted worse than any other split, and AUTO than none by much', () => {
    forAll(300, (random) => {
      const deviceCount = random.integer(2, 32);
      const times = randomTimings(random);
      const request = { timings: times, standby: 'OFF' } as const;
      const minmax = chosen(deviceCount, { ...request, policy: 'MINMAX' }).followed;
      const pace = { timings: times, steps: { batchesPerStep: 1, staleness: 63 }, epoch: null };
      const auto = chosen(deviceCount, { timings: times }).followed;
      for (let samplers = 1; samplers < deviceCount; samplers += 1) {
        const split = { samplers, trainers: deviceCount - samplers };
        expect(minmax.batchNs).toBeLessThanOrEqual(
          predict({ ...split, way: 'SPLIT' }, pace).batchNs,
        );
        const switching = predict({ ...split, way: 'SWITCHING' }, pace).batchNs;
        expect(auto.batchNs).toBeLessThanOrEqual(switching * 1.05 + 1);
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
