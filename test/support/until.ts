import { setTimeout as later } from 'node:timers/promises';

/** How tests wait: for what other processes bring about, never for a time. */

/** Whatever takes longer hangs: a starved machine has answered after four minutes. */
export const hangMs = 240_000;

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

type Found<T> = Exclude<T, false | null | undefined>;

interface Looks {
  readonly everyMs?: number;
  readonly limitMs?: number;
}

/** Looks until there is something (neither false nor null nor undefined), and returns that. */
export async function until<T>(
  look: () => T | Promise<T>,
  { everyMs = 10, limitMs = hangMs }: Looks = {},
): Promise<Found<T>> {
  const patience = new Patience(limitMs);
  for (;;) {
    const seen = await look();
    if (isFound(seen)) return seen;
    if (patience.isOver()) throw new Error(`still not after ${limitMs} ms: ${look}`);
    await later(everyMs);
  }
}

function isFound<T>(seen: T): seen is Found<T> {
  return seen !== false && seen !== null && seen !== undefined;
}

/** Looks until a number has stayed the same for `forMs`, and returns it. */
export async function steady(look: () => number, forMs = 300): Promise<number> {
  let [seen, sinceMs] = [look(), performance.now()];
  return until(() => {
    const now = look();
    if (now !== seen) [seen, sinceMs] = [now, performance.now()];
    return performance.now() - sinceMs >= forMs ? seen : null;
  });
}

/** Processes are stopped for a while that their own clocks count. */
export async function frozen(pids: readonly number[], forMs: number): Promise<void> {
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  await later(forMs);
  for (const pid of pids) process.kill(pid, 'SIGCONT');
}
