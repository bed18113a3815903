import { GnndError } from '../base/errors.ts';
import type { SchedulerState } from '../scheduler/state.ts';
import type { Store } from '../store/store.ts';

/** Devices that their user has taken out of use: remembered over restarts. */

const key = 'drained_devices';

export function drainedDevices(store: Pick<Store, 'getMeta'>): readonly string[] {
  return JSON.parse(store.getMeta(key) ?? '[]');
}

interface DeviceUser {
  readonly state: Pick<SchedulerState, 'devices'>;
  drainDevice(device: string, drained: boolean): void;
}

/** Durable when it returns. Throws DEVICE_NOT_FOUND. */
export function setDrained(
  store: Pick<Store, 'getMeta' | 'setMeta'>,
  runner: DeviceUser,
  { device, drained }: { readonly device: string; readonly drained: boolean },
): void {
  if (!runner.state.devices.some(({ name }) => name === device)) {
    const details = { resource: `devices/${device}` };
    throw new GnndError('DEVICE_NOT_FOUND', `no job can get a device ${device}`, details);
  }
  const others = drainedDevices(store).filter((name) => name !== device);
  store.setMeta(key, JSON.stringify(drained ? [...others, device] : others));
  runner.drainDevice(device, drained);
}
