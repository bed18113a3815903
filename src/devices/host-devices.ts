import type { AcceleratorKind } from '../base/device-probe.ts';
import type { DaemonConfig } from '../config/daemon-config.ts';
import {
  type AcceleratorRequest,
  type Accelerators,
  acceleratorsOf,
  type UnusedDevice,
} from './accelerators.ts';
import { cpuDevices } from './devices.ts';
import { numaNodes } from './numa.ts';
import { measureLinks, probeDevices } from './probe-devices.ts';
import type { CrewDevice } from './seat.ts';

/** All devices of the host, CPU devices first. */
export interface HostDevices {
  readonly devices: readonly CrewDevice[];
  readonly unused: readonly UnusedDevice[];
  readonly notes: readonly string[];
}

type DeviceConfig = Pick<
  DaemonConfig,
  | 'cpuDevices'
  | 'shareCores'
  | 'cudaDevices'
  | 'shareGpus'
  | 'simDevices'
  | 'simMemoryBytes'
  | 'linkRates'
  | 'cacheDir'
>;

/** The children that are asked. */
interface Probes {
  readonly probe: typeof probeDevices;
  readonly measure: typeof measureLinks;
}

/** Throws RangeError with every sentence about what the configuration asks for in vain. */
export async function findDevices(
  cores: readonly number[],
  config: DeviceConfig,
  probes: Probes = { probe: probeDevices, measure: measureLinks },
): Promise<HostDevices> {
  const { cpuDevices: count, shareCores, cudaDevices, simDevices, simMemoryBytes } = config;
  const devices = cpuDevices({ cores, count, shareCores, nodes: numaNodes() });
  const find = async (
    kind: AcceleratorKind,
    request: AcceleratorRequest,
    env: NodeJS.ProcessEnv,
  ): Promise<Accelerators> => {
    if (request === 'none') return none;
    const probe = await probes.probe(kind, env);
    const measured = await probes.measure(kind, { probe, env, folder: config.cacheDir });
    const rates = { ...measured, ...config.linkRates };
    const options = { mayShare: config.shareGpus, own: new Set<number>(), cores, rates };
    return acceleratorsOf(probe, { ...options, kind, request });
  };
  const cuda = await find('CUDA', cudaDevices, process.env);
  const sim = await find('SIM', simDevices, {
    ...process.env,
    GNND_SIM_DEVICES: String(simDevices === 'none' ? 0 : Math.max(...simDevices) + 1),
    GNND_SIM_MEMORY: String(simMemoryBytes),
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
