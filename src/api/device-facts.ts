import type { HostDevices } from '../devices/host-devices.ts';
import type { Accelerator } from '../devices/seat.ts';
import type { Runner } from '../jobs/runner.ts';
import { deviceKindOf } from '../spec/device-kinds.ts';
import type { DeviceFacts } from './host-handlers.ts';

/** Who has which device, from the scheduler's state; and those that nobody may have. */
export function deviceFacts({ devices, unused }: HostDevices, runner: Runner): DeviceFacts[] {
  const used = devices.map(({ name, cores, accelerator }): DeviceFacts => {
    const known = runner.state.devices.find((device) => device.name === name);
    const holder = [...runner.attempts.values()].find(({ input }) =>
      input.devices.some((device) => device.name === name),
    );
    const isQuarantined = (known?.quarantine ?? null) !== null;
    const free = known?.drained === true ? 'DRAINED' : 'FREE';
    return {
      name,
      ...factsOf(accelerator, cores),
      state: isQuarantined ? 'QUARANTINED' : holder === undefined ? free : 'ALLOCATED',
      job: holder?.input.jobId ?? null,
    };
  });
  const idle = unused.map(({ name, probed, why }): DeviceFacts => {
    const { uuid, pci, name: product, totalBytes: memoryBytes } = probed;
    const kind = deviceKindOf(name) ?? 'CUDA';
    const identity = { name, kind, uuid, pci, product, memoryBytes, budgetBytes: 0 };
    return { ...identity, state: 'UNUSED', job: null, cores: [], peers: [], note: why, bits: '' };
  });
  return [...used, ...idle];
}

/** What a device is; executors on one that has memory of its own may use any core. */
function factsOf(accelerator: Accelerator | undefined, cores: readonly number[]) {
  if (accelerator === undefined) {
    const nothing = { uuid: '', product: '', pci: '', memoryBytes: 0, budgetBytes: 0, bits: '' };
    return { ...nothing, kind: 'CPU', cores, peers: [], note: '' } as const;
  }
  const { totalBytes: memoryBytes, ...facts } = accelerator;
  return { ...facts, memoryBytes, cores: [], note: '' };
}
