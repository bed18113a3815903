import { describe, expect, test } from 'vitest';
import { cachePlanOf } from '../../../src/plan/cache-plan.ts';
import { hasAutomaticCache, mayCache } from '../../../src/spec/cache-spec.ts';
import type { JobSpec } from '../../../src/spec/job-spec.ts';
import { forAll } from '../../support/random.ts';
import { someSpec } from '../store/job-values.ts';

const counts = {
  numNodes: 1000,
  numEdges: 5000,
  numFeatures: 25,
  featureDtype: 'float32' as const,
  task: 'CLASSIFICATION' as const,
  numClasses: 3,
  train: 10,
  val: 10,
  test: 10,
};
const rowBytes = 100;

function spec(cache: Partial<JobSpec['cache']>, deviceMemoryBytes = 0, hostMemoryBytes = 0) {
  const bytes = { deviceMemoryBytes, hostMemoryBytes, pinnedFeaturesBytes: 0 };
  const resources = { ...someSpec.resources, ...bytes };
  const automatic = { ...someSpec.cache, ratio: -1, standbyRatio: -1 };
  return { ...someSpec, resources, cache: { ...automatic, ...cache } };
}

function rowsOf(asked: JobSpec, workBytes = 2000, samplerBytes = 4000, evaluationBytes = 0) {
  const plan = cachePlanOf(asked, {
    reservedBytes: 0,
    counts,
    samplerBytes,
    deviceBudgetBytes: 0,
    workBytes,
    evaluationBytes,
    rankMs: 0,
    pinned: { rows: 0, reason: '' },
    freeCores: 0,
    featuresOnDisk: false,
  });
  return [plan.trainerRows, plan.standbyRows];
}

describe('the size of a cache', () => {
  test.each([
    [0, 0],
    [0.1, 100],
    [0.0999, 99],
    [1, 1000],
  ])('%d of the rows are %d, for standby Trainers, too', (ratio, rows) => {
    expect(rowsOf(spec({ ratio }))).toEqual([rows, rows]);
  });

  test('is its own for standby Trainers where that is asked for', () => {
    expect(rowsOf(spec({ ratio: 0.5, standbyRatio: 0 }))).toEqual([500, 0]);
    expect(rowsOf(spec({ standbyRatio: 0.2 }))).toEqual([0, 200]);
  });

  test('is what the budget leaves of whole rows, beside the work and its margin', () => {
    // 30,000 - 1.1 * 2000 = 27,800; a standby Trainer also has 4000 bytes of topology.
    expect(rowsOf(spec({}, 30_000))).toEqual([278, 238]);
    expect(rowsOf(spec({}, 2200 + 10 * rowBytes - 1))).toEqual([9, 0]);
    expect(rowsOf(spec({}, 10_000_000))).toEqual([1000, 1000]);
    expect(rowsOf(spec({}, 1))).toEqual([0, 0]);
  });

  test("is what a device's own memory leaves, or the smaller budget of the job", () => {
    const onDevice = (asked: JobSpec, deviceBudgetBytes: number) => {
      const resources = { ...asked.resources, deviceKind: 'CUDA' as const };
      const measured = {
        ...{ workBytes: 2000, samplerBytes: 4000, evaluationBytes: 0, reservedBytes: 0 },
      };
      const host = {
        rankMs: 0,
        pinned: { rows: 0, reason: '' },
        freeCores: 0,
        featuresOnDisk: false,
      };
      const facts = { counts, ...measured, ...host, deviceBudgetBytes };
      return cachePlanOf({ ...asked, resources }, facts);
    };
    expect(onDevice(spec({}), 30_000)).toMatchObject({ trainerRows: 278, standbyRows: 238 });
    expect(onDevice(spec({}, 12_200), 30_000).trainerRows).toBe(100);
    expect(onDevice(spec({}, 30_000), 12_200).trainerRows).toBe(100);
    expect(onDevice(spec({ ratio: 0.5 }), 30_000).trainerRows).toBe(500);
    expect(onDevice(spec({}), 30_000).explanation).toContain('rows fit 30000 bytes');
  });

  test('leaves evaluations what they take of the same memory', () => {
    expect(rowsOf(spec({}, 30_000), 2000, 4000, 7800)).toEqual([200, 160]);
    expect(rowsOf(spec({}, 30_000), 2000, 4000, 27_800)).toEqual([0, 0]);
  });

  test('never takes what is left to the work, to evaluations, to a Sampler and to PyTorch', () => {
    forAll(500, (random) => {
      const bytes = (most: number) => random.integer(0, most);
      const given = {
        ...{ samplerBytes: bytes(2e9), evaluationBytes: bytes(1e9), reservedBytes: bytes(4e9) },
        ...{ workBytes: random.integer(1, 4e9), deviceBudgetBytes: bytes(16e9) },
      };
      const numNodes = random.integer(1, random.pick([1000, 1e8]));
      const askedBytes = random.pick([0, bytes(16e9)]);
      const plan = cachePlanOf(onCuda(spec({}, askedBytes)), {
        ...given,
        ...{ counts: { ...counts, numNodes }, rankMs: 0, freeCores: 0 },
        ...{ pinned: { rows: 0, reason: '' }, featuresOnDisk: false },
      });
      const { samplerBytes, workBytes, evaluationBytes, reservedBytes } = given;
      const budgets = [askedBytes, given.deviceBudgetBytes].filter((budget) => budget > 0);
      const budget = budgets.length === 0 ? 0 : Math.min(...budgets);
      const others = 1.1 * workBytes + evaluationBytes + reservedBytes;
      const free = (taken: number) => Math.max(0, budget - taken);
      expect(plan.trainerRows * plan.rowBytes).toBeLessThanOrEqual(free(others));
      expect(plan.standbyRows * plan.rowBytes).toBeLessThanOrEqual(free(others + samplerBytes));
      // Nor does it leave room for a row more.
      if (plan.trainerRows === numNodes) return;
      expect((plan.trainerRows + 1) * plan.rowBytes).toBeGreaterThan(free(others));
    });
  });

  test('is none without a budget, or before the work was measured', () => {
    expect(rowsOf(spec({}))).toEqual([0, 0]);
    expect(rowsOf(spec({}, 30_000), 0)).toEqual([0, 0]);
  });

  test('counts rows as they lie on disk', () => {
    const halves = { ...counts, featureDtype: 'float16' as const };
    const facts = {
      counts: halves,
      samplerBytes: 4000,
      deviceBudgetBytes: 0,
      workBytes: 2000,
      reservedBytes: 0,
      evaluationBytes: 0,
      rankMs: 0,
      pinned: { rows: 0, reason: '' },
      freeCores: 0,
      featuresOnDisk: false,
    };
    const raw = (...given: Parameters<typeof spec>) => ({
      ...spec(...given),
      features: { standardize: 'OFF' as const },
    });
    const plan = cachePlanOf(raw({}, 30_000), facts);
    expect([plan.trainerRows, plan.standbyRows, plan.rowBytes]).toEqual([556, 476, rowBytes / 2]);
    // Standardised features are float32.
    const standardized = (asked: JobSpec) => ({
      ...asked,
      features: { standardize: 'ON' as const },
    });
    expect(cachePlanOf(standardized(raw({}, 30_000)), facts).trainerRows).toBe(278);
  });

  test('is told with its reason', () => {
    const why = (asked: JobSpec, workBytes = 2000) =>
      cachePlanOf(asked, {
        counts,
        samplerBytes: 0,
        deviceBudgetBytes: 0,
        workBytes,
        reservedBytes: 3,
        evaluationBytes: 0,
        rankMs: 0,
        pinned: { rows: 0, reason: '' },
        freeCores: 0,
        featuresOnDisk: false,
      }).explanation;
    expect(why(spec({ ratio: 0.25 }))).toBe('25.0 % of the rows, as asked for');
    expect(why(spec({}))).toContain('same memory on a CPU device');
    expect(why(spec({}, 30_000))).toContain('27.7 % of the rows fit 30000 bytes');
    expect(why(spec({}, 30_000))).toContain('and 3 bytes reserved for PyTorch');
    expect(why(spec({}, 30_000), 0)).toContain('not known before');
  });
});

