import { fstatSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Topologies, type TopologyKey } from '../../../src/prepare/topologies.ts';
import { temporaryFolder } from '../store/store-fixtures.ts';

const idleMs = 1000;
const cora: TopologyKey = {
  datasetDigest: 'c0ra',
  place: 'MEMORY',
  alias: false,
  node: null,
};

/** A store whose topologies are files, and everything that is asked of it. */
function bench(options: { readonly idleMs?: number } = {}) {
  const reserved: number[] = [];
  const native = {
    topologyReserve: () => {
      const path = join(temporaryFolder(), 'topology');
      const fd = openSync(path, 'w+');
      reserved.push(fd);
      return fd;
    },
  };
  const topologies = new Topologies({ native, idleMs: options.idleMs ?? idleMs });
  const makings: { finish: () => void; fail: (error: Error) => void; signal: AbortSignal }[] = [];
  const fill = (fd: number, signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const finish = () => {
        writeSync(fd, 'x'.repeat(64));
        resolve();
      };
      signal.addEventListener('abort', () => reject(new Error('killed')));
      makings.push({ finish, fail: reject, signal });
    });
  const never = new AbortController().signal;
  const share = (key: TopologyKey = cora, signal = never) => topologies.share(key, fill, signal);
  return { topologies, reserved, makings, share };
}

/** Whether a descriptor is open, or has been given to somebody else. */
function isOpen(fd: number | undefined): boolean {
  try {
    return fstatSync(fd ?? -1).size === 64;
  } catch {
    return false;
  }
}

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

test('two attempts on one dataset share one topology, which is made once', async () => {
  const { topologies, reserved, makings, share } = bench();
  const asked = [share(), share()];
  expect(makings).toHaveLength(1);
  makings[0]?.finish();
  const [first, second] = await Promise.all(asked);
  expect(first?.fd).toBe(second?.fd);
  expect(first?.bytes).toBe(64);
  const third = await share();
  expect(reserved).toHaveLength(1);
  expect(topologies.resident).toMatchObject([{ bytes: 64, shares: 3 }]);
  first?.release();
  // A second time changes nothing.
  first?.release();
  expect(topologies.resident).toMatchObject([{ shares: 2 }]);
  second?.release();
  third.release();
  expect(isOpen(reserved[0])).toBe(true);
});

test('the last one gives it back after a while, in which the next one finds it', async () => {
  const { topologies, reserved, makings, share } = bench();
  const first = share();
  makings[0]?.finish();
  (await first).release();
  vi.advanceTimersByTime(idleMs - 1);
  const second = await share();
  expect(makings).toHaveLength(1);
  vi.advanceTimersByTime(10 * idleMs);
  expect(isOpen(reserved[0])).toBe(true);
  second.release();
  vi.advanceTimersByTime(idleMs);
  expect(isOpen(reserved[0])).toBe(false);
  expect(topologies.resident).toEqual([]);
});

test('what is idle goes when another one is made, and at once where nothing is kept', async () => {
  const kept = bench();
  const first = kept.share();
  kept.makings[0]?.finish();
  (await first).release();
  const other = kept.share({ ...cora, alias: true });
  expect(kept.topologies.resident).toEqual([]);
  expect(isOpen(kept.reserved[0])).toBe(false);
  kept.makings[1]?.finish();
  const used = await other;
  // A topology that is used stays.
  const third = kept.share({ ...cora, datasetDigest: 'other' });
  kept.makings[2]?.finish();
  (await third).release();
  expect(kept.topologies.resident).toHaveLength(2);
  used.release();
  const none = bench({ idleMs: 0 });
  const only = none.share();
  none.makings[0]?.finish();
  (await only).release();
  expect(isOpen(none.reserved[0])).toBe(false);
});

test('who is stopped leaves the making to the others; the last one ends it', async () => {
  const { topologies, reserved, makings, share } = bench();
  const [one, two] = [new AbortController(), new AbortController()];
  const first = share(cora, one.signal);
  const second = share(cora, two.signal);
  one.abort();
  await expect(first).rejects.toMatchObject({ code: 'ABORTED' });
  expect(makings[0]?.signal.aborted).toBe(false);
  two.abort();
  await expect(second).rejects.toMatchObject({ code: 'ABORTED' });
  expect(makings[0]?.signal.aborted).toBe(true);
  expect(isOpen(reserved[0])).toBe(false);
  // The next one has it made anew, and one that was stopped before asks for nothing.
  await expect(share(cora, one.signal)).rejects.toMatchObject({ code: 'ABORTED' });
  const next = share();
  expect(makings).toHaveLength(2);
  makings[1]?.finish();
  (await next).release();
  topologies.close();
  expect(topologies.resident).toEqual([]);
});

test('a making that fails fails all who wait, and the next one tries again', async () => {
  const { topologies, makings, share } = bench();
  const asked = [share(), share()];
  makings[0]?.fail(new Error('no memory'));
  for (const each of asked) await expect(each).rejects.toThrow('no memory');
  expect(topologies.resident).toEqual([]);
  const again = share();
  makings[1]?.finish();
  expect((await again).bytes).toBe(64);
});

test('each NUMA node has its own; who is on none takes any', async () => {
  const { topologies, reserved, makings, share } = bench();
  const asked = [share({ ...cora, node: 0 }), share({ ...cora, node: 1 })];
  expect(makings).toHaveLength(2);
  for (const making of makings) making.finish();
  const shared = await Promise.all(asked);
  expect(new Set(shared.map(({ fd }) => fd)).size).toBe(2);
  const any = await share();
  expect(reserved).toContain(any.fd);
  expect(makings).toHaveLength(2);
  expect(topologies.resident.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(128);
  for (const { release } of [...shared, any]) release();
});

test('closing gives back what is idle and stops what is made, and leaves shares', async () => {
  const { topologies, reserved, makings, share } = bench();
  const held = share();
  makings[0]?.finish();
  const topology = await held;
  const making = share({ ...cora, alias: true });
  topologies.close();
  await expect(making).rejects.toThrow('killed');
  expect(isOpen(reserved[0])).toBe(true);
  topology.release();
  topologies.close();
  expect(isOpen(reserved[0])).toBe(false);
});
