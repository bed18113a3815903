import { deviceCountOf } from './request.ts';
import { type Device, isActive, type Job, type QueuedJob, type SchedulerState } from './state.ts';

/**
 * Who gets devices, and what everyone else waits for.
 *
 * The rule. Jobs are visited in queue order: higher priority, then older, then smaller id. A job
 * is granted all the devices it asks for, or none. One that has to wait *keeps* every free device
 * that it could use from all jobs behind it: with a count that is every device, with names those.
 * So no job starts before an earlier one that wants the same devices, and a named job passes
 * earlier ones that want others. Two kinds of job keep nothing: those that back off, and those
 * that not even all healthy devices could satisfy.
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
  /** In host order. */
  readonly devices: readonly string[];
}

/** Why a queued job has no devices. */
export interface Waiting {
  readonly reason: 'WAITING_FOR_DEVICES' | 'BACKOFF' | 'DAEMON_SHUTDOWN';
  /** A sentence that names the devices and jobs below. */
  readonly message: string;
  /** Jobs that hold or keep what it needs, in queue order. */
  readonly jobs: readonly string[];
  /** The devices it needs and cannot have, in host order. */
  readonly devices: readonly string[];
  /** When its back-off ends; null unless it backs off. */
  readonly untilMs: number | null;
}

/** The grants that are possible now, in queue order. */
export function grants(state: SchedulerState): readonly Grant[] {
  if (state.draining) return [];
  return visitQueue(state).flatMap(({ job, devices }) =>
    devices === null ? [] : [{ job, devices }],
  );
}

/** What a queued job waits for; null when the job is unknown, has devices or may get them now. */
export function waitingFor(state: SchedulerState, jobId: string): Waiting | null {
  const job = state.jobs.find((candidate) => candidate.request.jobId === jobId);
  if (job === undefined || isActive(job)) return null;
  const nothing = { jobs: [], devices: [], untilMs: null };
  if (state.draining) {
    return { ...nothing, reason: 'DAEMON_SHUTDOWN', message: 'the daemon is stopping' };
  }
  const { notBeforeMs, lastFailure } = job.stage;
  if (notBeforeMs !== null) {
    const after = lastFailure === null ? '' : `: ${lastFailure.reason}, ${lastFailure.message}`;
    const message = `waits before attempt ${job.tally.attempt + 1}${after}`;
    return { ...nothing, reason: 'BACKOFF', message, untilMs: notBeforeMs };
  }
  return visitQueue(state).find((visit) => visit.job.request.jobId === jobId)?.waiting ?? null;
}

/** What the walk through the queue found for one job: devices, or what it waits for. */
interface Visit {
  readonly job: QueuedJob;
  readonly devices: readonly string[] | null;
  readonly waiting: Waiting | null;
}

/** Who has a device out of reach, and whether it runs there or only comes first. */
interface Claim {
  readonly jobId: string;
  readonly held: boolean;
}

/** What earlier jobs leave to the next one. */
interface Walk {
  readonly claims: Map<string, Claim>;
  /** Jobs that wait, with the devices they could use. */
  readonly ahead: { readonly jobId: string; readonly usable: readonly string[] }[];
}

function visitQueue(state: SchedulerState): readonly Visit[] {
  const claims = new Map<string, Claim>();
  const walk: Walk = { claims, ahead: [] };
  for (const { request, stage } of state.jobs.filter(isActive)) {
    for (const device of stage.devices) claims.set(device, { jobId: request.jobId, held: true });
  }
  const visits: Visit[] = [];
  for (const job of state.jobs) {
    if (isActive(job) || job.stage.notBeforeMs !== null) continue;
    visits.push(visitJob(state, job, walk));
  }
  return visits;
}

/** Visits one job; adds what it takes or keeps to the walk. */
function visitJob(state: SchedulerState, job: QueuedJob, { claims, ahead }: Walk): Visit {
  const { jobId } = job.request;
  const needed = deviceCountOf(job.request.devices);
  const usable = usableDevices(state, job);
  if (usable.length < needed) return { job, devices: null, waiting: outOfReach(state, job) };
  const free = usable.filter((device) => !claims.has(device));
  if (free.length >= needed) {
    const devices = free.slice(0, needed);
    for (const device of devices) claims.set(device, { jobId, held: true });
    return { job, devices, waiting: null };
  }
  const waiting = behind(state, job, { claims, ahead });
  for (const device of free) claims.set(device, { jobId, held: false });
  ahead.push({ jobId, usable });
  return { job, devices: null, waiting };
}

/** The healthy devices that would do for a job, in host order. */
function usableDevices(state: SchedulerState, { request }: Job): readonly string[] {
  const wanted = request.devices;
  return state.devices
    .filter(({ quarantine }) => quarantine === null)
    .map(({ name }) => name)
    .filter((name) => wanted.kind === 'count' || wanted.names.includes(name));
}

function outOfReach(state: SchedulerState, job: Job): Waiting {
  const wanted = job.request.devices;
  const unhealthy = state.devices.filter(({ quarantine }) => quarantine !== null);
  const waiting = { reason: 'WAITING_FOR_DEVICES', jobs: [], untilMs: null } as const;
  if (wanted.kind === 'count') {
    const healthy = state.devices.length - unhealthy.length;
    const quarantined = unhealthy.map(describeUnhealthy).join(', ');
    const message =
      `needs ${devicesWord(wanted.count)}, this host has ${healthy}` +
      (quarantined === '' ? '' : `: ${quarantined}`);
    return { ...waiting, message, devices: unhealthy.map(({ name }) => name) };
  }
  const missing = wanted.names.flatMap((name) => {
    const device = state.devices.find((candidate) => candidate.name === name);
    if (device === undefined) return [{ name, why: `${name} is not a device of this host` }];
    return device.quarantine === null ? [] : [{ name, why: describeUnhealthy(device) }];
  });
  const message = `needs ${wanted.names.join(', ')}: ${missing.map(({ why }) => why).join(', ')}`;
  return { ...waiting, message, devices: missing.map(({ name }) => name) };
}

function behind(state: SchedulerState, job: Job, { claims, ahead }: Walk): Waiting {
  const wanted = job.request.devices;
  const usable = usableDevices(state, job);
  const taken = usable.flatMap((device) => {
    const claim = claims.get(device);
    return claim === undefined ? [] : [{ device, claim }];
  });
  const first = ahead
    .filter((other) => other.usable.some((device) => usable.includes(device)))
    .map(({ jobId }) => jobId);
  const blockers = new Set([...taken.map(({ claim }) => claim.jobId), ...first]);
  const needs =
    wanted.kind === 'count'
      ? `needs ${devicesWord(wanted.count)}, ${usable.length - taken.length} of ` +
        `${usable.length} free`
      : `needs ${wanted.names.join(', ')}`;
  const why = taken.map(
    ({ device, claim }) => `${device} is ${claim.held ? 'held by' : 'kept for'} ${claim.jobId}`,
  );
  const turn = first.length === 0 ? '' : `; ahead of it: ${first.join(', ')}`;
  return {
    reason: 'WAITING_FOR_DEVICES',
    message: `${needs}: ${why.join(', ')}${turn}`,
    jobs: state.jobs.map(({ request }) => request.jobId).filter((jobId) => blockers.has(jobId)),
    devices: taken.map(({ device }) => device),
    untilMs: null,
  };
}

function describeUnhealthy({ name, quarantine }: Device): string {
  return `${name} is quarantined (${quarantine})`;
}

function devicesWord(count: number): string {
  return `${count} device${count === 1 ? '' : 's'}`;
}
