import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { basename } from 'node:path';
import { fileProblem } from '../base/file-problem.ts';
import { fileChunks, openSource } from './byte-streams.ts';
import { badFile, formatCount, ImportFailure } from './problems.ts';

/**
 * NumPy's .npy files: little-endian, C order, of the element types that graphs come in.
 * Everything here is a stream of blocks of at most `blockBytes`, so that no array has to fit into
 * memory.
 */

/** The integers that number and label nodes, or count things. */
export const npyIntegers = [
  ...(['int8', 'int16', 'int32', 'int64'] as const),
  ...(['uint8', 'uint16', 'uint32', 'uint64'] as const),
] as const;
export type NpyInteger = (typeof npyIntegers)[number];
export type NpyType = 'bool' | NpyInteger | 'float16' | 'float32' | 'float64';

/**
 * What the elements of a block are in memory; float16 as its bits, bool as 0 and 1, uint64 as int64
 * (where the upper half is negative, and refused like any negative number).
 */
export type NpyValues =
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | Float32Array
  | Float64Array;

export interface NpyHeader {
  readonly type: NpyType;
  /** Rows first; a vector has one entry. */
  readonly shape: readonly number[];
  /** True: the file is in Fortran order, and this is its transpose, as which it is read. */
  readonly isTurned?: boolean;
}

/** Orders of elements that are read: C alone, or that of Fortran, too, which turns an array. */
export type NpyOrders = 'C' | 'ANY';

/** An array that is being read: its header, and its elements in blocks. */
export interface NpySource {
  /** For messages: the file, and the member where it is an archive. */
  readonly path: string;
  readonly header: NpyHeader;
  /** Where its elements lie in a file of their own; null within an archive. */
  readonly place: { readonly file: string; readonly dataAt: number } | null;
  /** A block is valid until the next one is asked for. Throws ImportFailure when cut off. */
  blocks(): AsyncGenerator<NpyValues>;
  /** Releases the file; without effect once blocks() has ended. */
  close(): Promise<void>;
}

export const elementBytes: Readonly<Record<NpyType, number>> = {
  bool: 1,
  int8: 1,
  int16: 2,
  int32: 4,
  int64: 8,
  uint8: 1,
  uint16: 2,
  uint32: 4,
  uint64: 8,
  float16: 2,
  float32: 4,
  float64: 8,
};

const typeOfDescr: ReadonlyMap<string, NpyType> = new Map([
  ['|b1', 'bool'],
  ['|i1', 'int8'],
  ['<i2', 'int16'],
  ['<i4', 'int32'],
  ['<i8', 'int64'],
  ['|u1', 'uint8'],
  ['<u2', 'uint16'],
  ['<u4', 'uint32'],
  ['<u8', 'uint64'],
  ['<f2', 'float16'],
  ['<f4', 'float32'],
  ['<f8', 'float64'],
]);

const magic = Buffer.from('\x93NUMPY', 'latin1');
/** A multiple of every element size. */
const blockBytes = 1 << 20;
const alignment = 64;
/** NumPy leaves room for the first axis to grow to this many digits. */
const growthDigits = 21;
/** Far above any header of a plain array. */
const headerBytesMax = 65_536;

/** The bytes of a version 1.0 header, equal to those that NumPy writes. */
export function formatNpyHeader(header: NpyHeader): Buffer {
  const descr = [...typeOfDescr].find(([, type]) => type === header.type)?.[0] ?? '';
  const [rows = 0, ...rest] = header.shape;
  const shape = rest.length === 0 ? `(${rows},)` : `(${[rows, ...rest].join(', ')})`;
  const room = ' '.repeat(growthDigits - String(rows).length);
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': ${shape}, }${room}`;
  const lengthBytes = 2;
  const before = magic.length + 2 + lengthBytes;
  const padding = alignment - ((before + text.length + 1) % alignment);
  const body = `${text}${' '.repeat(padding)}\n`;
  const bytes = Buffer.alloc(before + body.length);
  magic.copy(bytes);
  bytes.writeUInt8(1, magic.length);
  bytes.writeUInt16LE(body.length, magic.length + 2);
  bytes.write(body, before, 'latin1');
  return bytes;
}

