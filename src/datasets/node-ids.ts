/**
 * What a source calls its nodes, and their numbers: places in the source. Ids that are these
 * numbers themselves (0, 1, 2 and so on) take no memory.
 */
export class NodeIds {
  #size = 0;
  /** Null as long as each id is its number. */
  #numbers: Map<string, number> | null = null;

  get size(): number {
    return this.#size;
  }

  /** Numbers from 0 to before `size`. */
  static counted(size: number): NodeIds {
    const ids = new NodeIds();
    ids.#size = size;
    return ids;
  }

  /** The number of a new node; null where the id was there before. */
  add(id: string): number | null {
    if (this.#numbers === null && id !== String(this.#size)) {
      this.#numbers = new Map();
      for (let node = 0; node < this.#size; node += 1) this.#numbers.set(String(node), node);
    }
    const node = this.#size;
    if (this.#numbers !== null) {
      if (this.#numbers.has(id)) return null;
      this.#numbers.set(id, node);
    }
    this.#size += 1;
    return node;
  }

  /** Undefined where no node has the id. */
  numberOf(id: string | number): number | undefined {
    if (this.#numbers !== null) return this.#numbers.get(String(id));
    const node = typeof id === 'number' ? id : countedId(id);
    return Number.isInteger(node) && node >= 0 && node < this.#size ? node : undefined;
  }

  /** One a line, as UTF-8, in pieces; null where each id is its number. */
  lines(): Generator<Uint8Array> | null {
    return this.#numbers === null ? null : linesOf(this.#numbers.keys());
  }
}

/** As `String` writes it, so that 01 is no other word for 1. */
function countedId(id: string): number {
  return /^(0|[1-9]\d{0,9})$/.test(id) ? Number(id) : Number.NaN;
}

function* linesOf(ids: Iterable<string>): Generator<Uint8Array> {
  const idsPerPiece = 10_000;
  let piece: string[] = [];
  for (const id of ids) {
    piece.push(`${id}\n`);
    if (piece.length < idsPerPiece) continue;
    yield Buffer.from(piece.join(''), 'utf8');
    piece = [];
  }
  yield Buffer.from(piece.join(''), 'utf8');
}
