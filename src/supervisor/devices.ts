import type { CrewDevice } from './seat.ts';

/** At most this many CPU devices by default: beyond it, a device of several cores trains better. */
const autoDevicesMax = 8;

/**
 * The host's CPU devices `cpu:0`, `cpu:1`, … as sets of its cores. `count` null makes one per core,
 * at most 8. Cores are dealt out evenly and in order; with more devices than cores (`shareCores`)
 * devices share them in turn. Throws RangeError when that is not allowed.
 */
export function cpuDevices(
  cores: readonly number[],
  count: number | null,
  shareCores: boolean,
): readonly CrewDevice[] {
  const devices = count ?? Math.min(cores.length, autoDevicesMax);
  if (devices > cores.length && !shareCores) {
    throw new RangeError(
      `${devices} CPU devices on ${cores.length} cores would share cores: set share_cores to allow it`,
    );
  }
  return Array.from({ length: devices }, (_, i) => {
    if (devices > cores.length) return { name: `cpu:${i}`, cores: [cores[i % cores.length] ?? 0] };
    const from = Math.floor((i * cores.length) / devices);
    const to = Math.floor(((i + 1) * cores.length) / devices);
    return { name: `cpu:${i}`, cores: cores.slice(from, to) };
  });
}
