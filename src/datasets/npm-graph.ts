import type { Problem } from '../records/dataset-record.ts';
import { storedGraph } from './graph.ts';
import { classNamesOf, labelOf, type Split, splitOf } from './npm-names.ts';

/**
 * The two middle steps of the npm import, each a task of the pool: JSON files to pairs of names,
 * and all pairs to a graph. Pure. Names cross between threads as bytes, one a line: copying
 * millions of strings costs more than parsing them.
 */

export interface DependentFiles {
  /** For messages: the archive and the folder in it. */
  readonly path: string;
  /** The package that each file is about. */
  readonly keys: readonly string[];
  /** The files one after another: JSON arrays of the packages that depend on it. */
  readonly content: Uint8Array;
  /** [files] where each ends. */
  readonly ends: Uint32Array;
}

export interface NamedPairs {
  /** Distinct names, joined by newlines. */
  readonly names: Uint8Array;
  readonly numNames: number;
  /** [pairs] positions in names: who depends ... */
  readonly dependents: Uint32Array;
  /** ... on which package. */
  readonly dependencies: Uint32Array;
  readonly problems: readonly Problem[];
}

export interface NpmGraph {
  /** In byte order, joined by newlines; the position is the node id. */
  readonly names: Uint8Array;
  /** [nodes + 1] where each name starts; it ends before the newline ahead of the next. */
  readonly nameStarts: Uint32Array;
  readonly classNames: readonly string[];
  readonly indptr: BigInt64Array;
  readonly indices: Int32Array;
  readonly labels: Int32Array;
  readonly splits: Readonly<Record<Split, BigInt64Array>>;
}

/** Printable ASCII: what sorts alike as text and as bytes, and fits on a line. */
const namePattern = /^[\x20-\x7e]*$/;

/** Gives every distinct name a number, in order of first occurrence. */
class NameIndex {
  readonly names: string[] = [];
  readonly #ids = new Map<string, number>();

  idOf(name: string): number {
    const known = this.#ids.get(name);
    if (known !== undefined) return known;
    const id = this.names.length;
    this.#ids.set(name, id);
    this.names.push(name);
    return id;
  }
}

/** Names joined by newlines, as text. */
export function splitNames(names: Uint8Array, count: number): string[] {
  if (count === 0) return [];
  return Buffer.from(names.buffer, names.byteOffset, names.byteLength)
    .toString('latin1')
    .split('\n');
}

function joinNames(names: readonly string[]): Uint8Array {
  // Not Buffer.from: that may lie in a shared pool, which cannot be handed to another thread.
  return new TextEncoder().encode(names.join('\n'));
}

/** Pool task: the pairs that a batch of files lists. */
export function parseDependents(files: DependentFiles): NamedPairs {
  const index = new NameIndex();
  const dependents: number[] = [];
  const dependencies: number[] = [];
  const problems: Problem[] = [];
  const { content, keys, ends } = files;
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  for (const [file, key] of keys.entries()) {
    const text = bytes.toString('utf8', file === 0 ? 0 : ends[file - 1], ends[file]);
    const names = parseNames(text, key);
    if (typeof names === 'string') {
      problems.push({ path: `${files.path}/${key}.json`, description: names });
      continue;
    }
    for (const name of names) {
      dependents.push(index.idOf(name));
      dependencies.push(index.idOf(key));
    }
  }
  return {
    names: joinNames(index.names),
    numNames: index.names.length,
    dependents: Uint32Array.from(dependents),
    dependencies: Uint32Array.from(dependencies),
    problems,
  };
}

/** The names in a file, or what is wrong with it. */
function parseNames(text: string, key: string): readonly string[] | string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    return `is not JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
  const isName = (name: unknown): name is string => typeof name === 'string';
  if (!Array.isArray(parsed) || !parsed.every(isName)) {
    return 'is not a JSON array of package names';
  }
  const odd = [key, ...parsed].find((name) => !namePattern.test(name));
  if (odd !== undefined) {
    return `has the name ${JSON.stringify(odd)}, expected printable ASCII`;
  }
  return parsed;
}

/** Pool task: nodes, edges, classes, labels and splits. */
export function buildNpmGraph(parts: readonly NamedPairs[]): NpmGraph {
  const index = new NameIndex();
  const numPairs = parts.reduce((sum, part) => sum + part.dependents.length, 0);
  const sources = new Uint32Array(numPairs);
  const targets = new Uint32Array(numPairs);
  let at = 0;
  for (const part of parts) {
    const ids = Uint32Array.from(splitNames(part.names, part.numNames), (n) => index.idOf(n));
    sources.set(
      part.dependents.map((local) => ids[local] ?? 0),
      at,
    );
    targets.set(
      part.dependencies.map((local) => ids[local] ?? 0),
      at,
    );
    at += part.dependents.length;
  }
  const names = index.names.slice().sort();
  const ranks = new Uint32Array(names.length);
  for (const [rank, name] of names.entries()) ranks[index.idOf(name)] = rank;
  const toRanks = (ids: Uint32Array) => {
    for (let pair = 0; pair < ids.length; pair += 1) ids[pair] = ranks[ids[pair] ?? 0] ?? 0;
    return ids;
  };
  const { indptr, indices } = storedGraph({
    numNodes: names.length,
    sources: toRanks(sources),
    targets: toRanks(targets),
    weights: null,
    directed: false,
  });
  return { indptr, indices, ...labelNames(names) };
}

function labelNames(names: readonly string[]): Omit<NpmGraph, 'indptr' | 'indices'> {
  const classNames = classNamesOf(names);
  const classes = new Map(classNames.map((token, label) => [token, label]));
  const labels = Int32Array.from(names, (name) => labelOf(name, classes));
  const splits: Record<Split, bigint[]> = { train: [], val: [], test: [] };
  const nameStarts = new Uint32Array(names.length + 1);
  for (const [node, name] of names.entries()) {
    nameStarts[node + 1] = (nameStarts[node] ?? 0) + name.length + 1;
    if (labels[node] !== -1) splits[splitOf(name)].push(BigInt(node));
  }
  return {
    names: joinNames(names),
    nameStarts,
    classNames,
    labels,
    splits: {
      train: BigInt64Array.from(splits.train),
      val: BigInt64Array.from(splits.val),
      test: BigInt64Array.from(splits.test),
    },
  };
}
