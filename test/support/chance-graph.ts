import { folderOf, npy } from '../unit/datasets/workbench.ts';
import { randomOf } from './random.ts';

/** Edges by chance, each in both directions, and features by chance: nothing follows from them. */
export function chanceGraph(numNodes: number, numPairs: number, columns: number): string {
  const random = randomOf(11);
  const seen = new Set<number>();
  while (seen.size < numPairs) {
    const [one, other] = [random.integer(0, numNodes - 1), random.integer(0, numNodes - 1)];
    if (one < other) seen.add(one * numNodes + other);
  }
  const pairs = [...seen].map((key) => [Math.floor(key / numNodes), key % numNodes] as const);
  const both = pairs.flatMap(([one, other]) => [[one, other] as const, [other, one] as const]);
  const sources = both.map(([source]) => source);
  const targets = both.map(([, target]) => target);
  const ends = BigInt64Array.from([...sources, ...targets], BigInt);
  const values = Float32Array.from({ length: numNodes * columns }, () => random.unit() - 0.5);
  return folderOf({
    'edge_index.npy': npy('int64', [2, sources.length], ends),
    'features.npy': npy('float32', [numNodes, columns], values),
  });
}
