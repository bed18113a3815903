import { readFileSync } from 'node:fs';
import type { ExecutorSnapshot } from '../native/contract.ts';
import type { ExecutorRole } from '../records/job-record.ts';

/**
 * Memory and processor time of an attempt's executors, from /proc. What one took stays counted
 * after its death, as of the last look, so that sums never go backwards.
 */

type Executor = Pick<ExecutorSnapshot, 'incarnation' | 'role' | 'pid' | 'phase'>;

interface Usage {
  readonly residentBytes: number;
  readonly cpuSeconds: number;
}

/** USER_HZ: what the kernel counts in towards programs, whatever it uses itself. */
const ticksPerSecond = 100;
/** Positions of utime and stime after the command, which may hold any character (proc(5)). */
const utimeAt = 11;
const stimeAt = 12;

export class ExecutorUsage {
  readonly #byIncarnation = new Map<number, Usage & { readonly role: ExecutorRole }>();

  look(executors: readonly Executor[]): void {
    for (const { incarnation, role, pid, phase } of executors) {
      // Before it has entered there is no pid; after it was reaped its pid may be another's.
      const usage = pid === 0 || phase === 'REAPED' ? null : processUsage(pid);
      if (usage !== null) this.#byIncarnation.set(incarnation, { role, ...usage });
    }
  }

  /** Resident memory at the last look; 0 when the executor was never seen. */
  residentBytes({ incarnation }: Pick<Executor, 'incarnation'>): number {
    return this.#byIncarnation.get(incarnation)?.residentBytes ?? 0;
  }

  get cpuSeconds(): Readonly<Record<ExecutorRole, number>> {
    const sums = { SAMPLER: 0, TRAINER: 0, STANDBY: 0 };
    for (const { role, cpuSeconds } of this.#byIncarnation.values()) sums[role] += cpuSeconds;
    return sums;
  }
}

/** Null when the process is gone. */
function processUsage(pid: number): Usage | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    const residentKib = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0);
    const ticks = Number(fields[utimeAt]) + Number(fields[stimeAt]);
    return { residentBytes: 1024 * residentKib, cpuSeconds: ticks / ticksPerSecond };
  } catch {
    return null;
  }
}
