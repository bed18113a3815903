/**
 * Draws when something changed, and no more often than a person can follow: data may come a
 * thousand times a second. How often it drew is what tests count.
 */
export interface PainterTime {
  readonly nowMs: () => number;
  /** Calls once after `delayMs`, when the page is to be painted. Returns what takes that back. */
  readonly later: (run: () => void, delayMs: number) => () => void;
}

export const paintPeriodMs = 250;

export class Painter {
  readonly #draw: () => void;
  readonly #time: PainterTime;
  #drawnAtMs = Number.NEGATIVE_INFINITY;
  #cancel: (() => void) | null = null;
  #draws = 0;

  constructor(draw: () => void, time: PainterTime) {
    this.#draw = draw;
    this.#time = time;
  }

  get draws(): number {
    return this.#draws;
  }

  /** Something changed. */
  ask(): void {
    if (this.#cancel !== null) return;
    const delayMs = Math.max(0, this.#drawnAtMs + paintPeriodMs - this.#time.nowMs());
    this.#cancel = this.#time.later(() => {
      this.#cancel = null;
      this.#drawnAtMs = this.#time.nowMs();
      this.#draws += 1;
      this.#draw();
    }, delayMs);
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }
}
