import { expect, test } from 'vitest';
import { cpuDevices } from '../../../src/supervisor/devices.ts';

const range = (count: number) => Array.from({ length: count }, (_, i) => i);

test('two cores make two devices of one core each', () => {
  expect(cpuDevices([0, 1], null, false)).toEqual([
    { name: 'cpu:0', cores: [0] },
    { name: 'cpu:1', cores: [1] },
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
