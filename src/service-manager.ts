import { systemClock } from './base/clock.ts';
import type { Log } from './base/log.ts';
import type { CoreAddon } from './native/contract.ts';

/**
 * Who watches the daemon: a thread of its own, which says when the loop stands still, and systemd,
 * where that started it (sd_notify(3)), which then ends it and starts the next one.
 */
export interface ServiceManager {
  /** The daemon serves. */
  ready(): void;
  /** The daemon was told to stop, which may take longer than a loop may stand still. */
  stopping(): void;
}

export interface ServiceManagerOptions {
  readonly native: Pick<CoreAddon, 'hostBeat' | 'hostNotify' | 'hostWatchLoop'>;
  readonly log: Log;
  readonly env: NodeJS.ProcessEnv;
  /** A loop that stands still for so long is said to. */
  readonly limitMs: number;
  readonly beatMs: number;
}

export const loopLimits = { limitMs: 10_000, beatMs: 500 };

export function watchLoop(options: ServiceManagerOptions): ServiceManager {
  const { native, log, env, limitMs, beatMs } = options;
  const line = { lvl: 'error', msg: 'daemon.loop_blocked', limitMs };
  native.hostWatchLoop(limitMs, JSON.stringify(line));
  const isWatched = /^\d+$/.test(env['WATCHDOG_USEC'] ?? '') && isForUs(env['WATCHDOG_PID']);
  let lastMs = systemClock.monotonicMs();
  // Nothing waits for it.
  setInterval(() => {
    native.hostBeat();
    const nowMs = systemClock.monotonicMs();
    // This is logged also after SIGSTOP, which the thread does not count.
    if (nowMs - lastMs > limitMs) log.warn('daemon.loop_resumed', { afterMs: nowMs - lastMs });
    lastMs = nowMs;
    if (isWatched) native.hostNotify('WATCHDOG=1');
  }, beatMs).unref();
  return {
    ready: () => void native.hostNotify('READY=1'),
    stopping: () => void native.hostNotify('STOPPING=1'),
  };
}

/** systemd says whom it watches, where a service has several processes. */
function isForUs(pid: string | undefined): boolean {
  return pid === undefined || pid === String(process.pid);
}
