import { existsSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import {
  type Device,
  DeviceKind,
  DeviceState,
  HostService,
} from '../../src/api/gen/gnnd/v1/host_service_pb.ts';
import { TestDaemon } from '../support/daemon.ts';

const hasDriver = existsSync('/proc/driver/nvidia/version');
let daemon: TestDaemon;

beforeAll(async () => {
  const sim = ['--sim-devices', '0,0,1', '--sim-memory-bytes', '1000000000'];
  const flags = [...sim, '--cuda-devices', 'auto'];
  daemon = await TestDaemon.start({ cpuDevices: 2, datasets: ['cora'], flags });
});
async function devices(): Promise<readonly Device[]> {
  return (await daemon.call(HostService.method.listDevices, {})).devices;
}

test('devices of all kinds are listed, and a device that stands twice is two', async () => {
  const listed = (await devices()).filter(({ kind }) => kind !== DeviceKind.CUDA);
  expect(listed.map(({ name }) => name)).toEqual([
    ...['devices/cpu:0', 'devices/cpu:1', 'devices/sim:0/0', 'devices/sim:0/1', 'devices/sim:1'],
  ]);
  const [, , half, , whole] = listed;
  expect(half).toMatchObject({
    ...{ kind: DeviceKind.SIM, state: DeviceState.FREE, product: 'simulated device' },
    ...{ memoryBytes: 1_000_000_000n, budgetBytes: 500_000_000n, cores: [] },
  });
  expect(whole?.budgetBytes).toBe(1_000_000_000n);
  expect(whole?.uuid).not.toBe(half?.uuid);
  expect(half?.note).toBe('');
});

test.skipIf(hasDriver)('the host says why it has no GPU', async () => {
  const { notes } = await daemon.call(HostService.method.getHost, {});
  expect(notes.filter((note) => note.startsWith('no CUDA devices: '))).toHaveLength(1);
});
