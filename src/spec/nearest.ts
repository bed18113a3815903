/**
 * The known word that an unknown one probably meant: the one that `word` is a part of (`seed`
 * of `random_seed`) or the initials of (`lr`), else the one with the fewest letters to change; null
 * when none is near.
 */
export function nearestOf(word: string, known: readonly string[]): string | null {
  const short = word.toLowerCase();
  return known.find((candidate) => isShortFor(short, candidate)) ?? leastChanged(short, known);
}

/** A question that follows a sentence ("did you mean"), or nothing. */
export function meantBy(word: string, known: readonly string[]): string {
  const meant = nearestOf(word, known);
  return meant === null ? '' : `; did you mean ${meant}?`;
}

function isShortFor(short: string, candidate: string): boolean {
  const words = candidate.toLowerCase().split(/[_-]/);
  const initials = words.map((part) => part.charAt(0)).join('');
  return words.length > 1 && short !== '' && (words.includes(short) || initials === short);
}

function leastChanged(word: string, known: readonly string[]): string | null {
  let best: string | null = null;
  let bestDistance = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(word, candidate.toLowerCase());
    // Nothing is left of a short word once all of its letters are others.
    if (distance < bestDistance && distance < Math.max(word.length, candidate.length)) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Insertions, deletions, replacements and exchanges of neighbours that turn `a` into `b`. */
function editDistance(a: string, b: string): number {
  let before: readonly number[] = [];
  let row: readonly number[] = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isExchange = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const exchange = isExchange ? (before[j - 2] ?? 0) + 1 : replace;
      next.push(Math.min(replace, exchange, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? 0;
}
