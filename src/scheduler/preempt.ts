import { deviceCountOf, usableFor } from './request.ts';
import { type ActiveJob, isUsable, type QueuedJob, type SchedulerState } from './state.ts';

/**
 * Which jobs give devices to one of higher priority. A job that waits takes running ones that are
 * preemptible and of lower priority, the lowest first and of these the youngest, and only where
 * with their devices it has all that it asks for: nobody is stopped in vain. Devices of attempts
 * that are being stopped anyway count as good as free, so nobody is stopped for the same job twice.
 */

export interface Preemption {
  readonly job: ActiveJob;
  /** The queued job that gets the devices. */
  readonly by: QueuedJob;
}

export function preemptions(state: SchedulerState): readonly Preemption[] {
  if (state.draining) return [];
  // Victims, the first to be preempted first; `running` is in queue order.
  const victims = state.running.filter(isPreemptible).reverse();
  const found: Preemption[] = [];
  if (victims.length === 0) return found;
  const free = freeDevices(state);
  for (const by of state.queue) {
    const lowest = victims[0];
    // The queue is in order of priority, too.
    if (lowest === undefined || by.request.priority <= lowest.request.priority) break;
    if (by.stage.notBeforeMs !== null) continue;
    const taken = victimsFor(by, victims, free);
    if (taken === null) continue;
    for (const job of taken) {
      victims.splice(victims.indexOf(job), 1);
      found.push({ job, by });
    }
  }
  return found;
}

/** Takes what the job would use from `free`; null when it cannot be helped. */
function victimsFor(
  { request }: QueuedJob,
  victims: readonly ActiveJob[],
  free: Set<string>,
): readonly ActiveJob[] | null {
  const needed = deviceCountOf(request.devices);
  const has = new Set(usableFor(request.devices, [...free]));
  const taken: ActiveJob[] = [];
  for (const victim of victims) {
    if (has.size >= needed || victim.request.priority >= request.priority) break;
    const gained = usableFor(request.devices, victim.stage.devices);
    if (gained.length === 0) continue;
    taken.push(victim);
    for (const device of gained) has.add(device);
  }
  if (has.size < needed) {
    // The job keeps the devices that it waits for from the jobs behind it.
    for (const device of usableFor(request.devices, [...free])) free.delete(device);
    return null;
  }
  for (const { stage } of taken) for (const device of stage.devices) free.add(device);
  for (const device of [...has].slice(0, needed)) free.delete(device);
  return taken;
}

function isPreemptible({ request, stage }: ActiveJob): boolean {
  // A job whose executors have ended is about to have its model.
  return request.preemptible === true && stage.kind !== 'STOPPING' && stage.allDoneAtMs === null;
}

/** Devices that nobody holds, or that an attempt that is being stopped holds. */
function freeDevices({ devices, running }: SchedulerState): Set<string> {
  const held = running.filter(({ stage }) => stage.kind !== 'STOPPING');
  const busy = new Set(held.flatMap(({ stage }) => stage.devices));
  const healthy = devices.filter((device) => isUsable(device) && !busy.has(device.name));
  return new Set(healthy.map(({ name }) => name));
}
