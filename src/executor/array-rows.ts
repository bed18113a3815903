import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';

/** Rows from `first` on. */
export interface RowRange {
  readonly first: number;
  readonly count: number;
}

interface OpenArray {
  readonly fd: number;
  readonly dataAt: number;
  /** Numbers of a row. */
  readonly columns: number;
}

/** The .npy files that Trainers wrote into a folder, by ranges of rows. */
export class ArrayRows {
  readonly #folder: string;
  readonly #open = new Map<string, OpenArray>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Numbers of a row of NAME.npy. */
  columns(name: string): number {
    return this.#of(name).columns;
  }

  /** Of nodes.npy; without that file the rows are those of all nodes. */
  nodes(range: RowRange): BigInt64Array {
    return existsSync(join(this.#folder, 'nodes.npy'))
      ? this.integers('nodes', range)
      : BigInt64Array.from({ length: range.count }, (_, row) => BigInt(range.first + row));
  }

  integers(name: string, range: RowRange): BigInt64Array {
    return new BigInt64Array(this.#bytes(name, range, BigInt64Array.BYTES_PER_ELEMENT));
  }

  floats(name: string, range: RowRange): Float32Array {
    return new Float32Array(this.#bytes(name, range, Float32Array.BYTES_PER_ELEMENT));
  }

  /** Of an array of bytes that are 0 or 1. */
  bits(name: string, range: RowRange): Uint8Array {
    return new Uint8Array(this.#bytes(name, range, Uint8Array.BYTES_PER_ELEMENT));
  }

  close(): void {
    for (const { fd } of this.#open.values()) closeSync(fd);
    this.#open.clear();
  }

  #of(name: string): OpenArray {
    const known = this.#open.get(name);
    if (known !== undefined) return known;
    const fd = openSync(join(this.#folder, `${name}.npy`), 'r');
    const head = Buffer.alloc(10);
    readSync(fd, head, 0, head.length, 0);
    const header = Buffer.alloc(head.readUInt16LE(8));
    readSync(fd, header, 0, header.length, head.length);
    const [, columns = '1'] = /\(\d+, (\d+)\)/.exec(header.toString('latin1')) ?? [];
    const found = { fd, dataAt: head.length + header.length, columns: Number(columns) };
    this.#open.set(name, found);
    return found;
  }

  #bytes(name: string, { first, count }: RowRange, itemBytes: number): ArrayBuffer {
    const { fd, dataAt, columns } = this.#of(name);
    const rowBytes = columns * itemBytes;
    const bytes = new Uint8Array(count * rowBytes);
    for (let done = 0; done < bytes.length; ) {
      const got = readSync(fd, bytes, done, bytes.length - done, dataAt + first * rowBytes + done);
      if (got === 0) throw new Error(`${name}.npy ends before row ${first + count}`);
      done += got;
    }
    return bytes.buffer;
  }
}
