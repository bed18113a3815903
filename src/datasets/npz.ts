import { basename } from 'node:path';
import { crc32 } from 'node:zlib';
import { type Entry, fromFdPromise, type ZipFile } from 'yauzl';
import { messageOf } from '../base/errors.ts';
import { openSource } from './byte-streams.ts';
import { badFile, ImportFailure } from './problems.ts';

/** .npz files: ZIP archives with stored or deflated members. yauzl reads, we check the sums. */

export interface ZipMember {
  /** Bytes of the content, uncompressed. */
  readonly bytes: number;
  readonly entry: Entry;
}

const methods = new Map([
  [0, 'stored'],
  [8, 'deflated'],
]);

/** The members of an archive, by name. Throws ImportFailure when it is damaged or no ZIP file. */
export async function readZipDirectory(path: string): Promise<ReadonlyMap<string, ZipMember>> {
  const name = basename(path);
  return await withZip(path, async (zip) => {
    const members = new Map<string, ZipMember>();
    try {
      for await (const entry of zip.eachEntry()) {
        const { fileName, uncompressedSize, compressionMethod: method } = entry;
        const display = `${name}/${fileName}`;
        if (entry.isEncrypted()) throw badFile(display, 'is encrypted');
        if (!methods.has(method)) {
          throw badFile(display, `has compression method ${method}, expected 0 or 8`);
        }
        members.set(fileName, { bytes: uncompressedSize, entry });
      }
    } catch (error) {
      if (error instanceof ImportFailure) throw error;
      throw badFile(name, `is damaged: ${messageOf(error)}`);
    }
    return members;
  });
}

/** The archive is open while `work` runs. */
async function withZip<T>(path: string, work: (zip: ZipFile) => Promise<T>): Promise<T> {
  const file = await openSource(path);
  try {
    return await work(await zipOn(file.fd, basename(path)));
  } finally {
    await file.close();
  }
}

/** Closing the descriptor is the caller's. */
async function zipOn(fd: number, name: string): Promise<ZipFile> {
  try {
    return await fromFdPromise(fd, { lazyEntries: true, autoClose: false });
  } catch (error) {
    throw badFile(name, `is not a whole .npz file: ${messageOf(error)}`);
  }
}

/**
 * The content of a member. Throws ImportFailure naming file and member when it is damaged: its
 * size and CRC-32 are checked when it ends.
 */
export async function* readZipMember(
  path: string,
  { bytes, entry }: ZipMember,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const display = `${basename(path)}/${entry.fileName}`;
  const file = await openSource(path);
  try {
    const zip = await zipOn(file.fd, basename(path));
    let read = 0;
    let sum = 0;
    try {
      const content: AsyncIterable<Buffer> = await zip.openReadStreamPromise(entry);
      for await (const chunk of content) {
        signal.throwIfAborted();
        read += chunk.length;
        sum = crc32(chunk, sum);
        yield chunk;
      }
    } catch (error) {
      signal.throwIfAborted();
      const isReading = error instanceof Error && 'syscall' in error;
      const what = isReading ? 'cannot be read' : 'is damaged';
      throw badFile(display, `${what}: ${messageOf(error)}`);
    }
    if (read !== bytes || sum !== entry.crc32) {
      throw badFile(display, 'is damaged: its size or CRC-32 is not the one in the directory');
    }
  } finally {
    await file.close();
  }
}
