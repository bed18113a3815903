import { describe, expect, it } from 'vitest';
import { grants } from '../../../src/scheduler/queue.ts';
import { usableFor } from '../../../src/scheduler/request.ts';
import type { DeviceRequest, SchedulerState } from '../../../src/scheduler/state.ts';
import { viewQueue } from '../../../src/scheduler/waiting.ts';

const names = ['cpu:0', 'cpu:1', 'cuda:0/0', 'cuda:0/1'];

function queued(...wanted: readonly DeviceRequest[]): SchedulerState {
  const queue = wanted.map((devices, index) => ({
    request: { jobId: `job-${index}`, priority: 0, createdAtMs: index, devices },
    stage: { kind: 'QUEUED', notBeforeMs: null },
  }));
  const devices = names.map((name) => ({ name, quarantine: null }));
  return { devices, queue, running: [], draining: false } as unknown as SchedulerState;
}

describe('kinds of devices', () => {
  it('are what a count may ask for; without one any will do', () => {
    expect(usableFor({ kind: 'count', count: 1, of: 'CUDA' }, names)).toEqual(names.slice(2));
    expect(usableFor({ kind: 'count', count: 1, of: 'SIM' }, names)).toEqual([]);
    expect(usableFor({ kind: 'count', count: 1 }, names)).toEqual(names);
  });

  it('do not decide who samples: the first device that a job names does', () => {
    const wanted: DeviceRequest = { kind: 'names', names: ['cuda:0/1', 'cpu:0'] };
    expect(usableFor(wanted, names)).toEqual(wanted.names);
    expect(grants(queued(wanted)).map(({ devices }) => devices)).toEqual([wanted.names]);
  });

  it('are granted beside each other: one waits for its own alone', () => {
    const state = queued(
      { kind: 'count', count: 2, of: 'CUDA' },
      { kind: 'count', count: 2, of: 'CUDA' },
      { kind: 'count', count: 2, of: 'CPU' },
    );
    const granted = grants(state).map(({ job, devices }) => [job.request.jobId, devices]);
    expect(granted).toEqual([
      ['job-0', ['cuda:0/0', 'cuda:0/1']],
      ['job-2', ['cpu:0', 'cpu:1']],
    ]);
  });

  it('that a host lacks are counted by their own', () => {
    const view = viewQueue(queued({ kind: 'count', count: 3, of: 'CUDA' }));
    expect(view.waitingFor('job-0')?.message).toBe('needs 3 devices, this host has 2');
  });
});
