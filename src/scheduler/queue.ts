import { deviceCountOf, usableFor } from './request.ts';
import {
  type DeviceRequest,
  isUsable,
  type Job,
  type QueuedJob,
  type SchedulerState,
} from './state.ts';

/**
 * Who gets devices: the one walk through the queue. What the others wait for is in waiting.ts.
 *
 * The rule. Jobs are visited in queue order: higher priority, then older, then smaller id. A job
 * is granted all the devices it asks for, or none. One that has to wait *keeps* every free device
 * that it could use from all jobs behind it: with a count those of its kind, with names those.
 * So no job starts before an earlier one that wants the same devices, and a named job passes
 * earlier ones that want others. Two kinds of job keep nothing: those that back off, and those
 * that not even all healthy devices could satisfy. Once every device is out of reach nobody further
 * back can get one, so granting stops there however long the queue is.
 */

/** Sort order of the queue: negative when `left` goes first. */
export function compareJobs(left: Job, right: Job): number {
  const a = left.request;
  const b = right.request;
  if (a.priority !== b.priority) return b.priority - a.priority;
  if (a.createdAtMs !== b.createdAtMs) return a.createdAtMs - b.createdAtMs;
  if (a.jobId === b.jobId) return 0;
  return a.jobId < b.jobId ? -1 : 1;
}

/** Devices to be given to a queued job now. */
export interface Grant {
  readonly job: QueuedJob;
  /** Granted devices in host order. */
  readonly devices: readonly string[];
}

/** The grants that are possible now, in queue order. */
export function grants(state: SchedulerState): readonly Grant[] {
  if (state.draining) return [];
  const walk = beginWalk(state);
  const found: Grant[] = [];
  for (const job of state.queue) {
    if (walk.open === 0) break;
    const visit = visitJob(walk, job);
    if (visit.kind === 'GRANTED') found.push({ job, devices: visit.devices });
  }
  return found;
}

/** The job that keeps a device from others, and whether it runs there or only comes first. */
export interface Claim {
  readonly jobId: string;
  readonly held: boolean;
}

/** Requests that could use the same devices. */
export interface Peers {
  /** The healthy devices that would do, in host order. */
  readonly usable: readonly string[];
  /** Places of those that wait, ascending. */
  readonly places: number[];
}

/** A walk in progress; `visitJob` moves it on. */
export interface Walk {
  readonly healthy: readonly string[];
  readonly peers: Map<string, Peers>;
  /** Never changed, only replaced: whoever waits keeps the claims that it found. */
  claims: ReadonlyMap<string, Claim>;
  /** Healthy devices without a claim. */
  open: number;
  /** Jobs that wait for devices so far. */
  waiting: number;
}

export type Visit =
  | { readonly kind: 'GRANTED'; readonly devices: readonly string[] }
  | { readonly kind: 'BACKING_OFF' | 'OUT_OF_REACH' }
  | {
      readonly kind: 'WAITS';
      readonly claims: ReadonlyMap<string, Claim>;
      readonly peers: Peers;
      /** Among those that wait for devices, from 0. */
      readonly place: number;
    };

export function beginWalk({ devices, running }: SchedulerState): Walk {
  const claims = new Map<string, Claim>();
  for (const { request, stage } of running) {
    for (const device of stage.devices) claims.set(device, { jobId: request.jobId, held: true });
  }
  const healthy = devices.filter(isUsable).map(({ name }) => name);
  const open = healthy.filter((name) => !claims.has(name)).length;
  return { healthy, peers: new Map(), claims, open, waiting: 0 };
}

/** Visits the next job of the queue; adds what it takes or keeps to the walk. */
export function visitJob(walk: Walk, job: QueuedJob): Visit {
  if (job.stage.notBeforeMs !== null) return { kind: 'BACKING_OFF' };
  const { jobId, devices: wanted } = job.request;
  const needed = deviceCountOf(wanted);
  const peers = peersOf(walk, wanted);
  if (peers.usable.length < needed) return { kind: 'OUT_OF_REACH' };
  const { claims } = walk;
  const free = walk.open === 0 ? [] : peers.usable.filter((device) => !claims.has(device));
  if (free.length >= needed) {
    const devices = free.slice(0, needed);
    claim(walk, devices, { jobId, held: true });
    return { kind: 'GRANTED', devices };
  }
  claim(walk, free, { jobId, held: false });
  const place = walk.waiting;
  walk.waiting += 1;
  peers.places.push(place);
  return { kind: 'WAITS', claims, peers, place };
}

function claim(walk: Walk, devices: readonly string[], by: Claim): void {
  if (devices.length === 0) return;
  walk.claims = new Map([...walk.claims, ...devices.map((device) => [device, by] as const)]);
  walk.open -= devices.length;
}

function peersOf({ healthy, peers }: Walk, wanted: DeviceRequest): Peers {
  const key = wanted.kind === 'count' ? (wanted.of ?? '') : wanted.names.join(' ');
  const known = peers.get(key);
  if (known !== undefined) return known;
  const usable = usableFor(wanted, healthy);
  const added = { usable, places: [] };
  peers.set(key, added);
  return added;
}
