/** Builds the stored form of a graph out of a list of edges. Pure. */

export interface EdgeList {
  readonly numNodes: number;
  /** [edges] node ids, each below numNodes. */
  readonly sources: Uint32Array;
  readonly targets: Uint32Array;
  /** [edges], or null where edges have no weights. */
  readonly weights: Float32Array | null;
}

export interface StoredGraph {
  /** int64 [numNodes + 1]. */
  readonly indptr: BigInt64Array;
  /** [entries] ascending within a row. */
  readonly indices: Int32Array;
  /** [entries], or null. */
  readonly weights: Float32Array | null;
  readonly selfLoops: number;
  /** Edges that were listed before (in either direction unless directed), with equal weights. */
  readonly duplicates: number;
  /** [pairs, 2] positions in the list of edges that were listed twice with unequal weights. */
  readonly conflicts: Uint32Array;
}

/** A list of edges of which each is to be stored once, or in both directions. */
export interface EdgeTable extends EdgeList {
  /** An edge stands in the row of its target only. */
  readonly directed: boolean;
}

/** A list of edges by target, nothing left out: row v holds the sources of v's edges as listed. */
export interface InNeighbours {
  /** int64 [numNodes + 1]. */
  readonly indptr: BigInt64Array;
  /** Uint32Array where int32 cannot name every node. */
  readonly indices: Int32Array | Uint32Array;
  readonly weights: Float32Array | null;
}

/** Linear in nodes and edges: one counting sort. */
export function inNeighbours({ numNodes, sources, targets, weights }: EdgeList): InNeighbours {
  const next = new Float64Array(numNodes + 1);
  for (const target of targets) next[target + 1] = (next[target + 1] ?? 0) + 1;
  for (let node = 0; node < numNodes; node += 1) {
    next[node + 1] = (next[node + 1] ?? 0) + (next[node] ?? 0);
  }
  const indptr = BigInt64Array.from(next, BigInt);
  const isWide = numNodes > 2 ** 31;
  const indices = new (isWide ? Uint32Array : Int32Array)(targets.length);
  const ordered = weights === null ? null : new Float32Array(targets.length);
  for (let edge = 0; edge < targets.length; edge += 1) {
    const target = targets[edge] ?? 0;
    const place = next[target] ?? 0;
    indices[place] = sources[edge] ?? 0;
    if (ordered !== null && weights !== null) ordered[place] = weights[edge] ?? 0;
    next[target] = place + 1;
  }
  return { indptr, indices, weights: ordered };
}

/**
 * Stores every edge in the row of its target, and in that of its source unless directed; drops
 * self-loops, keeps one of equal edges. Time and memory are linear in nodes and edges: two counting
 * sorts, by column and then by row.
 */
export function storedGraph(edges: EdgeTable): StoredGraph {
  const { numNodes, sources, targets, directed } = edges;
  const numEdges = sources.length;
  let selfLoops = 0;
  const rowStarts = new Float64Array(numNodes + 1);
  // Of a symmetric graph rows and columns have the same sizes.
  const columnStarts = directed ? new Float64Array(numNodes + 1) : rowStarts;
  for (let edge = 0; edge < numEdges; edge += 1) {
    const source = sources[edge] ?? 0;
    const target = targets[edge] ?? 0;
    if (source === target) {
      selfLoops += 1;
      continue;
    }
    columnStarts[source + 1] = (columnStarts[source + 1] ?? 0) + 1;
    rowStarts[target + 1] = (rowStarts[target + 1] ?? 0) + 1;
  }
  for (const starts of new Set([rowStarts, columnStarts])) {
    for (let node = 0; node < numNodes; node += 1) {
      starts[node + 1] = (starts[node + 1] ?? 0) + (starts[node] ?? 0);
    }
  }
  const byColumn = sortByColumn(edges, columnStarts);
  const rows = sortByRow(edges, rowStarts, byColumn);
  const { repeated, ...graph } = compact(edges, rowStarts, rows);
  return { ...graph, duplicates: directed ? repeated : repeated / 2, selfLoops };
}

/** Entry 2e is edge e in the row of its target, entry 2e + 1 the one in the row of its source. */
function sortByColumn(edges: EdgeTable, starts: Float64Array): Float64Array {
  const { sources, targets, directed } = edges;
  const next = starts.slice();
  const order = new Float64Array(starts.at(-1) ?? 0);
  for (let edge = 0; edge < sources.length; edge += 1) {
    const source = sources[edge] ?? 0;
    const target = targets[edge] ?? 0;
    if (source === target) continue;
    const sourceAt = next[source] ?? 0;
    order[sourceAt] = 2 * edge;
    next[source] = sourceAt + 1;
    if (directed) continue;
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

/** Of a symmetric graph each conflict shows in two rows; that of the smaller node reports it. */
function compact(
  { numNodes, weights, directed }: EdgeTable,
  starts: Float64Array,
  { columns, origin }: Rows,
): Omit<StoredGraph, 'selfLoops' | 'duplicates'> & { readonly repeated: number } {
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
        else if (directed || row < column) conflicts.push(first, edge);
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
    repeated,
    conflicts: Uint32Array.from(conflicts),
  };
}
