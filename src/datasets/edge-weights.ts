import type { NpyValues } from './npy.ts';
import { formatCount } from './problems.ts';

/**
 * Weights of edges as the user gave them: draws and means are in proportion to them, so that only
 * what has no float32 is refused, by its place in what was given.
 */

/** What is wrong with a weight that is `stored` as float32; null: nothing. */
export function weightProblem(given: number, stored: number): string | null {
  if (!(given >= 0 && given < Number.POSITIVE_INFINITY)) {
    return 'expected a finite number of 0 or more';
  }
  if (stored === Number.POSITIVE_INFINITY) {
    return 'beyond float32: divide all weights by one number, which changes no result';
  }
  if (given > 0 && stored === 0) {
    return 'which float32 rounds to 0: multiply all weights by one number, which changes no result';
  }
  return null;
}

/** Weights of an array that cannot be stored: the first one, and how many. */
export class BadWeights {
  count = 0;
  /** Index of the first one. */
  index = 0;
  #first = '';
  #why = '';
  #done = 0;

  /** A block as it was given (float16 as its bits) and as it is stored. */
  see(block: NpyValues, stored: NpyValues): void {
    const isBits = block instanceof Uint16Array;
    for (let at = 0; at < stored.length; at += 1) {
      const is = Number(stored[at]);
      const given = isBits ? is : Number(block[at]);
      const why = weightProblem(given, is);
      if (why === null) continue;
      if (this.count === 0) {
        this.index = this.#done + at;
        this.#first = String(given);
        this.#why = why;
      }
      this.count += 1;
    }
    this.#done += stored.length;
  }

  /** `of` says which edge the first one is. */
  describe(of = ''): string {
    const more = this.count > 1 ? ` and ${formatCount(this.count - 1)} more` : '';
    return `has ${this.#first} at index ${this.index}${of}${more}, ${this.#why}`;
  }
}
