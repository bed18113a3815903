import { sharesCores } from '../spec/batches-per-step.ts';
import { hasAutomaticCache } from '../spec/cache-spec.ts';
import { devicesOfKind } from '../spec/device-kinds.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { isFixedSplit } from './allocate.ts';
import { backoffDelayMs } from './restart.ts';
import type { DeviceRequest, JobRequest, Tally } from './state.ts';

/** A job as the scheduler sees it, made from the job's spec. */

const minuteMs = 60_000;

/** Budgets that are not fields of the spec. */
const startupFailures = 2;
const restartWindowMs = 10 * minuteMs;
const backoff = { initialMs: 5_000, factor: 2, maxMs: 5 * minuteMs, jitter: 0.2 };

/** How long the supervisor may take to kill and reap after the grace, and some air. */
const killMs = 30_000;
const stopMarginMs = 15_000;

/** Facts that the work of a job tells the scheduler. */
export interface ScheduledWork {
  /** Same as in PlacementRequest. */
  readonly withoutSamplers?: string;
  /** How long its result may take to be written for good. */
  readonly finalizeMs: number;
}

export interface NewJob {
  readonly jobId: string;
  readonly spec: JobSpec;
  readonly work: ScheduledWork;
  readonly createdAtMs: number;
  /** `freshTally` for a new job. */
  readonly tally: Tally;
  /** Back-off left by wall time, which may have jumped; 0 for a new job. */
  readonly delayMs: number;
}

export function jobRequestOf(job: NewJob): JobRequest {
  const { jobId, spec, work, createdAtMs, tally, delayMs } = job;
  const { withoutSamplers } = work;
  const { deviceNames, devices, deviceKind } = spec.resources;
  return {
    jobId,
    priority: spec.priority,
    preemptible: spec.preemptible,
    createdAtMs,
    devices:
      deviceNames.length > 0
        ? { kind: 'names', names: deviceNames }
        : { kind: 'count', count: devices, ...(deviceKind === 'AUTO' ? {} : { of: deviceKind }) },
    placement: {
      policy: spec.placement.policy,
      fixedSamplers: spec.placement.samplers,
      standby: spec.placement.standby,
      teams: sharesCores(spec),
      ...(withoutSamplers === undefined ? {} : { withoutSamplers }),
    },
    steps: {
      batchesPerStep: spec.training.batchesPerStep,
      staleness: spec.training.staleness,
    },
    mustCalibrate: hasAutomaticCache(spec) && withoutSamplers === undefined,
    restart: {
      maxAttempts: spec.restart.maxAttempts,
      startupFailures,
      executorRestarts: spec.restart.executorRestarts,
      windowMs: restartWindowMs,
      backoff,
    },
    timeouts: {
      pendingMs: spec.timeouts.pendingMs,
      startupMs: spec.timeouts.startupMs,
      runMs: spec.timeouts.runMs,
      stopMs: spec.timeouts.cancelGraceMs + killMs + stopMarginMs,
      finalizeMs: work.finalizeMs,
    },
    tally,
    // No back-off is longer than the longest that could have been decided.
    delayMs: Math.min(delayMs, backoffDelayMs({ backoff }, tally, 1)),
  };
}

/** How many devices a request asks for. */
export function deviceCountOf(request: DeviceRequest): number {
  return request.kind === 'count' ? request.count : request.names.length;
}

/**
 * The devices among `names` that a request could use, in the order in which they would be granted:
 * as the request names them, since the first ones sample; else as they are given.
 */
export function usableFor(request: DeviceRequest, names: readonly string[]): readonly string[] {
  if (request.kind === 'count') return devicesOfKind(names, request.of ?? 'AUTO');
  const there = new Set(names);
  return request.names.filter((name) => there.has(name));
}

/** Why no host could ever grant a request; null when one could. */
export function requestProblem({ devices, placement }: JobRequest): string | null {
  const deviceCount = deviceCountOf(devices);
  if (!Number.isSafeInteger(deviceCount) || deviceCount < 1) {
    return `asks for ${deviceCount} devices, expected at least 1`;
  }
  if (devices.kind === 'names' && new Set(devices.names).size < deviceCount) {
    return `names a device twice: ${devices.names.join(', ')}`;
  }
  if (placement.withoutSamplers !== undefined) return null;
  if (placement.policy === 'FIXED' && !isFixedSplit(deviceCount, placement.fixedSamplers)) {
    const allowed = `${deviceCount} devices allow 1 to ${deviceCount}`;
    return `asks for ${placement.fixedSamplers} Samplers, ${allowed}`;
  }
  return null;
}
