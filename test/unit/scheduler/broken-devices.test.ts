import { describe, expect, it } from 'vitest';
import {
  clearedBy,
  lostWith,
  suspectedAfter,
  toldOf,
} from '../../../src/scheduler/broken-devices.ts';

const failed = { kind: 'CRASHED', reason: 'DEVICE_FAILED', message: 'an illegal address' } as const;
const healthy = ['cuda:0/0', 'cuda:0/1', 'cuda:1'].map((name) => ({ name, quarantine: null }));

describe('a device that failed a process', () => {
  const suspected = suspectedAfter(failed, 'cuda:0/1', healthy);

  it('is given to one more, and is lost with all its parts when it fails that', () => {
    expect(toldOf(failed, 'cuda:0/1', healthy)).toBe(failed);
    expect(lostWith(failed, 'cuda:0/1', healthy)).toEqual([]);
    const told = toldOf(failed, 'cuda:0/1', suspected);
    expect(told).toMatchObject({ kind: 'CRASHED', reason: 'DEVICE_LOST' });
    expect(lostWith(told, 'cuda:0/1', suspected)).toEqual(['cuda:0/0', 'cuda:0/1']);
  });

  it('is no reason to suspect others, nor to hold other deaths against it', () => {
    expect(toldOf(failed, 'cuda:1', suspected)).toBe(failed);
    const crashed = { ...failed, reason: 'EXECUTOR_CRASHED' } as const;
    expect(toldOf(crashed, 'cuda:0/1', suspected)).toBe(crashed);
    expect(suspectedAfter(crashed, 'cuda:1', suspected)).toBe(suspected);
  });

  it('is cleared by a job that succeeds on it', () => {
    const cleared = clearedBy(['cuda:0/1'], suspected);
    expect(toldOf(failed, 'cuda:0/1', cleared)).toBe(failed);
    expect(clearedBy(['cuda:1'], suspected)).toBe(suspected);
    expect(clearedBy(['cuda:0/1'], healthy)).toBe(healthy);
  });
});
