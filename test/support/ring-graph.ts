import { int32, int64, npy } from '../unit/datasets/workbench.ts';

/**
 * A ring of 200 nodes in two classes, even and odd ids. Every node is linked to the four next to
 * it; links within a class weigh 8, links across weigh 1. Features are noise around the class, too
 * weak to tell it from one node alone.
 */

const numNodes = 200;
const offsets = [-2, -1, 1, 2];
const numEdges = numNodes * offsets.length;

function neighboursOf(node: number): number[] {
  return offsets.map((offset) => (node + offset + numNodes) % numNodes).sort((a, b) => a - b);
}

const nodes = [...Array(numNodes).keys()];
const indices = nodes.flatMap(neighboursOf);
const weights = indices.map((source, e) => {
  const target = Math.floor(e / offsets.length);
  return source % 2 === target % 2 ? 8 : 1;
});

/** In [-1, 1], the same in every run. */
function noise(node: number, column: number): number {
  const value = Math.sin(12.9898 * (node + 1) + 78.233 * (column + 1)) * 43758.5453;
  return 2 * (value - Math.floor(value)) - 1;
}

const features = nodes.flatMap((node) => {
  const sign = node % 2 === 0 ? 1 : -1;
  return [0, 1, 2, 3].map((column) => sign * (column % 2 === 0 ? 0.5 : -0.5) + noise(node, column));
});
const every = (remainder: number) => nodes.filter((node) => (node >> 1) % 4 === remainder);

export const ringGraph = {
  numEdges,
  files: {
    'indptr.npy': int64(...Array.from({ length: numNodes + 1 }, (_, v) => v * offsets.length)),
    'indices.npy': int32(...indices),
    'edge_weights.npy': npy('float32', [numEdges], Float32Array.from(weights)),
    'features.npy': npy('float32', [numNodes, 4], Float32Array.from(features)),
    'labels.npy': int32(...nodes.map((node) => node % 2)),
    'train.npy': int64(...[...every(0), ...every(1)].sort((a, b) => a - b)),
    'val.npy': int64(...every(2)),
    'test.npy': int64(...every(3)),
  },
} as const;
