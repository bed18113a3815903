import { totalmem } from 'node:os';
import { expect, test } from 'vitest';
import { hostMemoryBytes, limitFilesOf } from '../../../src/base/host-memory.ts';

test('the limits of a process are those of its control groups and of the ones around them', () => {
  expect(limitFilesOf('5:cpu,cpuacct:/x\n4:memory:/a\n1:name=systemd:/\n')).toEqual([
    '/sys/fs/cgroup/memory/a/memory.limit_in_bytes',
    '/sys/fs/cgroup/memory/memory.limit_in_bytes',
  ]);
  expect(limitFilesOf('0::/a/b\n')).toEqual([
    '/sys/fs/cgroup/a/b/memory.max',
    '/sys/fs/cgroup/a/memory.max',
    '/sys/fs/cgroup/memory.max',
  ]);
  expect(limitFilesOf('')).toEqual([]);
});

test('the memory of the host is no more than what is built in', () => {
  expect(hostMemoryBytes()).toBeGreaterThan(2 ** 26);
  expect(hostMemoryBytes()).toBeLessThanOrEqual(totalmem());
});
