import { describe, expect, test } from 'vitest';
import { jobRequestOf, requestProblem } from '../../../src/scheduler/request.ts';
import { freshTally } from '../../../src/scheduler/restart.ts';
import { specOf } from '../store/job-values.ts';
import { plainRequest } from './script-language.ts';

const spec = specOf({
  dataset: 'cora',
  training: { epochs: 1 },
  resources: { devices: 3 },
  placement: { policy: 'FIXED', samplers: 2, standby: 'OFF' },
  restart: { maxAttempts: 5, executorRestarts: 7 },
  timeouts: { pendingMs: 1, startupMs: 2, stallMs: 3000, cancelGraceMs: 4000, runMs: 5 },
  priority: 9,
});

const work = { finalizeMs: 6 };
const base = { jobId: 'a', createdAtMs: 8, tally: freshTally, delayMs: 0, work };

describe("a job's request", () => {
  test('carries over what the spec says', () => {
    expect(jobRequestOf({ ...base, spec })).toMatchObject({
      jobId: 'a',
      priority: 9,
      createdAtMs: 8,
      devices: { kind: 'count', count: 3 },
      placement: { policy: 'FIXED', fixedSamplers: 2, standby: 'OFF' },
      mustCalibrate: false,
      restart: { maxAttempts: 5, executorRestarts: 7, startupFailures: 2 },
      timeouts: { pendingMs: 1, startupMs: 2, runMs: 5 },
    });
  });

  test('has to calibrate where a cache takes what a device has left', () => {
    const resources = { ...spec.resources, deviceMemoryBytes: 1 };
    expect(jobRequestOf({ ...base, spec: { ...spec, resources } }).mustCalibrate).toBe(true);
    const cache = { ...spec.cache, ratio: 0.5 };
    expect(jobRequestOf({ ...base, spec: { ...spec, resources, cache } }).mustCalibrate).toBe(
      false,
    );
  });

  test('waits for a stop longer than the supervisor may take for it', () => {
    expect(jobRequestOf({ ...base, spec }).timeouts.stopMs).toBeGreaterThan(4000 + 30_000);
  });

  test('backs off no longer than was decided, whatever the clock says by now', () => {
    const tally = { ...freshTally, startupFailures: 2 };
    const dayMs = 86_400_000;
    expect(jobRequestOf({ ...base, spec, tally, delayMs: dayMs }).delayMs).toBe(12_000);
    expect(jobRequestOf({ ...base, spec, tally, delayMs: 3_000 }).delayMs).toBe(3_000);
  });

  test('asks for devices by name where there are names', () => {
    const resources = { ...spec.resources, devices: 2, deviceNames: ['cpu:1', 'cpu:0'] };
    const named = { ...spec, resources };
    expect(jobRequestOf({ ...base, spec: named }).devices).toEqual({
      kind: 'names',
      names: ['cpu:1', 'cpu:0'],
    });
  });

  test.each([
    [{ devices: { kind: 'count', count: 0 } }, 'at least 1'],
    [{ devices: { kind: 'count', count: 1.5 } }, 'at least 1'],
    [{ devices: { kind: 'names', names: [] } }, 'at least 1'],
    [{ devices: { kind: 'names', names: ['x', 'x'] } }, 'twice'],
    [{ placement: { policy: 'FIXED', fixedSamplers: 0, standby: 'OFF' } }, '0 Samplers'],
    [{ placement: { policy: 'FIXED', fixedSamplers: 3, standby: 'OFF' } }, '3 Samplers'],
  ] as const)('is impossible with %j', (change, problem) => {
    expect(requestProblem(plainRequest)).toBeNull();
    expect(requestProblem({ ...plainRequest, ...change })).toContain(problem);
  });
});
