/** Builds the stored form of a graph out of a list of edges. Pure. */

export interface EdgeList {
  readonly numNodes: number;
  /** [edges] node ids, each below numNodes; an edge is undirected. */
  readonly sources: Uint32Array;
  readonly targets: Uint32Array;
  /** [edges], or null where edges have no weights. */
  readonly weights: Float32Array | null;
}

export interface SymmetricGraph {
  /** int64 [numNodes + 1]. */
  readonly indptr: BigInt64Array;
  /** [entries] ascending within a row. */
  readonly indices: Int32Array;
  /** [entries], or null. */
  readonly weights: Float32Array | null;
  readonly selfLoops: number;
  /** Edges that were listed before, in either direction, with the same weight. */
  readonly duplicates: number;
  /** [pairs, 2] positions in the list of edges that were listed twice with unequal weights. */
  readonly conflicts: Uint32Array;
}

/**
 * Stores every edge in both directions, drops self-loops, keeps one of equal edges. Time and memory
 * are linear in nodes and edges: two counting sorts, by column and then by row.
 */
export function symmetricGraph(edges: EdgeList): SymmetricGraph {
  const { numNodes, sources, targets, weights } = edges;
  const numEdges = sources.length;
  let selfLoops = 0;
  const starts = new Float64Array(numNodes + 1);
  for (let edge = 0; edge < numEdges; edge += 1) {
    const source = sources[edge] ?? 0;
    const target = targets[edge] ?? 0;
    if (source === target) {
      selfLoops += 1;
      continue;
    }
    starts[source + 1] = (starts[source + 1] ?? 0) + 1;
    starts[target + 1] = (starts[target + 1] ?? 0) + 1;
  }
  for (let node = 0; node < numNodes; node += 1) {
    starts[node + 1] = (starts[node + 1] ?? 0) + (starts[node] ?? 0);
  }
  const byColumn = sortByColumn(edges, starts);
  const { columns, origin } = sortByRow(edges, starts, byColumn);
  return { ...compact(numNodes, starts, columns, origin, weights), selfLoops };
}

/**
 * Entry 2e is edge e in the row of its target, entry 2e + 1 the one in the row of its source. The
 * graph is symmetric, so rows and columns have the same sizes.
 */
function sortByColumn(edges: EdgeList, starts: Float64Array): Float64Array {
  const { sources, targets } = edges;
  const next = starts.slice();
  const order = new Float64Array(starts.at(-1) ?? 0);
  for (let edge = 0; edge < sources.length; edge += 1) {
    const source = sources[edge] ?? 0;
    const target = targets[edge] ?? 0;
    if (source === target) continue;
    const sourceAt = next[source] ?? 0;
    order[sourceAt] = 2 * edge;
    next[source] = sourceAt + 1;
    const targetAt = next[target] ?? 0;
    order[targetAt] = 2 * edge + 1;
    next[target] = targetAt + 1;
  }
  return order;
}

interface Rows {
  /** [entries] ascending within a row, equal ones beside each other. */
  readonly columns: Int32Array;
  /** [entries] the edge of each. */
  readonly origin: Uint32Array;
}

function sortByRow(edges: EdgeList, starts: Float64Array, byColumn: Float64Array): Rows {
  const { sources, targets } = edges;
  const next = starts.slice();
  const columns = new Int32Array(byColumn.length);
  const origin = new Uint32Array(byColumn.length);
  for (let at = 0; at < byColumn.length; at += 1) {
    const entry = byColumn[at] ?? 0;
    const edge = Math.floor(entry / 2);
    const isTargetRow = entry % 2 === 0;
    const row = (isTargetRow ? targets[edge] : sources[edge]) ?? 0;
    const place = next[row] ?? 0;
    columns[place] = (isTargetRow ? sources[edge] : targets[edge]) ?? 0;
    origin[place] = edge;
    next[row] = place + 1;
  }
  return { columns, origin };
}

function compact(
  numNodes: number,
  starts: Float64Array,
  columns: Int32Array,
  origin: Uint32Array,
  weights: Float32Array | null,
): Omit<SymmetricGraph, 'selfLoops'> {
  const indptr = new BigInt64Array(numNodes + 1);
  const keptWeights = weights === null ? null : new Float32Array(columns.length);
  const conflicts: number[] = [];
  let kept = 0;
  let repeated = 0;
  for (let row = 0; row < numNodes; row += 1) {
    const end = starts[row + 1] ?? 0;
    let previous = -1;
    let first = 0;
    for (let at = starts[row] ?? 0; at < end; at += 1) {
      const column = columns[at] ?? 0;
      const edge = origin[at] ?? 0;
      if (column === previous) {
        const equal = weights === null || weights[first] === weights[edge];
        if (equal) repeated += 1;
        // Each conflict shows in both rows; the one of the smaller node reports it.
        else if (row < column) conflicts.push(first, edge);
        continue;
      }
      previous = column;
      first = edge;
      columns[kept] = column;
      if (keptWeights !== null && weights !== null) keptWeights[kept] = weights[edge] ?? 0;
      kept += 1;
    }
    indptr[row + 1] = BigInt(kept);
  }
  return {
    indptr,
    indices: columns.slice(0, kept),
    weights: keptWeights?.slice(0, kept) ?? null,
    duplicates: repeated / 2,
    conflicts: Uint32Array.from(conflicts),
  };
}
