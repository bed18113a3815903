import { describe, expect, test } from 'vitest';
import { type PinnedFacts, pinnedPlanOf } from '../../../src/plan/pinned-plan.ts';
import type { JobSpec } from '../../../src/spec/job-spec.ts';
import { someSpec } from '../store/job-values.ts';

const counts = {
  numNodes: 1000,
  numEdges: 5000,
  numFeatures: 100,
  featureDtype: 'float32' as const,
  task: 'CLASSIFICATION' as const,
  numClasses: 3,
  train: 10,
  val: 10,
  test: 10,
};
const rowBytes = 400;
const allBytes = 1000 * rowBytes;

type Resources = Partial<JobSpec['resources']>;

function spec(resources: Resources, changes: Partial<JobSpec> = {}): JobSpec {
  const sim = { deviceKind: 'SIM', deviceNames: [], deviceMemoryBytes: 0, hostMemoryBytes: 0 };
  return {
    ...someSpec,
    cache: { ...someSpec.cache, ratio: 0.1, standbyRatio: -1 },
    ...changes,
    resources: {
      ...someSpec.resources,
      ...(sim as Resources),
      pinnedFeaturesBytes: -1,
      ...resources,
    },
  };
}

function plan(asked: JobSpec, changes: Partial<PinnedFacts> = {}) {
  return pinnedPlanOf(asked, {
    ...{ counts, rowBytes, hostBytes: 10 * allBytes, surelyBytes: allBytes },
    ...{ deviceBytes: 0, samplerBytes: 0 },
    rowsWithin: (bytes) => Math.min(1000, Math.max(0, Math.floor((bytes - 4096) / rowBytes))),
    ...changes,
  });
}

describe('rows that devices read in the memory of the host', () => {
  test('are all of them where half of what the job leaves holds them', () => {
    const { rows, bytes, reason } = plan(spec({}));
    expect(rows).toBe(1000);
    expect(bytes).toBe(4096 * Math.ceil((4096 + allBytes) / 4096));
    expect(reason).toBe('100.0 % of the rows, as the host has room');
  });

  test.each([
    // What is left, and rows of it: a half of it, or what the files leave in the page cache.
    [3 * allBytes, 1000],
    [2 * allBytes, Math.floor((allBytes - 4096) / rowBytes)],
    [1.2 * allBytes, Math.floor((0.2 * allBytes - 4096) / rowBytes)],
    // The files have no room there anyway.
    [0.8 * allBytes, Math.floor((0.4 * allBytes - 4096) / rowBytes)],
  ])('of %d bytes that are left: %d', (left, rows) => {
    expect(plan(spec({}), { hostBytes: left, surelyBytes: 0 }).rows).toBe(rows);
  });

  test('are bounded by the memory that the spec leaves features', () => {
    const bounded = plan(spec({ hostMemoryBytes: 0.5 * allBytes }));
    expect(bounded.rows).toBe(Math.floor((0.25 * allBytes - 4096) / rowBytes));
  });

  test('are none where the host has no room, which is said', () => {
    const { rows, bytes, reason } = plan(spec({}), { surelyBytes: 10 * allBytes });
    expect([rows, bytes]).toEqual([0, 0]);
    expect(reason).toBe(
      `none: the rest of the job leaves 0 of ${10 * allBytes} bytes of the host's memory, ` +
        'which features need',
    );
  });

  test('are none where devices keep as many themselves', () => {
    const whole = { ...someSpec.cache, ratio: 1, standbyRatio: -1 };
    const all = 'none: devices have room for all rows themselves';
    expect(plan(spec({}, { cache: whole })).reason).toBe(all);
    const automatic = { ...someSpec.cache, ratio: -1, standbyRatio: -1 };
    const free = spec({}, { cache: automatic });
    expect(plan(free, { deviceBytes: 2 * allBytes }).reason).toBe(all);
    // The Sampler's part of a device and a quarter for work do not count.
    expect(plan(free, { deviceBytes: 1.3 * allBytes }).rows).toBe(1000);
    expect(plan(free, { deviceBytes: 2 * allBytes, samplerBytes: allBytes }).rows).toBe(1000);
    // A tier that is no larger than what a device keeps serves nobody.
    const tight = { deviceBytes: 1.2 * allBytes, hostBytes: 1.2 * allBytes, surelyBytes: 0 };
    expect(plan(free, tight).reason).toMatch(/^none: devices have room for as many rows/);
  });

  test('are those that are asked for, whatever there is', () => {
    const asked = spec({ pinnedFeaturesBytes: 4096 + 30 * rowBytes });
    expect(plan(asked, { surelyBytes: 10 * allBytes, deviceBytes: 100 * allBytes })).toEqual({
      rows: 30,
      bytes: 4 * 4096,
      reason: '3.0 % of the rows, as asked for',
    });
    expect(plan(spec({ pinnedFeaturesBytes: 100 })).reason).toBe(
      'none: 100 bytes, as asked for, hold no row',
    );
    expect(plan(spec({ pinnedFeaturesBytes: 0 })).reason).toBe('none, as asked for');
  });

  test('are for nobody where no device with memory of its own trains', () => {
    expect(plan(spec({ deviceKind: 'CPU' }))).toEqual({ rows: 0, bytes: 0, reason: '' });
    const names = { deviceKind: 'AUTO', deviceNames: ['sim:0', 'cpu:0'], devices: 2 } as const;
    const split = { policy: 'FIXED', samplers: 1, standby: 'OFF' } as const;
    expect(plan(spec(names, { placement: split })).reason).toBe('');
    expect(plan(spec(names, { placement: { ...split, standby: 'ALWAYS' } })).rows).toBe(1000);
  });
});