/** Parses the dictionary text of a header. Throws ImportFailure naming `path`. */
function parseNpyHeader(text: string, path: string, orders: NpyOrders): NpyHeader {
  const descr = /'descr':\s*'([^']*)'/.exec(text)?.[1];
  const order = /'fortran_order':\s*(True|False)/.exec(text)?.[1];
  const shape = /'shape':\s*\(([^)]*)\)/.exec(text)?.[1];
  if (order === undefined || shape === undefined) {
    throw badFile(path, 'is damaged: its .npy header does not name order and shape');
  }
  const type = typeOfDescr.get(descr ?? '');
  if (type === undefined) {
    throw badFile(path, otherDtype(descr));
  }
  const lengths = shape.split(',').filter((part) => part.trim() !== '');
  const axes = lengths.map(Number);
  if (axes.some((axis) => !Number.isSafeInteger(axis) || axis < 0)) {
    throw badFile(path, `is damaged: its .npy header has the shape (${shape})`);
  }
  if (order === 'True' && axes.length === 2 && orders === 'ANY') {
    return { type, shape: axes.reverse(), isTurned: true };
  }
  if (order === 'True' && axes.length > 1) {
    const remedy = 'expected C order (numpy.ascontiguousarray)';
    throw badFile(path, `is stored in Fortran order, shape (${axes.join(', ')}), ${remedy}`);
  }
  return { type, shape: axes };
}

/** What an array holds that is no number, and what makes numbers of it. */
function otherDtype(descr: string | undefined): string {
  const expected = `expected one of ${[...typeOfDescr.values()].join(', ')}`;
  const has = `has dtype ${descr ?? 'of records'}`;
  if (descr === undefined) return `${has}: save a field of the records each, ${expected}`;
  if (/^\|O/.test(descr)) return `${has}: Python objects (array.astype("float32")), ${expected}`;
  if (/^[<>|=][US]\d+/.test(descr)) {
    return `${has}: texts (numpy.unique(texts, return_inverse=True)), ${expected}`;
  }
  if (descr.startsWith('>'))
    return `${has}: big-endian (array.astype(array.dtype.newbyteorder("="))), ${expected}`;
  if (/^[<>|=]c/.test(descr)) return `${has}: complex numbers (real and imaginary), ${expected}`;
  return `${has}, ${expected}`;
}

/** Elements of an array of this shape. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, axis) => product * axis, 1);
}

/** Opens a .npy file and reads its header. Throws ImportFailure for anything but a whole array. */
export async function openNpyFile(
  path: string,
  signal: AbortSignal,
  orders: NpyOrders = 'C',
): Promise<NpySource> {
  const file = await openSource(path);
  const { size } = await file.stat().finally(() => file.close());
  const source = await openNpyStream(basename(path), size, fileChunks(path), signal, orders);
  const { type, shape } = source.header;
  const dataAt = size - elementCount(shape) * elementBytes[type];
  // What native code maps must start at a multiple of its elements' size.
  return { ...source, place: dataAt % elementBytes[type] === 0 ? { file: path, dataAt } : null };
}

/**
 * Reads the header of an array of `totalBytes` bytes (header and elements) from `chunks`, which
 * are released by close().
 */
