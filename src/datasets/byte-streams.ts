import type { FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import { type Duplex, pipeline, Readable } from 'node:stream';
import { TextDecoder } from 'node:util';
import { fileProblem } from '../base/file-problem.ts';
import { openRegular } from '../base/regular-file.ts';
import { badFile, type ImportFailure } from './problems.ts';
import { refuseOutside } from './source-root.ts';

/**
 * Streams of bytes as async iterables: nothing is opened before the first chunk is asked for, all
 * is closed when iteration ends in whatever way, and errors come out of the iteration. (A bare
 * stream that fails while nobody iterates it would end the process.)
 */

const chunkBytes = 1 << 18;
const longLine = 1 << 20;

/**
 * The bytes of a file, or of the part from `start` to before `end`. Throws ImportFailure when it
 * is no regular file or cannot be read.
 */
export async function* fileChunks(
  path: string,
  part: { readonly start: number; readonly end: number } | null = null,
): AsyncGenerator<Uint8Array> {
  const range = part === null ? {} : { start: part.start, end: part.end - 1 };
  const file = await openSource(path);
  const bytes = file.createReadStream({ highWaterMark: chunkBytes, ...range });
  const chunks = (bytes as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await chunks.next().catch((error: unknown) => {
        throw unreadable(path, error);
      });
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    await chunks.return?.();
  }
}

/**
 * The bytes of a file in blocks of `bytes`, in one place that is filled again and again: each is
 * valid until the next one. Throws ImportFailure as `fileChunks` does.
 */
export async function* fileBlocks(path: string, bytes: number): AsyncGenerator<Uint8Array> {
  const file = await openSource(path);
  const place = Buffer.allocUnsafeSlow(bytes);
  try {
    for (;;) {
      const { bytesRead } = await file.read(place, 0, bytes, null).catch((error: unknown) => {
        throw unreadable(path, error);
      });
      if (bytesRead === 0) return;
      yield place.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

/**
 * The lines of a file of text, without their ends. Throws ImportFailure as `fileChunks` does, and
 * where a line has more than `lineMax` characters.
 */
export async function* fileLines(path: string, lineMax = longLine): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: false });
  let rest = '';
  let before = 0;
  for await (const chunk of fileChunks(path)) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) yield line.endsWith('\r') ? line.slice(0, -1) : line;
    before += lines.length;
    if (rest.length > lineMax) {
      const what = `has more than ${lineMax} characters: is this a file of text?`;
      throw badFile(`${basename(path)}:${before + 1}`, what);
    }
  }
  rest += decoder.decode();
  if (rest !== '') yield rest;
}

/**
 * A file of a source, open for reading: the one door to all of them. Throws ImportFailure as
 * `fileChunks` does, and for what leads out of sources_dir.
 */
export async function openSource(path: string): Promise<FileHandle> {
  const file = await openRegular(path).catch((error: unknown) => {
    throw unreadable(path, error);
  });
  try {
    await refuseOutside(file, basename(path));
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** All of a small file of a source, as text. Throws ImportFailure as `openSource` does. */
export async function sourceText(path: string, maxBytes: number): Promise<string> {
  const file = await openSource(path);
  try {
    const { size } = await file.stat();
    if (size > maxBytes) {
      const most = `at most ${maxBytes >> 20} MiB are read of it`;
      throw badFile(basename(path), `has ${size} bytes, ${most}`);
    }
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

function unreadable(path: string, error: unknown): ImportFailure {
  return badFile(basename(path), `cannot be read: ${fileProblem(error)}`);
}

/** What comes out of `transform` (such as gunzip) when `chunks` go in. */
export async function* transformed(
  chunks: AsyncIterable<Uint8Array>,
  transform: Duplex,
): AsyncGenerator<Uint8Array> {
  // The callback is for errors, and those come out of the iteration.
  const content = pipeline(Readable.from(chunks), transform, () => undefined);
  yield* content as AsyncIterable<Buffer>;
}

/** An error of zlib about its input, as opposed to one of reading it. */
export function isZlibError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('Z_');
}
