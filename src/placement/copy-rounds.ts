/**
 * Rounds of an exchange between all devices (FreshGNN, section 5.3): copies that would share a link
 * go one after the other, those that do not go at once, so that each has its links to itself.
 */

/** What a host's devices are joined by. */
export interface Wiring {
  /** The PCIe switch, or socket, that each device hangs on. */
  readonly switchOf: readonly number[];
  /** Whether two devices have a direct link, which they share with nobody. Symmetric. */
  readonly isDirect: (i: number, j: number) => boolean;
}

/** Two devices, the lower first; copies go both ways at once. */
export type Pair = readonly [number, number];

/**
 * Every two devices once, in rounds between which all wait for each other. Pairs that are near go
 * first, each into the first round where neither of its devices and none of its links is used:
 * those of a direct link or of one switch use their devices only; all others the uplinks of two
 * switches and the one bridge between them.
 */
export function copyRounds(wiring: Wiring): readonly (readonly Pair[])[] {
  const rounds: { readonly pairs: Pair[]; readonly used: Set<string> }[] = [];
  for (const pair of pairsByDistance(wiring)) {
    const uses = usedBy(pair, wiring);
    let round = rounds.find(({ used }) => uses.every((use) => !used.has(use)));
    if (round === undefined) {
      round = { pairs: [], used: new Set() };
      rounds.push(round);
    }
    round.pairs.push(pair);
    for (const use of uses) round.used.add(use);
  }
  return rounds.map(({ pairs }) => pairs.sort((a, b) => a[0] - b[0]));
}

/** What only one pair of a round may use. */
export function usedBy([i, j]: Pair, wiring: Wiring): readonly string[] {
  const devices = [`device ${i}`, `device ${j}`];
  if (distance([i, j], wiring) < 2) return devices;
  const { switchOf } = wiring;
  return [...devices, `uplink ${switchOf[i]}`, `uplink ${switchOf[j]}`, 'bridge'];
}

function distance([i, j]: Pair, { switchOf, isDirect }: Wiring): number {
  if (isDirect(i, j)) return 0;
  return switchOf[i] === switchOf[j] ? 1 : 2;
}

/**
 * Near pairs first; among these in the order of a tournament in which everybody meets everybody, so
 * that devices which are all near each other need no round more than they have peers (one more
 * where they are odd in number).
 */
function pairsByDistance(wiring: Wiring): readonly Pair[] {
  const devices = wiring.switchOf.map((_, device) => device);
  const players = devices.length % 2 === 0 ? devices.length : devices.length + 1;
  const dayOf = ([i, j]: Pair) =>
    j === players - 1 ? (2 * i) % (players - 1) : (i + j) % (players - 1);
  const pairs = devices.flatMap((i) => devices.slice(i + 1).map((j): Pair => [i, j]));
  const key = (pair: Pair) => [distance(pair, wiring), dayOf(pair), ...pair];
  return pairs
    .map((pair) => ({ pair, key: key(pair) }))
    .sort((a, b) => a.key.reduce((order, value, k) => order || value - (b.key[k] ?? 0), 0))
    .map(({ pair }) => pair);
}
