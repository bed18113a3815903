import { wholeDeviceOf } from '../spec/device-kinds.ts';
import type { Device, SchedulerEvent } from './state.ts';

/**
 * What the end of an executor says of its device. One that is lost is quarantined, with all that
 * are parts of it. An error that breaks a process (DEVICE_FAILED: an illegal address, a launch that
 * failed) may be the process's own fault once, so that a new one is given the device; a device that
 * fails one process after another is lost, whatever the driver calls it.
 */

type Outcome = Extract<SchedulerEvent, { readonly kind: 'executorExited' }>['outcome'];

const isDeviceFailure = (outcome: Outcome) =>
  outcome.kind === 'CRASHED' && outcome.reason === 'DEVICE_FAILED';

/** The outcome as it counts, after what happened on its device before. */
export function toldOf(
  outcome: Outcome,
  device: string | undefined,
  devices: readonly Device[],
): Outcome {
  const isSuspect = devices.find(({ name }) => name === device)?.suspect === true;
  if (!isSuspect || outcome.kind !== 'CRASHED' || !isDeviceFailure(outcome)) return outcome;
  const message = `failed one process after another: ${outcome.message}`;
  return { ...outcome, reason: 'DEVICE_LOST', message };
}

/** The devices that it takes along: its own, or also all that are parts of the same one. */
export function lostWith(
  outcome: Outcome,
  device: string,
  devices: readonly Device[],
): readonly string[] {
  if (outcome.kind === 'UNKILLABLE') return [device];
  if (outcome.kind !== 'CRASHED' || outcome.reason !== 'DEVICE_LOST') return [];
  const whole = wholeDeviceOf(device);
  return devices.map(({ name }) => name).filter((name) => wholeDeviceOf(name) === whole);
}

/** `devices` after an executor on `device` ended; the same array where nothing is new. */
export function suspectedAfter(
  outcome: Outcome,
  device: string,
  devices: readonly Device[],
): readonly Device[] {
  return isDeviceFailure(outcome) ? marked([device], devices, true) : devices;
}

/** After a job succeeded on some of them. */
export function clearedBy(names: readonly string[], devices: readonly Device[]): readonly Device[] {
  return marked(names, devices, false);
}

function marked(names: readonly string[], devices: readonly Device[], suspect: boolean) {
  const changes = (device: Device) =>
    names.includes(device.name) && (device.suspect ?? false) !== suspect;
  if (!devices.some(changes)) return devices;
  return devices.map((device) => (changes(device) ? { ...device, suspect } : device));
}
