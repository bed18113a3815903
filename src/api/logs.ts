import { type FileHandle, open } from 'node:fs/promises';
import type { Jobs, LogFile } from '../jobs/jobs.ts';
import { type ExecutorRole, terminalStates } from '../records/job-record.ts';
import type { Sleep } from './wait.ts';

/** Whole lines of one log. */
export interface LogChunk extends Pick<LogFile, 'log' | 'role' | 'device'> {
  readonly lines: readonly string[];
}

export interface LogQuery {
  readonly id: string;
  /** 0: the latest, also when a newer one begins while the log is followed. */
  readonly attempt: number;
  /** Null: every role. */
  readonly role: ExecutorRole | null;
  /** Empty: every device. */
  readonly device: string;
  /** Lines before the end of each file to start at; 0: from the beginning. */
  readonly tailLines: number;
  /** Go on until the job is terminal. */
  readonly follow: boolean;
}

export interface LogDeps {
  readonly jobs: Jobs;
  readonly sleep: Sleep;
}

/** A longer line is cut into pieces of this size. */
const chunkBytesMax = 64 * 1024;
/** Files are polled: it costs nothing beside training and works on every file system. */
const pollPeriodMs = 250;
const newline = 0x0a;

/**
 * The lines that a job's executors logged, file by file, in chunks of at most 64 KiB. Nothing is
 * read ahead of the reader. Throws JOB_NOT_FOUND, and the signal's reason once it aborts.
 */
export async function* streamLogs(
  deps: LogDeps,
  query: LogQuery,
  signal: AbortSignal,
): AsyncGenerator<LogChunk, void, void> {
  const offsets = new Map<string, number>();
  let isFirstPass = true;
  for (;;) {
    // Asked before the files are read: what a job logged before its end is not missed.
    const isLast = !query.follow || terminalStates.has(deps.jobs.get(query.id).state);
    for (const file of selected(deps.jobs.logs(query.id, query.attempt), query)) {
      const tailLines = isFirstPass ? query.tailLines : 0;
      for await (const lines of readNew(file.path, offsets, tailLines, isLast)) {
        yield { log: file.log, role: file.role, device: file.device, lines };
        signal.throwIfAborted();
      }
    }
    if (isLast) return;
    isFirstPass = false;
    signal.throwIfAborted();
    await deps.sleep(pollPeriodMs, signal);
  }
}

function selected(files: readonly LogFile[], query: LogQuery): readonly LogFile[] {
  return files.filter(
    (file) =>
      (query.role === null || file.role === query.role) &&
      (query.device === '' || file.device === query.device),
  );
}

/** Chunks of lines that `path` has beyond its offset, which moves with them. */
async function* readNew(
  path: string,
  offsets: Map<string, number>,
  tailLines: number,
  isLast: boolean,
): AsyncGenerator<readonly string[], void, void> {
  const handle = await openIfExists(path);
  if (handle === null) return;
  try {
    const { size } = await handle.stat();
    let offset = offsets.get(path) ?? (await tailOffset(handle, size, tailLines));
    if (offset > size) offset = 0; // The file was begun anew.
    for (;;) {
      const { bytesRead, buffer } = await handle.read(
        Buffer.alloc(chunkBytesMax),
        0,
        chunkBytesMax,
        offset,
      );
      const bytes = buffer.subarray(0, bytesRead);
      const taken = completeBytes(bytes, isLast);
      offset += taken;
      offsets.set(path, offset);
      if (taken === 0) return;
      yield linesOf(bytes.subarray(0, taken));
    }
  } finally {
    await handle.close();
  }
}

/** How much of `bytes` can be sent now: whole lines, and what can never grow into one. */
function completeBytes(bytes: Buffer, isLast: boolean): number {
  const isFull = bytes.length === chunkBytesMax;
  if (isLast && !isFull) return bytes.length;
  const end = bytes.lastIndexOf(newline) + 1;
  return end === 0 && isFull ? bytes.length : end;
}

function linesOf(bytes: Buffer): readonly string[] {
  const lines = bytes.toString('utf8').split('\n');
  if (bytes.at(-1) === newline) lines.pop();
  return lines;
}

/** Where the last `tailLines` lines begin; 0 when all are wanted. */
async function tailOffset(handle: FileHandle, size: number, tailLines: number): Promise<number> {
  if (tailLines === 0) return 0;
  // The newline that ends the last line does not begin another one.
  let newlinesLeft = tailLines;
  let end = size - 1;
  while (end > 0) {
    const start = Math.max(0, end - chunkBytesMax);
    const { bytesRead, buffer } = await handle.read(
      Buffer.alloc(end - start),
      0,
      end - start,
      start,
    );
    const bytes = buffer.subarray(0, bytesRead);
    for (let at = bytes.lastIndexOf(newline); at >= 0; ) {
      newlinesLeft -= 1;
      if (newlinesLeft === 0) return start + at + 1;
      at = at === 0 ? -1 : bytes.lastIndexOf(newline, at - 1);
    }
    end = start;
  }
  return 0;
}

/** Null when there is no such file: an executor that has not logged yet. */
async function openIfExists(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, 'r');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}
