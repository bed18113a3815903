/** Waiting for a change, a time or an end, without timers or listeners left behind. */

/** Resolves after `delayMs`, or rejects when the signal aborts. */
export type Sleep = (delayMs: number, signal?: AbortSignal) => Promise<void>;

/** Many waiters, one news: "look again". */
export interface Bell {
  ring(): void;
  /** Resolves at the next ring; taken before looking, so that no change slips in between. */
  next(): Promise<void>;
}

export function createBell(): Bell {
  let resolveNext: () => void = () => {};
  let next = new Promise<void>((resolve) => {
    resolveNext = resolve;
  });
  return {
    ring() {
      resolveNext();
      next = new Promise((resolve) => {
        resolveNext = resolve;
      });
    },
    next: () => next,
  };
}

/** Resolves at the first of a ring, the time and the signal's abort; never rejects. */
export async function pause(
  rung: Promise<void>,
  delayMs: number,
  sleep: Sleep,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return;
  const done = new AbortController();
  const abort = () => done.abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    await Promise.race([rung, sleep(delayMs, done.signal).catch(() => {})]);
  } finally {
    signal.removeEventListener('abort', abort);
    done.abort();
  }
}
