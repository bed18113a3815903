import { badFile } from './problems.ts';

/** Reads ustar archives (POSIX.1-1988, as `npm pack` and `tar` write them) as a stream. */

const blockBytes = 512;

export interface TarEntry {
  /** As in the header: bytes 0-99 up to the first NUL, after the prefix field where it is set. */
  readonly name: string;
  readonly kind: 'file' | 'folder' | 'other';
  /** Of the content. */
  readonly bytes: number;
  /** The content at once; only before the next entry is asked for, and only once. */
  read(): Promise<Uint8Array>;
  /** The content in chunks, under the same rules. */
  stream(): AsyncGenerator<Uint8Array>;
}

/** The entries of an archive, in its order. Throws ImportFailure (with `path`) for damage. */
export async function* readTar(
  chunks: AsyncIterable<Uint8Array>,
  path: string,
): AsyncGenerator<TarEntry> {
  const reader = new ByteReader(chunks, path);
  try {
    for (;;) {
      const header = reader.buffered(blockBytes) ?? (await reader.read(blockBytes));
      if (header === null) throw badFile(path, 'is truncated: its tar archive has no end mark');
      if (header.every((byte) => byte === 0)) return;
      const entry = parseHeader(header, path);
      const contentEnd = reader.position + entry.bytes;
      yield {
        ...entry,
        read: async () => reader.buffered(entry.bytes) ?? (await reader.must(entry.bytes)),
        stream: () => streamTo(reader, contentEnd),
      };
      const padding = (blockBytes - (entry.bytes % blockBytes)) % blockBytes;
      await reader.skipTo(contentEnd + padding);
    }
  } finally {
    await reader.close();
  }
}

async function* streamTo(reader: ByteReader, end: number): AsyncGenerator<Uint8Array> {
  while (reader.position < end) yield await reader.some(end - reader.position);
}

function parseHeader(header: Uint8Array, path: string): Pick<TarEntry, 'name' | 'kind' | 'bytes'> {
  const bytes = Buffer.from(header.buffer, header.byteOffset, header.byteLength);
  const text = (at: number, length: number): string => {
    const end = bytes.indexOf(0, at);
    const stop = end < 0 || end > at + length ? at + length : end;
    return bytes.toString('latin1', at, stop);
  };
  const checksum = Number.parseInt(text(148, 8).trim(), 8);
  // The checksum is made with its own field read as spaces.
  let sum = 8 * 0x20;
  for (let at = 0; at < blockBytes; at += 1) if (at < 148 || at >= 156) sum += bytes[at] ?? 0;
  const size = Number.parseInt(text(124, 12).trim(), 8);
  if (checksum !== sum || !Number.isSafeInteger(size) || size < 0) {
    throw badFile(path, 'is damaged: a header of its tar archive has a wrong checksum or size');
  }
  const prefix = text(345, 155);
  const type = text(156, 1);
  return {
    name: prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`,
    kind: type === '' || type === '0' ? 'file' : type === '5' ? 'folder' : 'other',
    bytes: size,
  };
}

/** Cuts a stream of chunks into pieces of asked-for lengths. */
class ByteReader {
  /** Bytes handed out or skipped. */
  position = 0;
  readonly #iterator: AsyncIterator<Uint8Array>;
  readonly #path: string;
  #chunk: Uint8Array = new Uint8Array(0);
  #at = 0;

  constructor(chunks: AsyncIterable<Uint8Array>, path: string) {
    this.#iterator = chunks[Symbol.asyncIterator]();
    this.#path = path;
  }

  /** The next bytes when they are here already. */
  buffered(length: number): Uint8Array | null {
    if (this.#chunk.length - this.#at < length) return null;
    const piece = this.#chunk.subarray(this.#at, this.#at + length);
    this.#at += length;
    this.position += length;
    return piece;
  }

  /** The next bytes; null at the end of the stream. */
  async read(length: number): Promise<Uint8Array | null> {
    if (this.#at === this.#chunk.length && !(await this.#pull())) return null;
    return await this.must(length);
  }

  async must(length: number): Promise<Uint8Array> {
    const piece = new Uint8Array(length);
    for (let filled = 0; filled < length; ) {
      const part = await this.some(length - filled);
      piece.set(part, filled);
      filled += part.length;
    }
    return piece;
  }

  /** At least one of the next bytes, at most `most`. */
  async some(most: number): Promise<Uint8Array> {
    while (this.#at === this.#chunk.length) {
      if (!(await this.#pull())) throw badFile(this.#path, 'is truncated: its tar archive is cut');
    }
    const length = Math.min(most, this.#chunk.length - this.#at);
    return this.buffered(length) ?? new Uint8Array(0);
  }

  async skipTo(position: number): Promise<void> {
    while (this.position < position) await this.some(position - this.position);
  }

  async close(): Promise<void> {
    await this.#iterator.return?.();
  }

  async #pull(): Promise<boolean> {
    const next = await this.#iterator.next();
    if (next.done === true) return false;
    this.#chunk = next.value;
    this.#at = 0;
    return true;
  }
}
