/**
 * Sees while a graph passes by whether its rows look like out-neighbours. A row lists the nodes
 * whose features flow to it. In a transposed graph the nodes that are to be classified, which
 * usually have such neighbours, tend to have none and to be listed in the rows of others instead.
 */
export class OrientationCheck {
  /** Bits of a node. */
  #facts = new Uint8Array(0);
  #nodes = 0;
  #lastWords: readonly [number, number] | null = null;
  #sampled = 0;
  #withoutIn = 0;
  #withoutOut = 0;
  #unnamed: ((nodes: readonly number[]) => number) | null = null;
  readonly #splits: BigInt64Array[] = [];

  /** Blocks of indptr; before any of indices, unless it is known how many nodes to expect. */
  seeIndptr(block: BigInt64Array): void {
    const words = new Int32Array(block.buffer, block.byteOffset, 2 * block.length);
    this.#reserve(this.#nodes + block.length);
    for (let at = 0; at < block.length; at += 1) {
      const low = words[2 * at] ?? 0;
      const high = words[2 * at + 1] ?? 0;
      if (this.#lastWords !== null) {
        const [lastLow, lastHigh] = this.#lastWords;
        if (low !== lastLow || high !== lastHigh) this.#mark(this.#nodes, hasIn);
        this.#nodes += 1;
      }
      this.#lastWords = [low, high];
    }
  }

  seeIndices(block: Int32Array | Uint32Array): void {
    for (const node of block) {
      if (node >= 0 && node < this.#facts.length) this.#mark(node, hasOut);
    }
  }

  /** Room for so many nodes at once. */
  expect(nodes: number): void {
    if (this.#facts.length === 0) this.#facts = new Uint8Array(nodes);
  }

  /** Instead of seeIndices: `unnamed` counts which of some nodes are nobody's neighbour. */
  seeNamed(unnamed: (nodes: readonly number[]) => number): void {
    this.#unnamed = unnamed;
  }

  /** Node ids of a split, at any time. Kept until the end. */
  seeSplit(ids: BigInt64Array): void {
    this.#splits.push(ids);
  }

  /** A sentence, or null where nothing looks wrong. */
  warning(): string | null {
    for (const ids of this.#splits) {
      for (const id of ids) {
        const facts = this.#facts[Number(id)] ?? 0;
        this.#sampled += 1;
        if ((facts & hasIn) === 0) this.#withoutIn += 1;
        if ((facts & hasOut) === 0 && this.#unnamed === null) this.#withoutOut += 1;
      }
      if (this.#unnamed !== null) this.#withoutOut += this.#unnamed(Array.from(ids, asNode));
    }
    if (this.#sampled === 0) return null;
    const withoutIn = this.#withoutIn / this.#sampled;
    const withoutOut = this.#withoutOut / this.#sampled;
    if (withoutIn < suspiciousShare || withoutOut * suspiciousRatio > withoutIn) return null;
    const percent = (share: number) => `${(100 * share).toFixed(0)} %`;
    return (
      `the graph looks transposed: ${percent(withoutIn)} of the nodes in the splits have no ` +
      `neighbour to learn from, ${percent(withoutOut)} are nobody's neighbour; row v lists the ` +
      'nodes whose features flow to v (docs/datasets.md shows how to turn it round)'
    );
  }

  #reserve(nodes: number): void {
    if (nodes <= this.#facts.length) return;
    const grown = new Uint8Array(2 * nodes);
    grown.set(this.#facts);
    this.#facts = grown;
  }

  #mark(node: number, fact: number): void {
    this.#facts[node] = (this.#facts[node] ?? 0) | fact;
  }
}

/** Ids that are none stand for the last one, which no node has. */
function asNode(id: bigint): number {
  return id >= 0n && id < 0xffffffffn ? Number(id) : 0xffffffff;
}

const hasIn = 1;
const hasOut = 2;
/** Share of the nodes in the splits without in-neighbours from which a graph looks transposed. */
const suspiciousShare = 0.5;
/** Times as many without in-neighbours as without out-neighbours: no accident of sparse graphs. */
const suspiciousRatio = 4;
