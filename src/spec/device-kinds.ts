import type { JobSpec } from './job-spec.ts';

/** Kinds of devices, by the names of devices: `cuda:0`, `cuda:0/1`. */

export type DeviceKind = Exclude<JobSpec['resources']['deviceKind'], 'AUTO'>;

const kinds: Readonly<Record<string, DeviceKind>> = { cpu: 'CPU', cuda: 'CUDA', sim: 'SIM' };

/** Kind of a device by its name; null for a name of no kind. */
export function deviceKindOf(name: string): DeviceKind | null {
  return kinds[name.slice(0, Math.max(0, name.indexOf(':')))] ?? null;
}

/** Whether any device of a job has memory of its own, apart from the host's. */
export function hasOwnMemory({ deviceKind, deviceNames }: JobSpec['resources']): boolean {
  if (deviceNames.length === 0) return deviceKind !== 'CPU' && deviceKind !== 'AUTO';
  return deviceNames.some((name) => deviceKindOf(name) !== 'CPU');
}

/** How many of the named devices surely never train: samples have the same bits everywhere. */
export function onlySamplersOf({ placement, resources }: Placed): number {
  const { policy, samplers, standby } = placement;
  const isSplit = policy === 'FIXED' && standby === 'OFF' && samplers < resources.devices;
  return isSplit ? samplers : 0;
}

/** Whether a device that may train has memory of its own. */
export function trainsInOwnMemory(spec: Placed): boolean {
  const { deviceNames } = spec.resources;
  if (deviceNames.length === 0) return hasOwnMemory(spec.resources);
  return deviceNames.slice(onlySamplersOf(spec)).some((name) => deviceKindOf(name) !== 'CPU');
}

type Placed = Pick<JobSpec, 'placement' | 'resources'>;

/** `cuda:0` of `cuda:0/1`: the device that a logical one is a part of; others are themselves. */
export function wholeDeviceOf(name: string): string {
  return name.split('/')[0] ?? name;
}

/** The devices of a kind, in their order; all of them where any kind will do. */
export function devicesOfKind(
  names: readonly string[],
  kind: JobSpec['resources']['deviceKind'],
): readonly string[] {
  return kind === 'AUTO' ? names : names.filter((name) => deviceKindOf(name) === kind);
}
