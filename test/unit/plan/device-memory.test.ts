import { describe, expect, it } from 'vitest';
import type { CrewDevice } from '../../../src/devices/seat.ts';
import { counters, type ExecutorSnapshot } from '../../../src/native/contract.ts';
import {
  type DeviceJob,
  deviceOptionsOf,
  reservedBytesOf,
  standbyRoomOf,
  takenBeside,
  torchBytesOf,
} from '../../../src/plan/device-memory.ts';
import type { ExecutorRole } from '../../../src/records/job-record.ts';
import type { JobSpec, StandbyPolicy } from '../../../src/spec/job-spec.ts';

const samplerDeviceBytes = 7 * 2 ** 20;

function jobOf(standby: StandbyPolicy, reservedBytes = 0): DeviceJob {
  const spec = { placement: { standby } } as unknown as JobSpec;
  return {
    spec,
    layout: { memory: { samplerDeviceBytes } },
    reservedBytes,
  } as unknown as DeviceJob;
}

function sim(name: string, budgetBytes: number): CrewDevice {
  const accelerator = {
    kind: 'SIM',
    ...{
      uuid: `SIM ${name.split('/')[0]}`,
      product: '',
      pci: '',
      peers: [],
      rates: { HOST: 10 },
      bits: '',
    },
    totalBytes: 2 * budgetBytes,
    budgetBytes,
  } as const;
  return { name, cores: [0], node: null, accelerator };
}

const cpu: CrewDevice = { name: 'cpu:0', cores: [0], node: null };

describe('the memory of a device', () => {
  const budget = 100 * 2 ** 20;
  const of = (role: ExecutorRole, standby: StandbyPolicy, devices: number) =>
    deviceOptionsOf(sim('sim:0', budget), role, jobOf(standby), devices).budgetBytes;

  it('is nothing that a job counts on the CPU', () => {
    expect(deviceOptionsOf(cpu, 'TRAINER', jobOf('AUTO'), 2)).toEqual({
      plugin: '',
      budgetBytes: 0,
    });
  });

  it('is all of an executor that is alone there', () => {
    expect(of('TRAINER', 'AUTO', 2)).toBe(budget);
    expect(of('SAMPLER', 'OFF', 2)).toBe(budget);
  });

  it('is divided where a standby Trainer lives beside a Sampler, and never twice', () => {
    const sampler = of('SAMPLER', 'AUTO', 2);
    expect(sampler).toBe(samplerDeviceBytes);
    expect(sampler + of('STANDBY', 'AUTO', 2)).toBe(budget);
    // On a single device there is always one.
    expect(of('SAMPLER', 'OFF', 1) + of('STANDBY', 'OFF', 1)).toBe(budget);
  });

  it('is not all a Trainer that computes with PyTorch, which has a part of its own', () => {
    const reserved = 2 ** 20;
    const trainer = (role: ExecutorRole) =>
      deviceOptionsOf(sim('sim:0', budget), role, jobOf('AUTO', reserved), 2);
    expect(trainer('TRAINER').budgetBytes).toBe(budget - reserved);
    expect(trainer('STANDBY').budgetBytes).toBe(of('STANDBY', 'AUTO', 2) - reserved);
    expect(trainer('SAMPLER').budgetBytes).toBe(of('SAMPLER', 'AUTO', 2));
  });

  it('is shared with PyTorch, which has what rows leave, and what is reserved at least', () => {
    const rows = { trainerRows: 900, standbyRows: 500, rowBytes: 100, reservedBytes: 2000 };
    const torchBytes = (role: ExecutorRole, budgetBytes: number) =>
      torchBytesOf({ budgetBytes }, role, rows);
    expect(torchBytes('TRAINER', 100_000)).toBe(10_000);
    expect(torchBytes('STANDBY', 100_000)).toBe(50_000);
    expect(torchBytes('TRAINER', 91_000)).toBe(2000);
    expect(torchBytes('SAMPLER', 100_000)).toBe(2000);
  });
});

function executor(
  role: ExecutorRole,
  held: Partial<Record<keyof typeof counters, number>>,
  device = 0,
) {
  const values = new Array<number>(Object.keys(counters).length).fill(0);
  for (const [name, bytes] of Object.entries(held)) {
    values[counters[name as keyof typeof counters]] = bytes;
  }
  return { role, device, counters: values } as unknown as ExecutorSnapshot;
}

describe('what is reserved of a device', () => {
  it('is one and a half gibibytes of a GPU before anything was measured, nothing of cores', () => {
    const gpu = sim('cuda:0', 80e9);
    const cuda = { ...gpu, accelerator: { ...gpu.accelerator, kind: 'CUDA' } } as CrewDevice;
    expect(reservedBytesOf([cuda], 0)).toBe(1.5 * 2 ** 30);
    expect(reservedBytesOf([cuda, cpu], 2e9)).toBe(2.2e9);
    const slice = { ...cuda, accelerator: { ...cuda.accelerator, budgetBytes: 2e9 } };
    expect(reservedBytesOf([slice as CrewDevice, cuda], 0)).toBe(0.5e9);
    expect(reservedBytesOf([cpu], 0)).toBe(0);
    expect(reservedBytesOf([gpu], 0)).toBe(0);
    expect(reservedBytesOf([gpu], 1000)).toBe(1100);
    // Strangers on the device are no reason to leave it all to them.
    expect(reservedBytesOf([cuda], 79e9)).toBe(40e9);
  });

  it('is what Trainers found taken beside what executors on the same device hold', () => {
    const sampler = { heldTopologyBytes: 500, heldWorkspaceBytes: 100, besideBytes: 9e9 };
    const devices = [sim('cuda:0', 80e9), sim('cuda:1', 80e9)];
    const crew = [
      executor('SAMPLER', sampler, 0),
      executor('STANDBY', { besideBytes: 1000, heldWorkspaceBytes: 50 }, 0),
      executor('TRAINER', { besideBytes: 300, heldWorkspaceBytes: 50 }, 1),
    ];
    expect(takenBeside(crew, devices)).toBe(400);
    expect(takenBeside([executor('TRAINER', {})], devices)).toBe(0);
    // Two logical devices of one.
    const halves = [sim('cuda:0/0', 40e9), sim('cuda:0/1', 40e9)];
    const first = executor('TRAINER', { besideBytes: 900 }, 0);
    const second = executor('TRAINER', { besideBytes: 100, heldCacheBytes: 700 }, 1);
    expect(takenBeside([first, second], halves)).toBe(200);
  });
});

describe('room for standby Trainers', () => {
  const trial = [
    executor('SAMPLER', { heldTopologyBytes: 500, heldWorkspaceBytes: 100 }),
    executor('TRAINER', { heldWorkspaceBytes: 200, heldModelBytes: 20, heldCacheBytes: 9000 }),
    executor('STANDBY', { heldWorkspaceBytes: 100, heldModelBytes: 20 }),
  ];

  it('is what the Sampler leaves, beside what a Trainer without a cache needs and a tenth', () => {
    expect(standbyRoomOf(trial, [cpu, sim('sim:0', 1000), sim('sim:1', 550)], 30)).toEqual([
      { device: 'sim:0', freeBytes: 400, neededBytes: 272 },
      { device: 'sim:1', freeBytes: 0, neededBytes: 272 },
    ]);
  });
});
