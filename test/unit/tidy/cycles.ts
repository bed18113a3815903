/**
 * The groups of nodes of a graph that reach each other (Tarjan 1972), each written as one line. A
 * graph without cycles has none.
 */
export function cyclesOf(edges: ReadonlyMap<string, ReadonlySet<string>>): readonly string[] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const found: string[] = [];

  const visit = (node: string): number => {
    const at = order.size;
    order.set(node, at);
    lowest.set(node, at);
    open.push(node);
    for (const next of edges.get(node) ?? []) {
      const reached = order.has(next) ? (lowest.get(next) ?? Infinity) : visit(next);
      if (open.includes(next)) lowest.set(node, Math.min(lowest.get(node) ?? at, reached));
    }
    if (lowest.get(node) === at) {
      const group = open.splice(open.indexOf(node));
      if (group.length > 1) found.push(group.sort().join(' <-> '));
    }
    return lowest.get(node) ?? at;
  };
  for (const node of edges.keys()) if (!order.has(node)) visit(node);
  return found.sort();
}
