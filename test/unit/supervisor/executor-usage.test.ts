import { expect, test } from 'vitest';
import { ExecutorUsage } from '../../../src/supervisor/executor-usage.ts';

const trainer = { incarnation: 1, role: 'TRAINER', pid: process.pid, phase: 'RUNNING' } as const;

test('a living process shows its memory and processor time', () => {
  const usage = new ExecutorUsage();
  usage.look([trainer]);
  expect(usage.residentBytes(trainer)).toBeGreaterThan(2 ** 20);
  expect(usage.cpuSeconds.TRAINER).toBeGreaterThan(0);
  expect(usage.cpuSeconds.TRAINER).toBeLessThanOrEqual(process.uptime() * 64);
  expect(usage.cpuSeconds.SAMPLER).toBe(0);
});

test('what a dead one took stays counted, beside its replacement', () => {
  const usage = new ExecutorUsage();
  usage.look([trainer]);
  const before = usage.cpuSeconds.TRAINER;
  usage.look([{ ...trainer, phase: 'REAPED' }]);
  expect(usage.cpuSeconds.TRAINER).toBe(before);
  usage.look([
    { ...trainer, phase: 'REAPED' },
    { ...trainer, incarnation: 2 },
  ]);
  expect(usage.cpuSeconds.TRAINER).toBeGreaterThanOrEqual(2 * before);
});

test('who has not entered or is gone is not looked for', () => {
  const usage = new ExecutorUsage();
  const pidMax = 2 ** 22;
  usage.look([
    { ...trainer, pid: 0 },
    { ...trainer, incarnation: 3, pid: pidMax + 1 },
  ]);
  expect(usage.cpuSeconds).toEqual({ SAMPLER: 0, TRAINER: 0, STANDBY: 0 });
  expect(usage.residentBytes(trainer)).toBe(0);
});
