/** Seeded random numbers for property tests: print the seed on failure, repeat with GNND_SEED. */

export interface Random {
  /** Uniform in [0, 1). */
  unit(): number;
  /** Uniform integer in low..high, both included. */
  integer(low: number, high: number): number;
  /** An element of a non-empty list. */
  pick<T>(items: readonly T[]): T;
  /** True with the given probability. */
  chance(probability: number): boolean;
}

/** The generator mulberry32: 32 bits of state, plenty for choosing test cases. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  const unit = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const integer = (low: number, high: number) => low + Math.floor(unit() * (high - low + 1));
  return {
    unit,
    integer,
    pick: <T>(items: readonly T[]) => {
      const item = items[integer(0, items.length - 1)];
      if (item === undefined) throw new Error('picked from an empty list');
      return item;
    },
    chance: (probability) => unit() < probability,
  };
}

/**
 * Runs `property` on `cases` random generators. Seeds follow from the run's own one, a fresh one
 * unless GNND_SEED is set; a failure names the seed of its case, with which GNND_SEED repeats it.
 */
export function forAll(cases: number, property: (random: Random) => void): void {
  const given = process.env['GNND_SEED'];
  if (given !== undefined) {
    property(randomOf(Number(given)));
    return;
  }
  const first = Math.floor(Math.random() * 2 ** 31);
  for (let index = 0; index < cases; index += 1) {
    const seed = (first + index) >>> 0;
    try {
      property(randomOf(seed));
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new Error(`GNND_SEED=${seed}: ${message}`, { cause: error });
    }
  }
}
