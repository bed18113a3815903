import type { ExecutorSnapshot } from '../native/contract.ts';
import type { ProcessState } from './process-state.ts';

/**
 * Tells a stalled executor from one that has much to do. A loop gives a sign of life at each stage
 * of a batch and, while it waits, every second. One that is silent for `stallMs` is stalled, unless
 * it loads or computes: loading has as long as the whole start, and a batch or a chunk of an
 * evaluation `workStalls` times as long, as long as its process takes processor time.
 */

export interface WatchdogLimits {
  readonly stallMs: number;
  readonly startupMs: number;
}

/** One executor, between two looks. */
export interface Watched {
  /** Since when it has been stopped (SIGSTOP, a debugger) before it ran; null while it is not. */
  stoppedSinceMs: number | null;
  /** When its processor time was last looked at, because it was silent. */
  cpu: { readonly atMs: number; readonly cpuMs: number } | null;
  /** Whether it took some between the last two of these looks. */
  computes: boolean;
}

export const unwatched = (): Watched => ({ stoppedSinceMs: null, cpu: null, computes: false });

export interface Stall {
  readonly silentMs: number;
  /** What the executor did not do, in words for people. */
  readonly why: string;
}

type Row = Pick<ExecutorSnapshot, 'phase' | 'heartbeatNs' | 'registeredNs' | 'stage'>;

/** A batch that computes may take so many stall times. */
export const workStalls = 10;
/** Housekeeping of a process that sleeps takes less of a core. */
const computingShare = 0.02;
/** Looks come every 100 ms: after such a gap it is the daemon that did not run. */
const frozenMs = 2000;

export class Watchdog {
  readonly #limits: WatchdogLimits;
  readonly #stateOf: (pid: number) => ProcessState | null;
  #lastMs: number | null = null;
  /** End of the daemon's last freeze; silence before it does not count. */
  #thawedMs = 0;

  constructor(limits: WatchdogLimits, stateOf: (pid: number) => ProcessState | null) {
    this.#limits = limits;
    this.#stateOf = stateOf;
  }

  /** Called before executors are looked at. What froze the daemon may have frozen them, too. */
  begin(nowMs: number): void {
    if (this.#lastMs !== null && nowMs - this.#lastMs > frozenMs) this.#thawedMs = nowMs;
    this.#lastMs = nowMs;
  }

  /** Looks at an executor; null unless it is to be killed. */
  look(row: Row, pid: number, watched: Watched, nowMs: number): Stall | null {
    if (row.phase === 'REAPED') return null;
    return row.phase === 'RUNNING'
      ? this.#lookAtRunning(row, pid, watched, nowMs)
      : this.#lookAtLoading(row, pid, watched, nowMs);
  }

  #lookAtLoading(row: Row, pid: number, watched: Watched, nowMs: number): Stall | null {
    const { stallMs, startupMs } = this.#limits;
    if (this.#stateOf(pid)?.isStopped !== true) watched.stoppedSinceMs = null;
    else watched.stoppedSinceMs ??= nowMs;
    const { stoppedSinceMs } = watched;
    const silentMs = this.#since(stoppedSinceMs ?? row.registeredNs / 1e6, nowMs);
    if (silentMs <= (stoppedSinceMs === null ? startupMs : stallMs)) return null;
    return { silentMs, why: `was not ready after ${inSeconds(silentMs)}` };
  }

  #lookAtRunning(row: Row, pid: number, watched: Watched, nowMs: number): Stall | null {
    const { stallMs } = this.#limits;
    const silentMs = this.#since(row.heartbeatNs / 1e6, nowMs);
    if (silentMs <= stallMs / 2) {
      Object.assign(watched, unwatched());
      return null;
    }
    this.#noteWork(pid, watched, nowMs);
    if (silentMs <= stallMs) return null;
    if (!watched.computes) {
      return { silentMs, why: `gave no sign of life for ${inSeconds(silentMs)}` };
    }
    if (silentMs <= workStalls * stallMs) return null;
    return { silentMs, why: `was busy with one ${row.stage} for ${inSeconds(silentMs)}` };
  }

  #noteWork(pid: number, watched: Watched, nowMs: number): void {
    const { cpu } = watched;
    // Thrice before the first verdict, so that its last part alone counts.
    if (cpu !== null && nowMs - cpu.atMs < this.#limits.stallMs / 6) return;
    const state = this.#stateOf(pid);
    if (state === null) return;
    watched.computes =
      cpu !== null &&
      !state.isStopped &&
      state.cpuMs - cpu.cpuMs >= computingShare * (nowMs - cpu.atMs);
    watched.cpu = { atMs: nowMs, cpuMs: state.cpuMs };
  }

  #since(sinceMs: number, nowMs: number): number {
    return nowMs - Math.max(sinceMs, this.#thawedMs);
  }
}

function inSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
