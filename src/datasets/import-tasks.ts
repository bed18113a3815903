import {
  type EdgeList,
  type EdgeTable,
  type InNeighbours,
  inNeighbours,
  type StoredGraph,
  storedGraph,
} from './graph.ts';
import {
  buildNpmGraph,
  type DependentFiles,
  type NamedPairs,
  type NpmGraph,
  parseDependents,
  splitNames,
} from './npm-graph.ts';
import { featuresOf } from './npm-names.ts';

/** The names of some nodes, for which features are wanted. */
export interface NameRows {
  /** Joined by newlines. */
  readonly names: Uint8Array;
  readonly numNames: number;
  readonly classNames: readonly string[];
}

/** The parts of an import that are too long for the daemon's own thread. All is plain data. */
export interface ImportTasks {
  parseDependents(files: DependentFiles): Promise<NamedPairs>;
  buildNpmGraph(parts: readonly NamedPairs[]): Promise<NpmGraph>;
  /** float32 [names, npmFeatureColumns]. */
  npmFeatures(rows: NameRows): Promise<Float32Array>;
  storedGraph(edges: EdgeTable): Promise<StoredGraph>;
  inNeighbours(edges: EdgeList): Promise<InNeighbours>;
}

/** The tasks on the caller's thread. */
export const importTasks: ImportTasks = {
  parseDependents: async (files) => parseDependents(files),
  buildNpmGraph: async (parts) => buildNpmGraph(parts),
  npmFeatures: async (rows) => featuresOf(splitNames(rows.names, rows.numNames), rows.classNames),
  storedGraph: async (edges) => storedGraph(edges),
  inNeighbours: async (edges) => inNeighbours(edges),
};

/** The memory behind all arrays within `value`: what can be moved between threads. */
export function buffersOf(value: unknown): ArrayBuffer[] {
  if (ArrayBuffer.isView(value)) {
    return value.buffer instanceof ArrayBuffer ? [value.buffer] : [];
  }
  if (typeof value !== 'object' || value === null) return [];
  return [...new Set(Object.values(value).flatMap(buffersOf))];
}