export async function openNpyStream(
  path: string,
  totalBytes: number,
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  orders: NpyOrders = 'C',
): Promise<NpySource> {
  const iterator = chunks[Symbol.asyncIterator]();
  const close = async (): Promise<void> => {
    await iterator.return?.();
  };
  const pull = async (): Promise<Uint8Array | null> => {
    signal.throwIfAborted();
    try {
      const next = await iterator.next();
      return next.done === true ? null : next.value;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ImportFailure) throw error;
      throw badFile(path, `cannot be read: ${fileProblem(error)}`);
    }
  };
  try {
    const { header, headerBytes, rest } = await readHeader(path, totalBytes, pull, orders);
    const bytes = elementCount(header.shape) * elementBytes[header.type];
    if (headerBytes + bytes !== totalBytes) {
      const shape = `shape (${header.shape.join(', ')}) of ${header.type}`;
      const expected = `its header promises ${shape}, ${formatCount(bytes)} bytes`;
      const found = `${formatCount(totalBytes - headerBytes)} bytes follow it`;
      const verdict = headerBytes + bytes > totalBytes ? 'is truncated' : 'is too long';
      throw badFile(path, `${verdict}: ${expected}; ${found}`);
    }
    return {
      path,
      header,
      place: null,
      blocks: () => readBlocks(path, header, bytes, rest, pull),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

type Pull = () => Promise<Uint8Array | null>;

interface HeaderRead {
  readonly header: NpyHeader;
  readonly headerBytes: number;
  /** Elements that came along with the header. */
  readonly rest: Uint8Array;
}

async function readHeader(
  path: string,
  totalBytes: number,
  pull: Pull,
  orders: NpyOrders,
): Promise<HeaderRead> {
  if (totalBytes === 0) throw badFile(path, 'is empty, expected a .npy array');
  let bytes = Buffer.alloc(0);
  const fill = async (length: number) => {
    while (bytes.length < length) {
      const chunk = await pull();
      if (chunk === null) throw badFile(path, 'is truncated within its .npy header');
      bytes = Buffer.concat([bytes, chunk]);
    }
  };
  if (totalBytes >= magic.length) await fill(magic.length);
  if (totalBytes < magic.length || !bytes.subarray(0, magic.length).equals(magic)) {
    throw badFile(path, 'is not a .npy array: it does not start with \\x93NUMPY');
  }
  await fill(magic.length + 6);
  const version = bytes.readUInt8(magic.length);
  if (version < 1 || version > 3) {
    throw badFile(path, `has .npy version ${version}, expected 1, 2 or 3`);
  }
  const lengthAt = magic.length + 2;
  const textAt = version === 1 ? lengthAt + 2 : lengthAt + 4;
  const textBytes = version === 1 ? bytes.readUInt16LE(lengthAt) : bytes.readUInt32LE(lengthAt);
  if (textBytes > headerBytesMax) {
    throw badFile(path, `is damaged: its .npy header claims ${formatCount(textBytes)} bytes`);
  }
  const headerBytes = textAt + textBytes;
  await fill(headerBytes);
  const header = parseNpyHeader(bytes.toString('latin1', textAt, headerBytes), path, orders);
  return { header, headerBytes, rest: bytes.subarray(headerBytes) };
}

async function* readBlocks(
  path: string,
  header: NpyHeader,
  totalBytes: number,
  rest: Uint8Array,
  pull: Pull,
): AsyncGenerator<NpyValues> {
  const block = new Uint8Array(Math.min(blockBytes, Math.max(totalBytes, 1)));
  let filled = 0;
  let done = 0;
  for (let chunk: Uint8Array | null = rest; chunk !== null; chunk = await pull()) {
    for (let at = 0; at < chunk.length; ) {
      const part = chunk.subarray(at, at + block.length - filled);
      block.set(part, filled);
      filled += part.length;
      at += part.length;
      if (filled < block.length) continue;
      yield valuesOf(header.type, block.buffer, filled);
      done += filled;
      filled = 0;
    }
  }
  if (done + filled !== totalBytes) {
    const found = `${formatCount(done + filled)} of ${formatCount(totalBytes)} bytes`;
    throw badFile(path, `is truncated: it ends after ${found}`);
  }
  if (filled > 0) yield valuesOf(header.type, block.buffer, filled);
}

function valuesOf(type: NpyType, buffer: ArrayBuffer, bytes: number): NpyValues {
  const length = bytes / elementBytes[type];
  switch (type) {
    case 'bool':
    case 'uint8':
      return new Uint8Array(buffer, 0, length);
    case 'int8':
      return new Int8Array(buffer, 0, length);
    case 'int16':
      return new Int16Array(buffer, 0, length);
    case 'uint16':
    case 'float16':
      return new Uint16Array(buffer, 0, length);
    case 'uint32':
      return new Uint32Array(buffer, 0, length);
    case 'float32':
      return new Float32Array(buffer, 0, length);
    case 'float64':
      return new Float64Array(buffer, 0, length);
    case 'int32':
      return new Int32Array(buffer, 0, length);
    case 'int64':
    case 'uint64':
      return new BigInt64Array(buffer, 0, length);
  }
}

/** What was written: counts, and the SHA-256 of the elements without the header. */
export interface NpyWritten {
  readonly rows: number;
  /** Bytes of the file, header and elements. */
  readonly bytes: number;
  readonly sha256: string;
}

/**
 * Writes an array whose number of rows is not known before its end. Read-only for everybody once
 * made. The header's length does not depend on the rows, so it is put in at the end.
 */
export class NpyWriter {
  readonly #file: FileHandle;
  readonly #type: NpyType;
  readonly #columns: readonly number[];
  readonly #hash: Hash = createHash('sha256');
  /** SHA-256 of elements that somebody else wrote; null: they were appended. */
  #sha256: string | null = null;
  /** Where elements begin. */
  #headerBytes = 0;
  #dataBytes = 0;

  private constructor(file: FileHandle, type: NpyType, columns: readonly number[]) {
    this.#file = file;
    this.#type = type;
    this.#columns = columns;
  }

  /** `columns` is null for a vector. The file must not exist. */
  static async create(path: string, type: NpyType, columns: number | null): Promise<NpyWriter> {
    const file = await open(path, 'wx', 0o440);
    const writer = new NpyWriter(file, type, columns === null ? [] : [columns]);
    writer.#headerBytes = writer.#header(0).length;
    return writer;
  }

  /** `values` may be changed once this resolves. */
  async append(values: NpyValues): Promise<void> {
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    for (let at = 0; at < bytes.length; at += blockBytes) {
      const part = bytes.subarray(at, at + blockBytes);
      this.#hash.update(part);
      await writeAll(this.#file, part, this.#headerBytes + this.#dataBytes);
      this.#dataBytes += part.length;
    }
  }

  /** Open for writing; nobody else may open the file so. */
  get fd(): number {
    return this.#file.fd;
  }

  /** Where the elements go, for somebody else to write all of them. */
  get dataAt(): number {
    return this.#headerBytes;
  }

  /** All elements are in the file, and this is their sum. */
  adopt(bytes: number, sha256: string): void {
    this.#dataBytes = bytes;
    this.#sha256 = sha256;
  }

  /** Makes the file whole and durable. */
  async finish(): Promise<NpyWritten> {
    const rowBytes = elementBytes[this.#type] * elementCount(this.#columns);
    const rows = rowBytes === 0 ? 0 : this.#dataBytes / rowBytes;
    if (!Number.isInteger(rows)) throw new Error(`${this.#dataBytes} bytes are not whole rows`);
    await writeAll(this.#file, this.#header(rows), 0);
    await this.#file.sync();
    await this.close();
    const bytes = this.#headerBytes + this.#dataBytes;
    return { rows, bytes, sha256: this.#sha256 ?? this.#hash.digest('hex') };
  }

  /** Gives the file up; without effect after finish(). */
  async close(): Promise<void> {
    await this.#file.close();
  }

  #header(rows: number): Buffer {
    return formatNpyHeader({ type: this.#type, shape: [rows, ...this.#columns] });
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  let at = 0;
  while (at < bytes.length) {
    const { bytesWritten } = await file.write(bytes, at, bytes.length - at, position + at);
    at += bytesWritten;
  }
}
