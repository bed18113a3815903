import { wholeDeviceOf } from '../spec/device-kinds.ts';
import type { Device, SchedulerEvent, Suspicion } from './state.ts';

/**
 * What the end of an executor says of its device. One that is lost is quarantined, with all that
 * are parts of it. An error that breaks a process (DEVICE_FAILED: an illegal address, a launch that
 * failed) may be the process's own fault, so that a new one is given the device; a device that
 * fails that one, too, is lost, whatever the driver calls it. It may still have been the job: one
 * job loses one device so, and no more.
 */

type Outcome = Extract<SchedulerEvent, { readonly kind: 'executorExited' }>['outcome'];

interface Place extends Suspicion {
  readonly executor: string;
  readonly device: string;
}

export interface Judgement {
  /** The outcome as it counts for the job. */
  readonly outcome: Outcome;
  /** The devices after this judgement; the same array where nothing is new. */
  readonly devices: readonly Device[];
}

export function judged(outcome: Outcome, place: Place, devices: readonly Device[]): Judgement {
  if (outcome.kind !== 'CRASHED' || outcome.reason !== 'DEVICE_FAILED') return { outcome, devices };
  const { jobId, attempt, executors, executor, device: name } = place;
  const known = devices.find((device) => device.name === name)?.suspicion ?? null;
  if (known === null) return { outcome, devices: changed(devices, [name], { suspicion: place }) };
  const isOneEvent =
    known.jobId === jobId && known.attempt === attempt && known.executors.includes(executor);
  const hasLostOne = devices.some(({ lostFor }) => lostFor === jobId);
  if (isOneEvent || hasLostOne) {
    const suspicion = { jobId, attempt, executors };
    return { outcome, devices: changed(devices, [name], { suspicion }) };
  }
  const message = `failed one process after another: ${outcome.message}`;
  return {
    outcome: { ...outcome, reason: 'DEVICE_LOST', message },
    devices: changed(devices, [name], { lostFor: jobId }),
  };
}

/** The devices that an outcome takes along: its own, or also all that are parts of the same one. */
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

/** Clears devices that a job succeeded on of suspicion; the same array where nothing is new. */
export function clearedBy(names: readonly string[], devices: readonly Device[]): readonly Device[] {
  const isCleared = ({ name, suspicion }: Device) => names.includes(name) && suspicion != null;
  const cleared = devices.filter(isCleared).map(({ name }) => name);
  return cleared.length === 0 ? devices : changed(devices, cleared, { suspicion: null });
}

function changed(
  devices: readonly Device[],
  names: readonly string[],
  change: Partial<Device>,
): readonly Device[] {
  return devices.map((device) => (names.includes(device.name) ? { ...device, ...change } : device));
}
