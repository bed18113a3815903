import { nearestOf } from '../../spec/nearest.ts';

/**
 * What somebody meant: the candidate that `word` is a part of (`seed` of `random_seed`) or the
 * initials of (`lr`), else the one with the fewest letters to change; null when none is near.
 */
export function nearest(word: string, candidates: readonly string[]): string | null {
  const short = word.toLowerCase();
  return (
    candidates.find((candidate) => isShortFor(short, candidate)) ?? nearestOf(word, candidates)
  );
}

function isShortFor(short: string, candidate: string): boolean {
  const words = candidate.toLowerCase().split('_');
  const initials = words.map((part) => part.charAt(0)).join('');
  return words.length > 1 && (words.includes(short) || initials === short);
}
