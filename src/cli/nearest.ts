/** Finding what somebody meant. */

/** Insertions, deletions, replacements and swaps of neighbours that turn one word into the other. */
export function editDistance(left: string, right: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: right.length + 1 }, (_, column) => column);
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= right.length; column += 1) {
      const isSame = left[row - 1] === right[column - 1];
      let distance = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
      );
      const isSwap =
        row > 1 && left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1];
      if (isSwap) distance = Math.min(distance, (beforeLast[column - 2] ?? 0) + 1);
      current.push(distance);
    }
    beforeLast = last;
    last = current;
  }
  return last[right.length] ?? 0;
}

/**
 * The candidate most like `word`, or null when none is like it: a third of its letters may differ,
 * or it is a part of the candidate (`seed` of `random_seed`) or its initials (`lr`).
 */
export function nearest(word: string, candidates: readonly string[]): string | null {
  const plain = fold(word);
  let best: string | null = null;
  let bestDistance = Math.max(2, Math.floor(plain.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(plain, fold(candidate));
    if (distance >= bestDistance || distance >= Math.max(plain.length, 2)) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best ?? candidates.find((candidate) => isShortFor(plain, candidate)) ?? null;
}

function fold(word: string): string {
  return word.toLowerCase().replaceAll(/[_-]/g, '');
}

function isShortFor(plain: string, candidate: string): boolean {
  const words = candidate.toLowerCase().split('_');
  return words.includes(plain) || words.map((part) => part.charAt(0)).join('') === plain;
}
