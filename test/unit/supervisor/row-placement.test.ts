import { describe, expect, it, test } from 'vitest';
import type { RowPlacement } from '../../../src/records/memory-plan.ts';
import { chunkOf, placeRows, type RowFacts } from '../../../src/supervisor/row-placement.ts';

/** The branches of the procedure, as a table: facts, what is chosen, and why. */

const gib = 2 ** 30;
const device = (name: string, freeGib: number, workGib = 4) => {
  return { name, freeBytes: freeGib * gib, workBytes: workGib * gib };
};

/** n labelled rows of F float32 columns and R hops; 60 % of them train. */
function rowsOf(n: number, columns: number, hops: number) {
  const bytes = n * columns * 4 * (hops + 1);
  return { bytes, trainBytes: 0.6 * bytes, rowBytes: 4 * columns };
}

const facts: RowFacts = {
  ...{ bytes: 10 * gib, trainBytes: 6 * gib, rowBytes: 512, batchSize: 8000 },
  ...{ hostBytes: 380 * gib, lockableBytes: Number.POSITIVE_INFINITY, devices: [] },
  forcedTier: null,
};

type Chosen = Partial<Omit<RowPlacement, 'reason'>> & { readonly reason: string };

const one = [device('cuda:0', 48)];
const four = [0, 1, 2, 3].map((index) => device(`cuda:${index}`, 48));

const table: readonly [what: string, facts: Partial<RowFacts>, chosen: Chosen][] = [
  [
    'no device: the cores read the host memory',
    {},
    { tier: 'HOST', chunk: 1, locked: false, reason: 'cores that train' },
  ],
  [
    'no device, and rows beyond 70 % of the host',
    { bytes: 267 * gib },
    { tier: 'DISK', chunk: 800, reason: 'more than 70 %' },
  ],
  ['no device, rows just within 70 %', { bytes: 265 * gib }, { tier: 'HOST', reason: 'fit' }],
  [
    'the shape of papers100M, four hops: labelled rows alone fit on a device',
    { ...rowsOf(1_550_000, 128, 4), devices: one },
    { tier: 'DEVICE', splits: 'ALL', chunk: 1, shards: 1, reason: 'all rows (3.70 GiB a device)' },
  ],
  [
    'training rows alone fit on the device',
    { bytes: 50 * gib, trainBytes: 30 * gib, devices: one },
    { tier: 'DEVICE', splits: 'TRAIN', shards: 1, reason: 'training rows (30.00 GiB' },
  ],
  [
    'the shape of igb-medium, three hops: training rows are locked in the host',
    { ...rowsOf(10_000_000, 1024, 3), devices: one },
    { tier: 'HOST', locked: true, chunk: 64, reason: 'locked' },
  ],
  [
    'with a device: half of the host is less than they are',
    { bytes: 150 * gib, trainBytes: 111 * gib, hostBytes: 220 * gib, devices: one },
    { tier: 'HOST', locked: false, chunk: 1, reason: 'gathered' },
  ],
  [
    'the limit on locked memory is less than they are',
    { bytes: 100 * gib, trainBytes: 60 * gib, lockableBytes: gib, devices: one },
    { tier: 'HOST', locked: false, chunk: 1, reason: 'gathered' },
  ],
  [
    'the shape of igb-large, three hops: from disk',
    { ...rowsOf(100_000_000, 1024, 3), devices: four },
    { tier: 'DISK', chunk: 64, reason: 'stay on disk' },
  ],
  [
    'four devices share what one cannot hold',
    { bytes: 150 * gib, trainBytes: 90 * gib, devices: four },
    { tier: 'DEVICE', splits: 'ALL', shards: 4, reason: '37.50 GiB a device' },
  ],
  [
    'of four devices one is full: three take training rows',
    {
      ...{ bytes: 150 * gib, trainBytes: 90 * gib },
      devices: [...four.slice(0, 3), device('cuda:3', 3)],
    },
    { tier: 'DEVICE', splits: 'TRAIN', shards: 3, reason: '30.00 GiB a device' },
  ],
  [
    'no device has room for the model: rows stay in the host',
    { devices: [device('cuda:0', 3)] },
    { tier: 'HOST', locked: true, reason: 'locked' },
  ],
  [
    'the host is asked for, whatever fits',
    { devices: one, forcedTier: 'HOST' },
    { tier: 'HOST', locked: true, reason: 'the job asks for HOST' },
  ],
  [
    'the host is asked for, and nothing may be locked',
    { devices: one, forcedTier: 'HOST', lockableBytes: 0 },
    { tier: 'HOST', locked: false, reason: 'the job asks for HOST' },
  ],
  [
    'the disk is asked for, whatever fits',
    { forcedTier: 'DISK' },
    { tier: 'DISK', chunk: 800, reason: 'the job asks for DISK' },
  ],
  [
    'a device is asked for that has no room',
    { bytes: 200 * gib, trainBytes: 120 * gib, devices: one, forcedTier: 'DEVICE' },
    { tier: 'HOST', chunk: 1, reason: 'has no room' },
  ],
];

describe('where rows come from', () => {
  test.each(table)('%s', (_, given, { reason, ...chosen }) => {
    const placement = placeRows({ ...facts, ...given });
    expect(placement).toMatchObject(chosen);
    expect(placement.reason).toContain(reason);
  });

  it('says why not what comes before it', () => {
    const { refused } = placeRows({ ...facts, ...rowsOf(10_000_000, 1024, 3), devices: one });
    expect(refused).toHaveLength(3);
    expect(refused[0]).toContain('not from disk');
    expect(refused[1]).toContain('no room for all rows');
    expect(refused[2]).toContain('no room for training rows');
  });

  it('keeps a tenth of a device free', () => {
    const fits = (bytes: number) =>
      placeRows({ ...facts, bytes, trainBytes: bytes, devices: [device('cuda:0', 40, 6)] }).tier;
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
