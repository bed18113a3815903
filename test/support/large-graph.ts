import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { int64, npy } from '../unit/datasets/workbench.ts';

/**
 * A graph as large as a test wants, for work that must not be over at once: node v has so many
 * in-neighbours, far from each other. Features tell the class, so that little training will do.
 */
export interface LargeGraph {
  readonly numNodes: number;
  readonly degree: number;
  readonly features: number;
}

export function writeLargeGraph(folder: string, { numNodes, degree, features }: LargeGraph): void {
  mkdirSync(folder, { recursive: true });
  const indices = new Int32Array(numNodes * degree);
  const row: number[] = [];
  for (let node = 0; node < numNodes; node += 1) {
    for (let i = 0; i < degree; i += 1) row[i] = (node * 7919 + (i + 1) * 104_729) % numNodes;
    row.sort((a, b) => a - b);
    indices.set(row, node * degree);
  }
  const values = new Float32Array(numNodes * features);
  for (let node = 0; node < numNodes; node += 1) {
    for (let column = 0; column < features; column += 1) {
      const noise = Math.sin(12.9898 * (node + 1) + 78.233 * (column + 1)) * 43_758.5453;
      const sign = (node + column) % 3 === 0 ? 1 : -1;
      values[node * features + column] = sign * 0.5 + (noise - Math.floor(noise));
    }
  }
  const indptr = BigInt64Array.from({ length: numNodes + 1 }, (_, node) => BigInt(node * degree));
  const split = (first: number) => int64(...Array.from({ length: 100 }, (_, i) => first + 3 * i));
  const files = {
    'indptr.npy': npy('int64', [indptr.length], indptr),
    'indices.npy': npy('int32', [indices.length], indices),
    'features.npy': npy('float32', [numNodes, features], values),
    'labels.npy': npy(
      'int32',
      [numNodes],
      Int32Array.from({ length: numNodes }, (_, node) => node % 3),
    ),
    'train.npy': split(0),
    'val.npy': split(1000),
    'test.npy': split(2000),
  };
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes);
}
