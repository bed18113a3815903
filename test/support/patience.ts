/** How long somebody has waited; time in which this process itself was frozen counts for nobody. */
export class Patience {
  readonly #limitMs: number;
  #waitedMs = 0;
  #lookedMs = performance.now();

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  renew(): void {
    this.#waitedMs = 0;
  }

  /** At each look: whether it is over. */
  isOver(): boolean {
    const nowMs = performance.now();
    this.#waitedMs += Math.min(nowMs - this.#lookedMs, 500);
    this.#lookedMs = nowMs;
    return this.#waitedMs > this.#limitMs;
  }
}
