import { expect, test } from 'vitest';
import { createOomKills, oomKillsSoFar } from '../../../src/supervisor/oom-kills.ts';

test('a kill for memory is one of the last seconds', () => {
  let kills = 7;
  const oom = createOomKills(() => kills);
  expect(oom.happened()).toBe(false);
  for (let ms = 0; ms <= 20_000; ms += 100) oom.look(ms);
  expect(oom.happened()).toBe(false);
  kills += 1;
  // It may be counted seconds before the process has gone.
  for (let ms = 20_100; ms <= 24_000; ms += 100) oom.look(ms);
  expect(oom.happened()).toBe(true);
  for (let ms = 24_100; ms <= 40_000; ms += 100) oom.look(ms);
  expect(oom.happened()).toBe(false);
});

test('kills are counted by control groups of both versions, and by the host', () => {
  const files: Record<string, string> = { '/proc/self/cgroup': '0::/a/b\n' };
  const read = (path: string) => files[path] ?? null;
  expect(oomKillsSoFar(read)).toBe(0);
  files['/proc/vmstat'] = 'nr_free_pages 1\noom_kill 2\n';
  expect(oomKillsSoFar(read)).toBe(2);
  files['/sys/fs/cgroup/a/memory.events'] = 'low 0\noom 9\noom_kill 3\noom_group_kill 0\n';
  expect(oomKillsSoFar(read)).toBe(3);
  files['/proc/self/cgroup'] = '4:memory:/c\n';
  expect(oomKillsSoFar(read)).toBe(2);
  files['/sys/fs/cgroup/memory/c/memory.oom_control'] = 'under_oom 0\noom_kill 5\n';
  expect(oomKillsSoFar(read)).toBe(5);
});
