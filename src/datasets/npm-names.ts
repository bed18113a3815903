/**
 * What the npm dependency graph makes of a package name: its hash, its tokens, its class, its
 * features and its split. Pure; docs/datasets.md has the recipe. Names are ASCII.
 */

export const npmFeatureColumns = 128;
export const npmClassCount = 44;
/** First tokens that name no family of packages. */
const stopTokens: ReadonlySet<string> = new Set([
  'is',
  'js',
  'json',
  'node',
  'npm',
  'simple',
  'test',
]);

export type Split = 'train' | 'val' | 'test';

/** FNV-1a (32 bits) of ASCII text, spread by MurmurHash3's finalizer. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x85ebca6b);
  hash ^= hash >>> 13;
  hash = Math.imul(hash, 0xc2b2ae35);
  hash ^= hash >>> 16;
  return hash >>> 0;
}

/** Lower-case parts between runs of `-` and `_`; empty ones are dropped. */
export function tokensOf(name: string): string[] {
  return name
    .toLowerCase()
    .split(/[-_]+/)
    .filter((token) => token !== '');
}

/**
 * The most frequent first tokens of names with at least two, most frequent first, ties by token. A
 * class is the position in this list.
 */
export function classNamesOf(names: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const name of names) {
    const [first, second] = tokensOf(name);
    if (first === undefined || second === undefined || stopTokens.has(first)) continue;
    counts.set(first, (counts.get(first) ?? 0) + 1);
  }
  return [...counts]
    .sort(([a, countA], [b, countB]) => countB - countA || (a < b ? -1 : 1))
    .slice(0, npmClassCount)
    .map(([token]) => token);
}

/** The class of a name, -1 for none. */
export function labelOf(name: string, classes: ReadonlyMap<string, number>): number {
  const [first, second] = tokensOf(name);
  if (first === undefined || second === undefined) return -1;
  return classes.get(first) ?? -1;
}

/** Which part of the labelled nodes a name belongs to: 60, 20 and 20 of 100. */
export function splitOf(name: string): Split {
  const part = hashText(`split:${name}`) % 100;
  if (part < 60) return 'train';
  return part < 80 ? 'val' : 'test';
}

/**
 * Features of `names`, float32 [names, npmFeatureColumns]: signed counts of hashed 3-grams of the
 * name without its class tokens, scaled to length 1 in float64; a zero row stays zero.
 */
export function featuresOf(names: readonly string[], classNames: readonly string[]): Float32Array {
  const classes = new Set(classNames);
  const features = new Float32Array(names.length * npmFeatureColumns);
  const sums = new Float64Array(npmFeatureColumns);
  for (const [row, name] of names.entries()) {
    const rest = tokensOf(name).filter((token) => !classes.has(token));
    if (rest.length === 0) continue;
    const text = `^${rest.join('-')}$`;
    sums.fill(0);
    for (let at = 0; at + 3 <= text.length; at += 1) {
      const hash = hashText(text.slice(at, at + 3));
      const column = hash & (npmFeatureColumns - 1);
      sums[column] = (sums[column] ?? 0) + (hash >>> 31 === 1 ? -1 : 1);
    }
    let squares = 0;
    for (const sum of sums) squares += sum * sum;
    if (squares === 0) continue;
    const norm = Math.sqrt(squares);
    for (let column = 0; column < npmFeatureColumns; column += 1) {
      features[row * npmFeatureColumns + column] = (sums[column] ?? 0) / norm;
    }
  }
  return features;
}
