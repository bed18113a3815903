import type { FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { decompress as decompressZstd } from 'fzstd';
import {
  type AsyncBuffer,
  type Compressors,
  type DecodedArray,
  type FileMetaData,
  parquetMetadataAsync,
  parquetRead,
  parquetSchema,
} from 'hyparquet';
import { messageOf } from '../base/errors.ts';
import { openSource } from './byte-streams.ts';
import { badFile, formatCount } from './problems.ts';
import type { Field } from './table-columns.ts';

/** Parquet files, a part of a row group at a time: hyparquet, with codecs of Node and fzstd. */

interface ParquetRow {
  /** From 1. */
  readonly line: number;
  readonly fields: readonly Field[];
}

const compressors: Compressors = {
  ZSTD: (input, outputBytes) => decompressZstd(input, new Uint8Array(outputBytes)),
  GZIP: (input) => gunzipSync(input),
  BROTLI: (input) => brotliDecompressSync(input),
};
const codecs: ReadonlySet<string> = new Set([
  'UNCOMPRESSED',
  'SNAPPY',
  ...Object.keys(compressors),
]);
/** Numbers that are held at once, whatever the size of the row groups. */
const heldValuesMax = 1 << 24;
const rowsPerBatch = 4096;

/** A Parquet file that is read once from its first row to its last. */
export class ParquetFile {
  readonly name: string;
  readonly columns: readonly string[];
  readonly #path: string;
  readonly #metadata: FileMetaData;
  readonly #signal: AbortSignal;
  #read = 0;

  private constructor(path: string, metadata: FileMetaData, signal: AbortSignal) {
    this.name = basename(path);
    this.#path = path;
    this.#metadata = metadata;
    this.columns = parquetSchema(metadata).children.map(({ element }) => element.name);
    this.#signal = signal;
  }

  /** Throws ImportFailure for what is no Parquet file or has a codec that is not read. */
  static async open(path: string, signal: AbortSignal): Promise<ParquetFile> {
    const name = basename(path);
    const file = await openSource(path);
    try {
      const metadata = await parquetMetadataAsync(await bufferOf(file)).catch((error: unknown) => {
        throw badFile(name, `is not a whole Parquet file: ${messageOf(error)}`);
      });
      checkCodecs(name, metadata);
      return new ParquetFile(path, metadata, signal);
    } finally {
      await file.close();
    }
  }

  /** How much of the file was read, of 1. */
  get fraction(): number {
    const rows = Number(this.#metadata.num_rows);
    return rows === 0 ? 1 : this.#read / rows;
  }

  /** Rows in batches. Throws ImportFailure when the file is damaged. */
  async *rows(): AsyncGenerator<readonly ParquetRow[]> {
    const file = await openSource(this.#path);
    try {
      const buffer = await bufferOf(file);
      let groupStart = 0;
      for (const { num_rows } of this.#metadata.row_groups) {
        const groupEnd = groupStart + Number(num_rows);
        const step = Math.max(1, Math.floor(heldValuesMax / Math.max(1, this.#width(groupStart))));
        for (let start = groupStart; start < groupEnd; start += step) {
          yield* this.#part(buffer, start, Math.min(start + step, groupEnd));
        }
        groupStart = groupEnd;
      }
    } finally {
      await file.close();
    }
  }

  /** Numbers a row, about: lists have several. */
  #width(groupStart: number): number {
    let start = 0;
    for (const group of this.#metadata.row_groups) {
      if (start === groupStart) {
        const values = group.columns.reduce(
          (sum, { meta_data }) => sum + Number(meta_data?.num_values ?? 0n),
          0,
        );
        return Math.ceil(values / Math.max(1, Number(group.num_rows)));
      }
      start += Number(group.num_rows);
    }
    return this.columns.length;
  }

  async *#part(
    buffer: AsyncBuffer,
    start: number,
    end: number,
  ): AsyncGenerator<readonly ParquetRow[]> {
    const columns: Column[] = [];
    for (const column of this.columns) {
      this.#signal.throwIfAborted();
      columns.push(await this.#column(buffer, column, start, end));
    }
    for (let first = start; first < end; first += rowsPerBatch) {
      const count = Math.min(rowsPerBatch, end - first);
      this.#read = first + count;
      yield Array.from({ length: count }, (_, index) => ({
        line: first + index + 1,
        fields: columns.map((values) => values.at(first + index - start)),
      }));
    }
  }

  /** A column is decoded by the row group; what lies outside the range is dropped at once. */
  async #column(file: AsyncBuffer, column: string, start: number, end: number): Promise<Column> {
    const values = new Column(end - start);
    const take = (decoded: DecodedArray, rowStart: number) => {
      const from = Math.max(start, rowStart);
      const to = Math.min(end, rowStart + decoded.length);
      for (let row = from; row < to; row += 1) {
        values.set(row - start, fieldOf(decoded[row - rowStart]));
      }
    };
    await parquetRead({
      ...{ file, metadata: this.#metadata, columns: [column], rowStart: start, rowEnd: end },
      compressors,
      onChunk: ({ columnData, rowStart }) => take(columnData, rowStart),
    }).catch((error: unknown) => {
      const rows = `rows ${formatCount(start + 1)} to ${formatCount(end)}`;
      const what = `cannot be read in ${rows} of column '${column}': ${messageOf(error)}`;
      throw badFile(this.name, what);
    });
    return values;
  }
}

/** Fields of a column: eight bytes each as long as all are numbers or nothing. */
class Column {
  /** NaN: nothing. */
  readonly #numbers: Float64Array;
  #fields: Field[] | null = null;

  constructor(length: number) {
    this.#numbers = new Float64Array(length).fill(Number.NaN);
  }

  set(at: number, field: Field): void {
    if (this.#fields === null && typeof field === 'number') this.#numbers[at] = field;
    else if (this.#fields !== null || field !== '') {
      this.#fields ??= Array.from(this.#numbers, (value) => (Number.isNaN(value) ? '' : value));
      this.#fields[at] = field;
    }
  }

  at(index: number): Field {
    if (this.#fields !== null) return this.#fields[index] ?? '';
    const value = this.#numbers[index] ?? Number.NaN;
    return Number.isNaN(value) ? '' : value;
  }
}

/** A number that is none, as frames have where nothing is, is nothing. */
function fieldOf(value: unknown): Field {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return Number.isNaN(value) ? '' : value;
  // Ids of 64 bits keep all of them.
  if (typeof value === 'bigint') {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : String(value);
  }
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (value === null || value === undefined) return '';
  if (Array.isArray(value)) return value.map((each) => (each === null ? '' : fieldOf(each)));
  if (ArrayBuffer.isView(value)) return Array.from(value as Float32Array);
  return String(value);
}

function checkCodecs(name: string, metadata: FileMetaData): void {
  for (const { columns } of metadata.row_groups) {
    for (const { meta_data } of columns) {
      if (meta_data === undefined || codecs.has(meta_data.codec)) continue;
      const column = meta_data.path_in_schema.join('.');
      const expected = `expected ${[...codecs].join(', ').toLowerCase()}`;
      throw badFile(name, `has column '${column}' packed as ${meta_data.codec}, ${expected}`);
    }
  }
}

async function bufferOf(file: FileHandle): Promise<AsyncBuffer> {
  const { size } = await file.stat();
  return {
    byteLength: size,
    slice: async (start, end = size) => {
      const bytes = new Uint8Array(end - start);
      for (let done = 0; done < bytes.length; ) {
        const { bytesRead } = await file.read(bytes, done, bytes.length - done, start + done);
        if (bytesRead === 0) throw new Error(`it ends at byte ${formatCount(start + done)}`);
        done += bytesRead;
      }
      return bytes.buffer;
    },
  };
}
