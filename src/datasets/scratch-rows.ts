import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { givenSource } from './given-array.ts';
import type { NpySource } from './npy.ts';

/**
 * Rows of float32 on their way into a dataset, in a file without a name: what has to be known of
 * all of them before the first is stored, or comes in another order, need not fit into memory.
 */
export class ScratchRows {
  readonly #file: FileHandle;
  readonly #columns: number;
  #rows = 0;

  private constructor(file: FileHandle, columns: number) {
    this.#file = file;
    this.#columns = columns;
  }

  /** In a folder of the disk that has room for the dataset. */
  static async create(folder: string, columns: number): Promise<ScratchRows> {
    const path = join(folder, '.rows');
    const file = await open(path, 'wx+', 0o600);
    await unlink(path);
    return new ScratchRows(file, columns);
  }

  /** Adds whole rows at the end. */
  async append(values: Float32Array): Promise<void> {
    await this.put(this.#rows, values);
    this.#rows += values.length / this.#columns;
  }

  /** Adds rows of which nothing is known. */
  async appendUnknown(rows: number): Promise<void> {
    const most = Math.max(1, Math.floor(blockValues / this.#columns));
    const block = new Float32Array(Math.min(most, rows) * this.#columns).fill(Number.NaN);
    for (let left = rows; left > 0; left -= most) {
      await this.append(block.subarray(0, Math.min(most, left) * this.#columns));
    }
  }

  /** Writes rows from `row` on. */
  async put(row: number, values: Float32Array): Promise<void> {
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    const at = row * this.#columns * bytesOfValue;
    for (let done = 0; done < bytes.length; ) {
      const left = bytes.length - done;
      done += (await this.#file.write(bytes, done, left, at + done)).bytesWritten;
    }
  }

  /** The rows as an array that messages call `path`; closing it leaves the rows. */
  source(path: string): NpySource {
    const header = { type: 'float32', shape: [this.#rows, this.#columns] } as const;
    return givenSource(path, header, () => this.#blocks());
  }

  async *#blocks(): AsyncGenerator<Float32Array> {
    const total = this.#rows * this.#columns * bytesOfValue;
    for (let at = 0; at < total; ) {
      const bytes = new Uint8Array(Math.min(blockValues * bytesOfValue, total - at));
      for (let done = 0; done < bytes.length; ) {
        const left = bytes.length - done;
        const { bytesRead } = await this.#file.read(bytes, done, left, at + done);
        if (bytesRead === 0) throw new Error(`rows end at byte ${at + done} of ${total}`);
        done += bytesRead;
      }
      yield new Float32Array(bytes.buffer);
      at += bytes.length;
    }
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

const blockValues = 1 << 18;
const bytesOfValue = Float32Array.BYTES_PER_ELEMENT;
