/** Time, injected: pure code takes timestamps as values, shells take a Clock. */
export interface Clock {
  /** Wall time in ms since the epoch; for stored and shown times only. */
  wallMs(): number;
  /** Ms of CLOCK_MONOTONIC, the clock of native heartbeats; for intervals and deadlines. */
  monotonicMs(): number;
}

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => Number(process.hrtime.bigint() / 1000n) / 1000,
};

/** Resolves after `delayMs`, or rejects with the signal's reason. */
export function sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, delayMs);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
