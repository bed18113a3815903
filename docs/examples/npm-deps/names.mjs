/**
 * What a package name becomes: its class, its features, its split. Names are ASCII; the recipe is in
 * docs/datasets.md.
 */

export const featureColumns = 128;
const classCount = 44;
/** First tokens that name no family of packages. */
const stopTokens = new Set(['is', 'js', 'json', 'node', 'npm', 'simple', 'test']);

/** FNV-1a (32 bits) of ASCII text, spread by MurmurHash3's finalizer. */
function hashText(text) {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Lower-case parts between runs of `-` and `_`; empty ones are dropped. */
function tokensOf(name) {
  return name
    .toLowerCase()
    .split(/[-_]+/)
    .filter((token) => token !== '');
}

/** The most frequent first tokens of names with at least two, ties by token; a class each. */
export function classNamesOf(names) {
  const counts = new Map();
  for (const name of names) {
    const [first, second] = tokensOf(name);
    if (second === undefined || stopTokens.has(first)) continue;
    counts.set(first, (counts.get(first) ?? 0) + 1);
  }
  return [...counts]
    .sort(([a, countA], [b, countB]) => countB - countA || (a < b ? -1 : 1))
    .slice(0, classCount)
    .map(([token]) => token);
}

/** int32 [names]: the class of each, -1 for none. */
export function labelsOf(names, classNames) {
  const classes = new Map(classNames.map((token, label) => [token, label]));
  return Int32Array.from(names, (name) => {
    const [first, second] = tokensOf(name);
    return second === undefined ? -1 : (classes.get(first) ?? -1);
  });
}

/** Which part of the labelled nodes a name belongs to: 60, 20 and 20 of 100. */
export function splitOf(name) {
  const part = hashText(`split:${name}`) % 100;
  if (part < 60) return 'train';
  return part < 80 ? 'val' : 'test';
}

/**
 * float32 [names, featureColumns]: signed counts of hashed 3-grams of the name without its class
 * tokens, scaled to length 1 in float64; a zero row stays zero.
 */
export function featuresOf(names, classNames) {
  const classes = new Set(classNames);
  const features = new Float32Array(names.length * featureColumns);
  const sums = new Float64Array(featureColumns);
  for (const [row, name] of names.entries()) {
    const rest = tokensOf(name).filter((token) => !classes.has(token));
    if (rest.length === 0) continue;
    const text = `^${rest.join('-')}$`;
    sums.fill(0);
    for (let at = 0; at + 3 <= text.length; at += 1) {
      const hash = hashText(text.slice(at, at + 3));
      sums[hash & (featureColumns - 1)] += hash >>> 31 === 1 ? -1 : 1;
    }
    const norm = Math.sqrt(sums.reduce((squares, sum) => squares + sum * sum, 0));
    if (norm === 0) continue;
    features.set(
      sums.map((sum) => sum / norm),
      row * featureColumns,
    );
  }
  return features;
}
