import { describe, expect, it } from 'vitest';
import { clearedBy, judged, lostWith } from '../../../src/scheduler/broken-devices.ts';
import type { Device } from '../../../src/scheduler/state.ts';

const failed = { kind: 'CRASHED', reason: 'DEVICE_FAILED', message: 'an illegal address' } as const;
const healthy: readonly Device[] = ['cuda:0/0', 'cuda:0/1', 'cuda:1'].map((name) => ({
  ...{ name, quarantine: null },
}));
/** A process of a job on a device; those beside it ran at the same time. */
const at = (device: string, executor: string, beside: readonly string[] = [], jobId = 'a') => ({
  ...{ jobId, attempt: 1, device, executor, executors: [executor, ...beside] },
});

describe('a device that failed a process', () => {
  const first = judged(failed, at('cuda:0/1', 'trainer#1', ['sampler#1']), healthy);

  it('is given to one more, and is lost with all its parts when it fails that', () => {
    expect(first.outcome).toBe(failed);
    expect(lostWith(first.outcome, 'cuda:0/1', first.devices)).toEqual([]);
    const second = judged(failed, at('cuda:0/1', 'trainer#2'), first.devices);
    expect(second.outcome).toMatchObject({ kind: 'CRASHED', reason: 'DEVICE_LOST' });
    expect(lostWith(second.outcome, 'cuda:0/1', second.devices)).toEqual(['cuda:0/0', 'cuda:0/1']);
    const other = judged(failed, at('cuda:0/1', 'trainer#1', [], 'b'), first.devices);
    expect(other.outcome).toMatchObject({ reason: 'DEVICE_LOST' });
  });

  it('is not held to have failed twice by one event that breaks two processes', () => {
    const beside = judged(failed, at('cuda:0/1', 'sampler#1', ['trainer#1']), first.devices);
    expect(beside.outcome).toBe(failed);
  });

  it('is lost once by one job, whose own fault it may be', () => {
    const second = judged(failed, at('cuda:0/1', 'trainer#2'), first.devices);
    const elsewhere = judged(failed, at('cuda:1', 'trainer#3'), second.devices);
    const again = judged(failed, at('cuda:1', 'trainer#4'), elsewhere.devices);
    expect(again.outcome).toBe(failed);
    const another = judged(failed, at('cuda:1', 'trainer#1', [], 'b'), again.devices);
    expect(another.outcome).toMatchObject({ reason: 'DEVICE_LOST' });
  });

  it('is no reason to suspect others, nor to hold other deaths against it', () => {
    expect(judged(failed, at('cuda:1', 'trainer#9'), first.devices).outcome).toBe(failed);
    const crashed = { ...failed, reason: 'EXECUTOR_CRASHED' } as const;
    const death = judged(crashed, at('cuda:0/1', 'trainer#2'), first.devices);
    expect(death).toEqual({ outcome: crashed, devices: first.devices });
  });

  it('is cleared by a job that succeeds on it', () => {
    const cleared = clearedBy(['cuda:0/1'], first.devices);
    expect(judged(failed, at('cuda:0/1', 'trainer#2'), cleared).outcome).toBe(failed);
    expect(clearedBy(['cuda:1'], first.devices)).toBe(first.devices);
    expect(clearedBy(['cuda:0/1'], healthy)).toBe(healthy);
  });
});
