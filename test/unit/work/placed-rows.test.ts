import { describe, expect, test } from 'vitest';
import type { LinkRates } from '../../../src/base/link-classes.ts';
import type { CrewDevice } from '../../../src/devices/seat.ts';
import { counters, type ExecutorSnapshot } from '../../../src/native/contract.ts';
import type { JobSpec } from '../../../src/spec/job-spec.ts';
import {
  type PlacingFacts,
  placeRows,
  samplerSetsOf,
  withMeasured,
} from '../../../src/work/placed-rows.ts';
import { someSpec } from '../store/job-values.ts';

const rates: LinkRates = { HOST: 10, NVLINK: 50 };

/** `sim:N` with NVLINK to these. */
function device(index: number, peers: readonly number[], of: LinkRates = rates): CrewDevice {
  return {
    name: `sim:${index}`,
    cores: [0],
    node: null,
    accelerator: {
      ...{ kind: 'SIM', uuid: `SIM-${index}`, product: '', pci: '', bits: '' },
      ...{ totalBytes: 1e9, budgetBytes: 1e9, rates: of },
      peers: peers.map((peer) => ({ name: `sim:${peer}`, uuid: `sim:${peer}`, link: 'NVLINK' })),
    },
  };
}

const linked = [device(0, [1, 2]), device(1, [0, 2]), device(2, [0, 1])];

/** A thousand rows, of which a hundred are read by every batch and the others by one in ten. */
const someCache: JobSpec['cache'] = {
  ...{ ...someSpec.cache, policy: 'COMBINED', ratio: 0.2, placement: 'AUTO' },
};
const facts: PlacingFacts = {
  spec: { cache: someCache },
  runs: [
    { rows: 100, hotness: 10 },
    { rows: 900, hotness: 1 },
  ],
  rowBytes: 100,
  rows: 200,
  batchesPerEpoch: 10,
  devices: linked,
  trainers: new Set(['sim:1', 'sim:2']),
};

function placed(change: Partial<PlacingFacts>, cache: Partial<JobSpec['cache']> = {}) {
  return placeRows({ ...facts, spec: { cache: { ...someCache, ...cache } }, ...change });
}

describe('rows of Trainers on linked devices', () => {
  test('are the hottest on each and others dealt, with what is expected of batches', () => {
    const found = placed({});
    expect(found?.endRank).toBe(300);
    expect(found?.plan.explanation).toMatch(/^2 devices read each other's rows; .*NVLINK 50\.0/);
    // 1,900 rows an epoch: 1,000 hot ones, 100 of its own, 100 of the other's; 2 and 10 ns each.
    const expected = { own: 1100 / 1900, peer: 100 / 1900, host: 700 / 1900, waitNs: 720 };
    expect(found?.plan.devices).toEqual(
      ['sim:1', 'sim:2'].map((name) => ({
        ...{ device: name, copiedRows: 100, dealtRows: 100, measured: null },
        expected,
      })),
    );
    const dealt = [
      { device: 1, row: 100 },
      { device: 2, row: 100 },
    ];
    expect(found?.views.get('sim:2')).toEqual({
      device: 2,
      lines: [
        { from: 0, to: 100, places: [{ device: 2, row: 0 }] },
        { from: 100, to: 300, places: dealt },
      ],
      rowNs: [0, 2, 0],
      hostRowNs: 10,
    });
    expect(found?.views.has('sim:0')).toBe(false);
  });

  test('of an automatic cache are as many as lie in whole blocks of shared memory', () => {
    const room = { rowBytes: 2 ** 19, rows: 203 };
    expect(placed(room, { ratio: -1 })?.plan.devices[0]).toMatchObject({ dealtRows: 100 });
    expect(placed(room)?.plan.devices[0]).toMatchObject({ dealtRows: 103 });
  });

  test('are a cache each where there is nothing to gain, which is said', () => {
    const why = (change: Partial<PlacingFacts>, cache: Partial<JobSpec['cache']> = {}) => {
      const found = placed(change, cache);
      expect(found?.views.size).toBe(0);
      expect(found?.endRank).toBe(0);
      return found?.plan.explanation;
    };
    const apart = [device(0, []), device(1, []), device(2, [])];
    const slow = [1, 2].map((index) => device(index, [3 - index], { HOST: 10, NVLINK: 9 }));
    expect(why({}, { placement: 'NONE' })).toBe('none, as asked for');
    expect(why({}, { policy: 'DEGREE' })).toMatch(/DEGREE does not say/);
    expect(why({ rows: 0 })).toBe('none: devices keep no rows');
    expect(why({ devices: apart })).toMatch(/^none: no two Trainers' devices/);
    expect(why({ devices: [device(0, []), ...slow] })).toMatch(/no faster than the host/);
  });

  test('are nothing to speak of with one Trainer, or on cores', () => {
    expect(placed({ trainers: new Set(['sim:1']) })).toBe(null);
    const cores = linked.map(({ name, node }) => ({ name, cores: [0], node }));
    expect(placed({ devices: cores })).toBe(null);
  });

  test('are lost least where whole pairs sample', () => {
    const all = new Set(['sim:0', 'sim:1', 'sim:2', 'sim:3']);
    const sets = (devices: readonly CrewDevice[]) =>
      samplerSetsOf({ ...facts, devices, trainers: all });
    const pairs = [device(0, [2]), device(1, [3]), device(2, [0]), device(3, [1])];
    expect(sets(pairs)).toEqual([[], ['sim:0'], ['sim:0', 'sim:2'], ['sim:0', 'sim:1', 'sim:2']]);
    // Nothing to choose: all are linked, or none.
    const mesh = [0, 1, 2, 3].map((index) =>
      device(
        index,
        [0, 1, 2, 3].filter((other) => other !== index),
      ),
    );
    expect(sets(mesh)).toEqual([]);
    expect(sets([0, 1, 2, 3].map((index) => device(index, [])))).toEqual([]);
  });

  test('stand beside what batches read, of all who trained there', () => {
    const found = placed({});
    if (found === null) throw new Error('nothing was placed');
    const trainer = (of: Partial<Record<keyof typeof counters, number>>) => {
      const values: number[] = [];
      for (const [name, value] of Object.entries(of)) {
        values[counters[name as keyof typeof counters]] = value;
      }
      return { role: 'TRAINER', device: 1, counters: values } as unknown as ExecutorSnapshot;
    };
    const seen = withMeasured(found, linked, [
      trainer({ deviceRows: 40, peerRows: 20, hostRows: 10, batchesTrained: 2, rowWaitNs: 300 }),
      trainer({ deviceRows: 10, diskRows: 20, batchesTrained: 1, rowWaitNs: 300 }),
    ]);
    const [first, second] = seen.plan.devices;
    expect(first?.measured).toEqual({ own: 0.5, peer: 0.2, host: 0.3, waitNs: 200 });
    expect(second?.measured).toBe(null);
    expect(seen.views).toBe(found.views);
  });
});
