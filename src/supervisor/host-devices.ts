import type { DeviceProbe } from '../base/device-probe.ts';
import type { DaemonConfig } from '../config/daemon-config.ts';
import { type Accelerators, acceleratorsOf, type UnusedDevice } from './accelerators.ts';
import { cpuDevices } from './devices.ts';
import { numaNodes } from './numa.ts';
import { probeDevices } from './probe-devices.ts';
import type { CrewDevice } from './seat.ts';

/** All devices of the host, CPU devices first. */
export interface HostDevices {
  readonly devices: readonly CrewDevice[];
  readonly unused: readonly UnusedDevice[];
  readonly notes: readonly string[];
}

type DeviceConfig = Pick<
  DaemonConfig,
  'cpuDevices' | 'shareCores' | 'cudaDevices' | 'shareGpus' | 'simDevices' | 'simMemoryBytes'
>;

/** Throws RangeError with every sentence about what the configuration asks for in vain. */
export async function findDevices(
  cores: readonly number[],
  config: DeviceConfig,
  probe = probeDevices,
): Promise<HostDevices> {
  const { cpuDevices: count, shareCores, cudaDevices, simDevices } = config;
  const devices = cpuDevices({ cores, count, shareCores, nodes: numaNodes() });
  const options = { mayShare: config.shareGpus, own: new Set<number>(), cores };
  const cuda =
    cudaDevices === 'none'
      ? none
      : acceleratorsOf(await probe('CUDA', process.env), {
          ...options,
          kind: 'CUDA',
          request: cudaDevices,
        });
  const sim =
    simDevices === 'none'
      ? none
      : acceleratorsOf(await probeSimulated(config, simDevices, probe), {
          ...options,
          kind: 'SIM',
          request: simDevices,
        });
  const problems = [...cuda.problems, ...sim.problems];
  if (problems.length > 0) throw new RangeError(problems.join('\n'));
  return {
    devices: [...devices, ...cuda.devices, ...sim.devices],
    unused: [...cuda.unused, ...sim.unused],
    notes: [...cuda.notes, ...sim.notes],
  };
}

const none: Accelerators = { devices: [], unused: [], notes: [], problems: [] };

function probeSimulated(
  { simMemoryBytes }: DeviceConfig,
  indices: readonly number[],
  probe: typeof probeDevices,
): Promise<DeviceProbe> {
  return probe('SIM', {
    ...process.env,
    GNND_SIM_DEVICES: String(Math.max(...indices) + 1),
    GNND_SIM_MEMORY: String(simMemoryBytes),
  });
}
