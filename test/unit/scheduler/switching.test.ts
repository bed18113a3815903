import { describe, expect, test } from 'vitest';
import { armStandby } from '../../../src/scheduler/switching.ts';
import { forAll } from '../../support/random.ts';
import { type SimulatedEpoch, simulateEpoch } from '../../support/simulator.ts';
import { switchProfitNs } from '../../support/switch-profit.ts';

describe('the profit of switching (GNNLab §5.4)', () => {
  test.each([
    // M_r, T_t, N_t, T_t' in tenths of a second; P in ns
    [10, 10, 5, 15, 500_000_000],
    [3, 10, 5, 15, -900_000_000],
    [10, 10, 5, 20, 0],
    [7, 40, 1, 50, 23_000_000_000],
  ])("M_r %i, T_t %i, N_t %i, T_t' %i", (readyBatches, trainer, trainers, standby, profitNs) => {
    const trainerBatchNs = trainer * 100_000_000;
    const standbyBatchNs = standby * 100_000_000;
    const inputs = { readyBatches, trainerBatchNs, trainers, standbyBatchNs };
    expect(switchProfitNs(inputs)).toBe(profitNs);
  });

  test('is infinite without a normal Trainer', () => {
    const inputs = { trainerBatchNs: 1, trainers: 0, standbyBatchNs: 1e9 };
    expect(switchProfitNs({ ...inputs, readyBatches: 1 })).toBe(Infinity);
  });

  test('keeps its sign where it is less than a nanosecond', () => {
    // 10/3 - 3 = 1/3 and 8/3 - 3 = -1/3.
    const inputs = { trainerBatchNs: 1, trainers: 3, standbyBatchNs: 3 };
    expect(switchProfitNs({ ...inputs, readyBatches: 10 })).toBe(1);
    expect(switchProfitNs({ ...inputs, readyBatches: 8 })).toBe(0);
  });

  test('is exact where products exceed 2^53', () => {
    const inputs = { trainerBatchNs: 2 ** 52 + 1, trainers: 1000, standbyBatchNs: 2 ** 52 };
    expect(switchProfitNs({ ...inputs, readyBatches: 1000 })).toBe(1);
    expect(switchProfitNs({ ...inputs, readyBatches: 999 })).toBeLessThan(0);
  });
});

describe('arming standby Trainers', () => {
  const fits = { device: 'cpu:0', freeBytes: 10, neededBytes: 10 };
  const tight = { device: 'cpu:1', freeBytes: 9, neededBytes: 10 };
  const two = { samplerDevices: ['cpu:0', 'cpu:1'], trainers: 1, room: [fits, tight] };

  test('AUTO arms them only where every sampler device has room', () => {
    expect(armStandby({ ...two, policy: 'AUTO' })?.mode).toBe('OFF');
    expect(armStandby({ ...two, policy: 'AUTO' })?.explanation).toContain('cpu:1 has 9 bytes');
    expect(armStandby({ ...two, policy: 'AUTO', samplerDevices: ['cpu:0'] })?.mode).toBe('AUTO');
    expect(armStandby({ ...two, policy: 'AUTO', room: [] })?.mode).toBe('AUTO');
  });

  test('OFF and ALWAYS do as they say', () => {
    expect(armStandby({ ...two, policy: 'OFF' })?.mode).toBe('OFF');
    expect(armStandby({ ...two, policy: 'ALWAYS' })?.mode).toBe('ALWAYS');
  });

  test('without a normal Trainer they are armed anyway, or the job is infeasible', () => {
    const alone = { ...two, trainers: 0, samplerDevices: ['cpu:0'] };
    expect(armStandby({ ...alone, policy: 'OFF' })?.mode).toBe('AUTO');
    expect(armStandby({ ...alone, policy: 'OFF', samplerDevices: ['cpu:1'] })).toBeNull();
  });
});

const second = 1_000_000_000;

interface Timeline {
  readonly batches: number;
  /** T_s, T_t, T_t' in ns. */
  readonly times: readonly [number, number, number];
  /** N_s, N_t. */
  readonly split: readonly [number, number];
  readonly standby?: boolean;
}

function timeline({ batches, times, split, standby }: Timeline): SimulatedEpoch {
  const [samplerBatchNs, trainerBatchNs, standbyBatchNs] = times;
  const [samplers, trainers] = split;
  return {
    batches,
    samplerBatchNs,
    trainerBatchNs,
    standbyBatchNs,
    samplers,
    trainers,
    standby: standby ?? true,
    slots: null,
    lowWater: 0,
    steps: null,
  };
}

