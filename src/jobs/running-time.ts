import type { Clock } from '../base/clock.ts';

/**
 * Time in which this daemon runs. What was stopped with it, or could not be heard by it, is not
 * late: a daemon that thaws (SIGSTOP, a frozen cgroup) fails nobody for the time in between.
 */

const pulseMs = 1000;
/** Longer than anything that one turn of the event loop does. */
const frozenMs = 5000;

export class RunningTime {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #pulse: NodeJS.Timeout | null = null;
  #seenMs = 0;
  #lostMs = 0;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** Monotonic ms without those in which the daemon was frozen while it watched. */
  nowMs(): number {
    const ms = this.#clock.monotonicMs();
    if (this.#pulse !== null) {
      const gapMs = ms - this.#seenMs;
      if (gapMs > frozenMs) this.#lostMs += gapMs - pulseMs;
      this.#seenMs = ms;
    }
    return ms - this.#lostMs;
  }

  /** While there is something that has deadlines. */
  watch(isNeeded: boolean): void {
    if (isNeeded === (this.#pulse !== null)) return;
    if (this.#pulse !== null) clearInterval(this.#pulse);
    this.#pulse = null;
    if (!isNeeded) return;
    this.#seenMs = this.#clock.monotonicMs();
    this.#pulse = setInterval(() => this.nowMs(), pulseMs);
    this.#pulse.unref();
  }
}
