import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cpuDevices as devicesOf } from '../../../src/devices/devices.ts';
import { numaNodes } from '../../../src/devices/numa.ts';
import { temporaryFolder } from '../store/store-fixtures.ts';

const none: ReadonlyMap<number, number> = new Map();

function cpuDevices(cores: readonly number[], count: number | null, shareCores: boolean) {
  return devicesOf({ cores, count, shareCores, nodes: none });
}

const range = (count: number) => Array.from({ length: count }, (_, i) => i);

test('two cores make two devices of one core each', () => {
  expect(cpuDevices([0, 1], null, false)).toEqual([
    { name: 'cpu:0', cores: [0], node: null },
    { name: 'cpu:1', cores: [1], node: null },
  ]);
});

test('every core belongs to exactly one device, however many there are', () => {
  for (const cores of [1, 2, 3, 7, 8, 16, 61]) {
    for (let count = 1; count <= cores; count += 1) {
      const devices = cpuDevices(range(cores), count, false);
      expect(devices).toHaveLength(count);
      expect(devices.flatMap((device) => device.cores)).toEqual(range(cores));
      expect(devices.every((device) => device.cores.length > 0)).toBe(true);
    }
  }
});

test('by default a large host has 8 devices', () => {
  expect(cpuDevices(range(64), null, false).map(({ cores }) => cores.length)).toEqual(
    Array(8).fill(8),
  );
});

test('more devices than cores must be asked for', () => {
  expect(() => cpuDevices([0, 1], 5, false)).toThrow(/5 CPU devices on 2 cores/);
  expect(cpuDevices([0, 1], 5, true).map(({ cores }) => cores)).toEqual([[0], [1], [0], [1], [0]]);
});

/** A /sys/devices/system/node with these cpulists, by node. */
function nodeFolder(lists: readonly string[]): string {
  const folder = temporaryFolder();
  lists.forEach((list, node) => {
    mkdirSync(join(folder, `node${node}`));
    writeFileSync(join(folder, `node${node}`, 'cpulist'), `${list}\n`);
  });
  writeFileSync(join(folder, 'possible'), `0-${lists.length - 1}\n`);
  return folder;
}

test('the nodes of cores are those that the kernel lists; one node is none', () => {
  const two = numaNodes(nodeFolder(['0-1,4-5', '2-3,6-7']));
  expect([...two].sort(([a], [b]) => a - b)).toEqual([
    ...[0, 0, 1, 1, 0, 0, 1, 1].map((node, core) => [core, node]),
  ]);
  // The third has memory and no cores.
  expect(numaNodes(nodeFolder(['0-1', '2', ''])).size).toBe(3);
  expect(numaNodes(nodeFolder(['0-7'])).size).toBe(0);
  expect(numaNodes('/nonexistent').size).toBe(0);
});

test('a device lies on one NUMA node where cores and devices allow it', () => {
  // Two sockets whose hyper-threads are numbered last, as usual.
  const nodes = numaNodes(nodeFolder(['0-3,8-11', '4-7,12-15']));
  const four = devicesOf({ cores: range(16), count: 4, shareCores: false, nodes });
  expect(four.map(({ cores, node }) => [cores, node])).toEqual([
    [[0, 1, 2, 3], 0],
    [[8, 9, 10, 11], 0],
    [[4, 5, 6, 7], 1],
    [[12, 13, 14, 15], 1],
  ]);
  const three = devicesOf({ cores: range(16), count: 3, shareCores: false, nodes });
  expect(three.map(({ node }) => node)).toEqual([0, null, 1]);
  expect(three.flatMap(({ cores }) => cores).sort((a, b) => a - b)).toEqual(range(16));
  // Without such nodes cores stay in the order in which they came.
  const plain = devicesOf({ cores: range(16), count: 4, shareCores: false, nodes: none });
  expect(plain[1]).toEqual({ name: 'cpu:1', cores: [4, 5, 6, 7], node: null });
});
