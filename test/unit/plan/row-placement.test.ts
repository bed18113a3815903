import { describe, expect, it, test } from 'vitest';
import { chunkOf, placeRows, type RowFacts } from '../../../src/plan/row-placement.ts';
import type { RowPlacement } from '../../../src/records/memory-plan.ts';

/** The branches of the procedure, as a table: facts, what is chosen, and why. */

const gib = 2 ** 30;
const device = (freeGib: number, workGib = 4) => {
  return { freeBytes: freeGib * gib, workBytes: workGib * gib };
};

/** n labelled rows of F float32 columns and R hops; 60 % of them train. */
function rowsOf(n: number, columns: number, hops: number) {
  const bytes = n * columns * 4 * (hops + 1);
  return { bytes, trainBytes: 0.6 * bytes, rowBytes: 4 * columns };
}

const facts: RowFacts = {
  ...{ bytes: 10 * gib, trainBytes: 6 * gib, rowBytes: 512, batchSize: 8000 },
  ...{ hostBytes: 380 * gib, device: null },
  forcedTier: null,
};

type Chosen = Partial<Omit<RowPlacement, 'reason'>> & { readonly reason: string };

const table: readonly [what: string, facts: Partial<RowFacts>, chosen: Chosen][] = [
  [
    'no device: the cores read the host memory',
    {},
    { tier: 'HOST', chunk: 1, reason: 'cores that train' },
  ],
  [
    'no device, and rows beyond 70 % of the host',
    { bytes: 267 * gib },
    { tier: 'DISK', chunk: 800, reason: 'more than 70 %' },
  ],
  ['no device, rows just within 70 %', { bytes: 265 * gib }, { tier: 'HOST', reason: 'fit' }],
  [
    'the shape of papers100M, four hops: labelled rows alone fit on a device',
    { ...rowsOf(1_550_000, 128, 4), device: device(48) },
    { tier: 'DEVICE', splits: 'ALL', chunk: 1, reason: 'all rows (3.70 GiB on each device)' },
  ],
  [
    'training rows alone fit on the device',
    { bytes: 50 * gib, trainBytes: 30 * gib, device: device(48) },
    { tier: 'DEVICE', splits: 'TRAIN', chunk: 1, reason: 'training rows (30.00 GiB' },
  ],
  [
    'the shape of igb-medium, three hops: gathered in the host',
    { ...rowsOf(10_000_000, 1024, 3), device: device(48) },
    { tier: 'HOST', splits: 'ALL', chunk: 1, reason: 'gathered for devices' },
  ],
  [
    'the shape of igb-large, three hops: from disk',
    { ...rowsOf(100_000_000, 1024, 3), device: device(48) },
    { tier: 'DISK', chunk: 64, reason: 'stay on disk' },
  ],
  [
    'a device that holds more than a small host may',
    { bytes: 50 * gib, trainBytes: 30 * gib, hostBytes: 64 * gib, device: device(80) },
    { tier: 'DEVICE', splits: 'ALL', chunk: 1, reason: 'all rows (50.00 GiB' },
  ],
  [
    'no room for the model on the device: rows stay in the host',
    { device: device(3) },
    { tier: 'HOST', chunk: 1, reason: 'gathered for devices' },
  ],
  [
    'the host is asked for, whatever fits',
    { device: device(48), forcedTier: 'HOST' },
    { tier: 'HOST', reason: 'the job asks for HOST' },
  ],
  [
    'the host is asked for, and the rows are larger',
    { bytes: 400 * gib, forcedTier: 'HOST' },
    { tier: 'HOST', chunk: 1, reason: 'the job asks for HOST' },
  ],
  [
    'the disk is asked for, whatever fits',
    { forcedTier: 'DISK' },
    { tier: 'DISK', chunk: 800, reason: 'the job asks for DISK' },
  ],
  [
    'a device is asked for, whatever the host is',
    { device: device(48), hostBytes: 4 * gib, forcedTier: 'DEVICE' },
    { tier: 'DEVICE', splits: 'ALL', reason: 'the job asks for DEVICE' },
  ],
  [
    'a device is asked for that has no room',
    { bytes: 200 * gib, trainBytes: 120 * gib, device: device(48), forcedTier: 'DEVICE' },
    { tier: 'HOST', chunk: 1, reason: 'asks for DEVICE, which has no room; 200.00 GiB' },
  ],
];

describe('where rows come from', () => {
  test.each(table)('%s', (_, given, { reason, ...chosen }) => {
    const placement = placeRows({ ...facts, ...given });
    expect(placement).toMatchObject(chosen);
    expect(placement.reason).toContain(reason);
  });

  it('says why not what comes before it', () => {
    const { refused } = placeRows({
      ...{ ...facts, ...rowsOf(100_000_000, 1024, 3) },
      device: device(48),
    });
    expect(refused).toHaveLength(3);
    expect(refused[0]).toContain('no room for all rows');
    expect(refused[1]).toContain('no room for training rows');
    expect(refused[2]).toContain("not in the host's memory");
  });

  it('keeps a tenth of a device free', () => {
    const fits = (bytes: number) =>
      placeRows({ ...facts, bytes, trainBytes: bytes, device: device(40, 6) }).tier;
    expect(fits(30 * gib)).toBe('DEVICE');
    expect(fits(30.1 * gib)).toBe('HOST');
  });
});

describe('a chunk', () => {
  it('divides the batch and is long enough to read', () => {
    expect(chunkOf({ batchSize: 8000, rowBytes: 512 })).toBe(800);
    expect(chunkOf({ batchSize: 1024, rowBytes: 512 })).toBe(512);
    expect(chunkOf({ batchSize: 1024, rowBytes: 2 ** 20 })).toBe(1);
    expect(chunkOf({ batchSize: 7, rowBytes: 4 })).toBe(7);
  });
});
