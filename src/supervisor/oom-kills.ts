import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { limitFilesOf } from '../base/host-memory.ts';

/**
 * Whether the kernel has killed for memory lately: a process that it kills so dies of SIGKILL like
 * any other, and only its counters tell.
 */

/** A large process takes that long to go: its kill is counted before its end is heard. */
const windowMs = 5000;
const sampleMs = 1000;

export interface OomKills {
  /** Keeps an older count to compare with; may be called often. */
  look(nowMs: number): void;
  /** Whether a kill happened within the last few seconds. */
  happened(): boolean;
}

/** `count`: kills for memory so far. */
export function createOomKills(count: () => number = oomKillsSoFar): OomKills {
  let samples: { readonly atMs: number; readonly kills: number }[] = [];
  return {
    look(nowMs) {
      const newest = samples.at(-1);
      if (newest !== undefined && nowMs - newest.atMs < sampleMs) return;
      samples = samples.filter(({ atMs }, at) => {
        // The newest of those that are too old stays: it is the count at the window's begin.
        const next = samples[at + 1];
        return nowMs - atMs < windowMs || next === undefined || nowMs - next.atMs < windowMs;
      });
      samples.push({ atMs: nowMs, kills: count() });
    },
    happened() {
      const first = samples[0];
      return first !== undefined && count() > first.kills;
    },
  };
}

/** The largest count of OOM kills, of the control groups around this process or of the host. */
export function oomKillsSoFar(read: (path: string) => string | null = readText): number {
  const groups = limitFilesOf(read('/proc/self/cgroup') ?? '').flatMap((limit) => {
    const folder = dirname(limit);
    const text = read(join(folder, 'memory.events')) ?? read(join(folder, 'memory.oom_control'));
    return counterOf(text) ?? [];
  });
  const host = counterOf(read('/proc/vmstat')) ?? 0;
  // The host's counts those of groups, too; one of these may be hidden in a container.
  return Math.max(host, ...groups);
}

function counterOf(text: string | null): number | null {
  const count = /^oom_kill (\d+)$/m.exec(text ?? '')?.[1];
  return count === undefined ? null : Number(count);
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
