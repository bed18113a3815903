import { readFileSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';

/** What this process and its children may use: the host's memory, or a limit that it was given. */
export function hostMemoryBytes(): number {
  const own = readText('/proc/self/cgroup') ?? '';
  return Math.min(totalmem(), ...limitFilesOf(own).map((path) => limitOf(readText(path))));
}

/** What the host could give without anything else losing its memory; infinite where unknown. */
export function availableMemoryBytes(): number {
  const kibibytes = /^MemAvailable:\s+(\d+) kB$/m.exec(readText('/proc/meminfo') ?? '')?.[1];
  return kibibytes === undefined ? Number.POSITIVE_INFINITY : 1024 * Number(kibibytes);
}

/**
 * Where the limits of a process's control groups stand, given its /proc/PID/cgroup: of version 1
 * (`4:memory:/a`) and of version 2 (`0::/a/b`), with those of the groups around them.
 */
export function limitFilesOf(cgroups: string): string[] {
  return cgroups.split('\n').flatMap((line) => {
    const [, controllers, path = ''] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (controllers === '') return groupsAround(path).map((at) => join(root, at, 'memory.max'));
    if (controllers?.split(',').includes('memory') !== true) return [];
    return groupsAround(path).map((at) => join(root, 'memory', at, 'memory.limit_in_bytes'));
  });
}

const root = '/sys/fs/cgroup';

/** `/a/b`, `/a`, `/`. */
function groupsAround(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [path] : [path, ...groupsAround(parent)];
}

/** "max", and what no memory reaches, are no limit. */
function limitOf(text: string | null): number {
  const bytes = Number(text?.trim() ?? Number.NaN);
  return bytes > 0 ? bytes : Number.POSITIVE_INFINITY;
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

/** An oom_score_adj, of a thousand: more than any share of memory that a daemon has. */
const firstToDie = 500;

/**
 * Where memory runs out the kernel is to take this process before others: for children, which are
 * replaced, so that it does not take the daemon. What an operator has set higher stays.
 */
export function dieFirst(path = '/proc/self/oom_score_adj'): void {
  try {
    if (Number(readFileSync(path, 'utf8')) < firstToDie) writeFileSync(path, String(firstToDie));
  } catch {
    // A kernel without it has no such choice to make.
  }
}
