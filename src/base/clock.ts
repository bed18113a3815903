import timers from 'node:timers/promises';

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
export async function sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
  try {
    await timers.setTimeout(delayMs, undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    // Node rejects with an error of its own, whatever the reason.
    throw signal?.aborted === true ? signal.reason : error;
  }
}