const onCuda = (asked: JobSpec): JobSpec => ({
  ...asked,
  resources: { ...asked.resources, deviceKind: 'CUDA', deviceNames: [] },
});

describe('a job', () => {
  test.each([
    [spec({ ratio: 0 }), false, false],
    [spec({}), false, false],
    [spec({ ratio: 0.1 }), true, false],
    [spec({ ratio: 0, standbyRatio: 0.1 }), true, false],
    [spec({}, 1000), true, true],
    [spec({ ratio: 0 }, 1000), false, false],
    [spec({ ratio: 0.5 }, 1000), true, false],
    [onCuda(spec({})), true, true],
    [onCuda(spec({ ratio: 0 })), false, false],
  ])('ranks nodes only when something could be cached: %#', (asked, may, automatic) => {
    expect(mayCache(asked)).toBe(may);
    expect(hasAutomaticCache(asked)).toBe(automatic);
  });
});

describe('prefetching', () => {
  function planned(asked: JobSpec, freeCores: number | null, featuresOnDisk = false) {
    const facts = {
      counts,
      samplerBytes: 0,
      deviceBudgetBytes: 0,
      workBytes: 0,
      reservedBytes: 0,
      evaluationBytes: 0,
      rankMs: 0,
      pinned: { rows: 0, reason: '' },
      freeCores,
      featuresOnDisk,
    };
    const { prefetch, prefetchExplanation } = cachePlanOf(asked, facts);
    return [prefetch, prefetchExplanation];
  }

  test('is what was asked for, whatever the devices', () => {
    for (const cores of [0, 8]) {
      expect(planned(spec({ prefetch: 'ON' }), cores)).toEqual([true, 'as asked for']);
      expect(planned(spec({ prefetch: 'OFF' }), cores)).toEqual([false, 'as asked for']);
    }
  });

  test('is on by default where there is something to gain', () => {
    const inMemory = spec({ prefetch: 'AUTO' });
    expect(planned(inMemory, 0)).toEqual([false, 'training keeps all cores busy']);
    expect(planned(inMemory, 1)).toEqual([true, 'devices have cores that training leaves free']);
    expect(planned(inMemory, 0, true)).toEqual([true, 'features are read from disk']);
    expect(planned(inMemory, null)).toEqual([true, 'training leaves the host its cores']);
  });
});
