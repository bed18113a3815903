import { counted } from '../spec/counted.ts';
import { beginWalk, type Claim, type Peers, type Visit, visitJob } from './queue.ts';
import { deviceCountOf, usableFor } from './request.ts';
import { type Device, isUsable, type QueuedJob, type SchedulerState } from './state.ts';

/**
 * What queued jobs wait for, derived when somebody asks. One walk through the queue serves any
 * number of questions about one state, and an answer is bounded: it names who holds or keeps the
 * devices, and of the jobs ahead their number and the first.
 */

/** Why a queued job has no devices. */
export interface Waiting {
  readonly reason: 'WAITING_FOR_DEVICES' | 'BACKOFF' | 'DAEMON_SHUTDOWN';
  /** A sentence that names the devices below and who has them. */
  readonly message: string;
  /** Jobs before it that wait for devices which it could use, too. */
  readonly ahead: number;
  /** The devices it needs and cannot have, in host order. */
  readonly devices: readonly string[];
  /** When its back-off ends; null unless it backs off. */
  readonly untilMs: number | null;
}

export interface QueueView {
  /** Null when the job is unknown, has devices or may get them now. */
  waitingFor(jobId: string): Waiting | null;
}

/** Walks the queue once, at the first question. */
export function viewQueue(state: SchedulerState): QueueView {
  let found: Found | null = null;
  return {
    waitingFor(jobId) {
      found ??= walkAll(state);
      const entry = found.entries.get(jobId);
      return entry === undefined ? null : describe(state, found, entry);
    },
  };
}

/** Answers one question; use `viewQueue` for several. */
export function waitingFor(state: SchedulerState, jobId: string): Waiting | null {
  return viewQueue(state).waitingFor(jobId);
}

interface Entry {
  readonly job: QueuedJob;
  readonly visit: Visit;
}

interface Found {
  readonly entries: ReadonlyMap<string, Entry>;
  readonly peers: readonly Peers[];
  /** Ids of those that wait for devices, by place. */
  readonly ids: readonly string[];
}

function walkAll(state: SchedulerState): Found {
  const walk = beginWalk(state);
  const entries = new Map<string, Entry>();
  const ids: string[] = [];
  for (const job of state.queue) {
    const { jobId } = job.request;
    const visit = visitJob(walk, job);
    if (visit.kind === 'WAITS') ids.push(jobId);
    entries.set(jobId, { job, visit });
  }
  return { entries, peers: [...walk.peers.values()], ids };
}

const nothing = { ahead: 0, devices: [], untilMs: null } as const;

function describe(state: SchedulerState, found: Found, { job, visit }: Entry): Waiting | null {
  if (state.draining) {
    return { ...nothing, reason: 'DAEMON_SHUTDOWN', message: 'the daemon is stopping' };
  }
  switch (visit.kind) {
    case 'GRANTED':
      return null;
    case 'BACKING_OFF':
      return backingOff(job);
    case 'OUT_OF_REACH':
      return outOfReach(state, job);
    case 'WAITS':
      return behind(found, job, visit);
  }
}

function backingOff({ stage, tally }: QueuedJob): Waiting {
  const { notBeforeMs, lastFailure } = stage;
  const after = lastFailure === null ? '' : `: ${lastFailure.reason}, ${lastFailure.message}`;
  const message = `waits before attempt ${tally.attempt + 1}${after}`;
  return { ...nothing, reason: 'BACKOFF', message, untilMs: notBeforeMs };
}

function outOfReach(state: SchedulerState, job: QueuedJob): Waiting {
  const wanted = job.request.devices;
  const unhealthy = state.devices.filter((device) => !isUsable(device));
  const waiting = { ...nothing, reason: 'WAITING_FOR_DEVICES' } as const;
  if (wanted.kind === 'count') {
    const names = usableFor(
      wanted,
      state.devices.map(({ name }) => name),
    );
    const wounded = unhealthy.filter(({ name }) => names.includes(name));
    const quarantined = wounded.map(describeUnhealthy).join(', ');
    const message =
      `needs ${devicesWord(wanted.count)}, this host has ${names.length - wounded.length}` +
      (quarantined === '' ? '' : `: ${quarantined}`);
    return { ...waiting, message, devices: wounded.map(({ name }) => name) };
  }
  const missing = wanted.names.flatMap((name) => {
    const device = state.devices.find((candidate) => candidate.name === name);
    if (device === undefined) return [{ name, why: `${name} is not a device of this host` }];
    return isUsable(device) ? [] : [{ name, why: describeUnhealthy(device) }];
  });
  const message = `needs ${wanted.names.join(', ')}: ${missing.map(({ why }) => why).join(', ')}`;
  return { ...waiting, message, devices: missing.map(({ name }) => name) };
}

function behind(
  { peers: groups, ids }: Found,
  job: QueuedJob,
  { claims, peers, place }: Extract<Visit, { readonly kind: 'WAITS' }>,
): Waiting {
  const { usable } = peers;
  const taken = usable.flatMap((device): { device: string; claim: Claim }[] => {
    const claim = claims.get(device);
    return claim === undefined ? [] : [{ device, claim }];
  });
  const wanted = job.request.devices;
  const needs =
    wanted.kind === 'count'
      ? `needs ${devicesWord(deviceCountOf(wanted))}, ${usable.length - taken.length} of ` +
        `${usable.length} free`
      : `needs ${wanted.names.join(', ')}`;
  const why = taken.map(
    ({ device, claim }) => `${device} is ${claim.held ? 'held by' : 'kept for'} ${claim.jobId}`,
  );
  const rivals = groups.filter((group) => group.usable.some((name) => usable.includes(name)));
  const ahead = rivals.reduce((sum, { places }) => sum + countBelow(places, place), 0);
  const first = Math.min(...rivals.map(({ places }) => places[0] ?? place));
  const turn = ahead === 0 ? '' : `; ${ahead} ahead, first ${ids[first]}`;
  return {
    reason: 'WAITING_FOR_DEVICES',
    message: `${needs}: ${why.join(', ')}${turn}`,
    ahead,
    devices: taken.map(({ device }) => device),
    untilMs: null,
  };
}

/** How many of ascending numbers are below `limit`. */
function countBelow(numbers: readonly number[], limit: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((numbers[middle] ?? limit) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

function describeUnhealthy({ name, quarantine }: Device): string {
  return quarantine === null ? `${name} is drained` : `${name} is quarantined (${quarantine})`;
}

function devicesWord(count: number): string {
  return counted(count, 'device');
}
