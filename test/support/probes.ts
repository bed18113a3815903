import type { DeviceProbe, ProbeAnswer, ProbedDevice } from '../../src/base/device-probe.ts';

/** Answers of a device plug-in, made up. */

export const fine: ProbeAnswer = { code: 'OK', message: '', remedy: '' };

export function probedDevice(index: number, change: Partial<ProbedDevice> = {}): ProbedDevice {
  return {
    index,
    name: 'NVIDIA H200',
    uuid: `GPU-${index}`,
    pci: `0000:0${index}:00.0`,
    architecture: 90,
    multiprocessors: 132,
    totalBytes: 150e9,
    hasOwnMemory: true,
    freeBytes: 140e9,
    computeMode: 0,
    mig: 0,
    mps: 0,
    numaNode: 0,
    processes: [],
    instances: [],
    answer: fine,
    opened: fine,
    registered: fine,
    torch: null,
    ...change,
  };
}

export function deviceProbe(
  devices: readonly ProbedDevice[],
  change: Partial<DeviceProbe> = {},
): DeviceProbe {
  const made = { answer: fine, build: 'CUDA 13.0 90 abc', driverVersion: 13000, monitor: '' };
  return { ...made, torch: null, devices, links: [], ...change };
}