describe('an epoch on the virtual clock', () => {
  test('10 batches, one Sampler, one Trainer: 41 s without switching, 29 s with', () => {
    const epoch = {
      batches: 10,
      times: [1 * second, 4 * second, 5 * second],
      split: [1, 1],
    } as const;
    expect(simulateEpoch(timeline({ ...epoch, standby: false })).epochNs).toBe(41 * second);
    const run = simulateEpoch(timeline(epoch));
    expect(run.epochNs).toBe(29 * second);
    expect(run.standbyTakes).toEqual([
      { atNs: 10 * second, readyBatches: 7, profitNs: 23 * second },
      { atNs: 15 * second, readyBatches: 5, profitNs: 15 * second },
      { atNs: 20 * second, readyBatches: 3, profitNs: 7 * second },
    ]);
  });

  test('12 batches, one Sampler, two Trainers: 20 s without switching, 19 s with', () => {
    const epoch = {
      batches: 12,
      times: [1 * second, 3 * second, 4 * second],
      split: [1, 2],
    } as const;
    expect(simulateEpoch(timeline({ ...epoch, standby: false })).epochNs).toBe(20 * second);
    const run = simulateEpoch(timeline(epoch));
    expect(run.epochNs).toBe(19 * second);
    expect(run.standbyTakes).toEqual([
      { atNs: 12 * second, readyBatches: 4, profitNs: 2 * second },
    ]);
  });

  test('4 batches on one device: all sampled first, then all trained, in 16 s', () => {
    const run = simulateEpoch(
      timeline({ batches: 4, times: [1 * second, 2 * second, 3 * second], split: [1, 0] }),
    );
    expect(run.epochNs).toBe(16 * second);
    expect(run.standbyTakes.map(({ atNs }) => atNs / second)).toEqual([4, 7, 10, 13]);
    expect(run.standbyTakes[0]).toMatchObject({ readyBatches: 4, profitNs: Infinity });
    expect(run.handBacks).toBe(0);
  });

  test.each([
    // N_t, epoch without and with switching, in hundredths of a second
    [1, 694, 405],
    [2, 350, 263],
  ])('PinSAGE on PA with 1 Sampler and %i Trainers: %i -> %i', (trainers, without, withIt) => {
    const batches = 151;
    const perBatch = (epochSeconds: number) => Math.round((epochSeconds * second) / batches);
    const times = [perBatch(0.62), perBatch(6.94), perBatch(8)] as const;
    const epoch = { batches, times, split: [1, trainers] } as const;
    const hundredths = (standby: boolean) =>
      Math.round(simulateEpoch(timeline({ ...epoch, standby })).epochNs / (second / 100));
    expect(hundredths(false)).toBe(without);
    expect(hundredths(true)).toBe(withIt);
  });

  test('a standby Trainer leaves a batch that the normal ones will finish sooner', () => {
    const run = simulateEpoch(
      timeline({ batches: 9, times: [1 * second, 4 * second, 20 * second], split: [1, 1] }),
    );
    // At 9 s the queue holds 6 batches: P = 6 * 4 - 20 > 0; later it is never profitable again.
    expect(run.standbyTakes.map(({ atNs }) => atNs / second)).toEqual([9]);
    expect(run.timesTrained).toEqual(new Array(9).fill(1));
  });

  test('with a queue shorter than the epoch one device alternates in chunks', () => {
    const epoch = timeline({
      batches: 10,
      times: [1 * second, 2 * second, 2 * second],
      split: [1, 0],
    });
    const run = simulateEpoch({ ...epoch, slots: 4 });
    expect(run.epochNs).toBe(30 * second);
    expect(run.handBacks).toBe(2);
    expect(run.timesTrained).toEqual(new Array(10).fill(1));
  });

  test('a full queue wakes the standby Trainer before the epoch is sampled to its end', () => {
    const epoch = timeline({
      batches: 40,
      times: [1 * second, 10 * second, 10 * second],
      split: [1, 1],
    });
    const unbounded = simulateEpoch(epoch);
    const short = simulateEpoch({ ...epoch, slots: 6, lowWater: 1 });
    expect(short.standbyTakes[0]?.atNs).toBeLessThan(40 * second);
    expect(unbounded.standbyTakes[0]?.atNs).toBe(40 * second);
    expect(short.epochNs).toBeLessThanOrEqual(unbounded.epochNs + 20 * second);
  });

  test('without any kind of Trainer the epoch is stuck, and says so', () => {
    const epoch = timeline({ batches: 2, times: [1, 1, 1], split: [1, 0], standby: false });
    expect(() => simulateEpoch(epoch)).toThrow('stuck');
  });
});

describe('for any times, splits and queue lengths', () => {
  test('every batch is trained exactly once, and switching costs one standby batch at most', () => {
    forAll(200, (random) => {
      const batches = random.integer(1, 60);
      const trainerBatchNs = random.integer(1, 50);
      const epoch = timeline({
        batches,
        times: [random.integer(1, 20), trainerBatchNs, trainerBatchNs + random.integer(0, 30)],
        split: [random.integer(1, 4), random.integer(1, 4)],
      });
      const withIt = simulateEpoch(epoch);
      const without = simulateEpoch({ ...epoch, standby: false });
      expect(withIt.timesTrained).toEqual(new Array(batches).fill(1));
      expect(withIt.epochNs).toBeLessThanOrEqual(without.epochNs + epoch.standbyBatchNs);
      const slots = random.integer(1, batches);
      const short = simulateEpoch({ ...epoch, slots, lowWater: random.integer(0, slots) });
      expect(short.timesTrained).toEqual(new Array(batches).fill(1));
    });
  });

  test('from 1 to 8 Samplers and 1 to 8 Trainers train every batch exactly once', () => {
    const batches = 50;
    for (let samplers = 1; samplers <= 8; samplers += 1) {
      for (let trainers = 1; trainers <= 8; trainers += 1) {
        for (const standby of [false, true]) {
          const epoch = timeline({
            batches,
            times: [3, 7, 9],
            split: [samplers, trainers],
            standby,
          });
          const { timesTrained } = simulateEpoch(epoch);
          expect(timesTrained, `${samplers} + ${trainers}`).toEqual(new Array(batches).fill(1));
        }
      }
    }
  });
});
