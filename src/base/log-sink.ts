import { closeSync, openSync, writeSync } from 'node:fs';
import { systemClock } from './clock.ts';

/**
 * Where lines go that must neither end nor hold up who writes them: what a log's reader, or its
 * disk, does not take now is held and tried again; beyond a limit the oldest lines go, are counted,
 * and said once others can be written.
 */
export interface LogSink {
  write(line: string): void;
  /** Has what is held written, waiting for a reader for so long at most: for the end. */
  flush(waitMs: number): void;
}

/** Writes what goes within `waitMs` and answers how many bytes that was; never throws. */
export type WriteNow = (text: string, waitMs: number) => number;

export interface LogSinkOptions {
  readonly writeNow: WriteNow;
  readonly heldMaxBytes?: number;
  readonly retryMs?: number;
  /** What stands for so many lines that are gone; null: nothing does. */
  readonly lostLine?: ((lines: number) => string) | null;
}

const defaults = { heldMaxBytes: 1 << 20, retryMs: 250, lostLine: linesLost } as const;

export function createLogSink(options: LogSinkOptions): LogSink {
  const { writeNow, heldMaxBytes, retryMs, lostLine } = { ...defaults, ...options };
  /** The first may be what is left of a line; it stays, so that no line is cut in the middle. */
  const held: string[] = [];
  let heldBytes = 0;
  let lost = 0;
  let retry: NodeJS.Timeout | null = null;

  const putFirst = (line: string) => {
    held.unshift(line);
    heldBytes += Buffer.byteLength(line);
    retry ??= setInterval(drain, retryMs, 0).unref();
  };
  const putLast = (line: string) => {
    held.push(line);
    heldBytes += Buffer.byteLength(line);
    while (heldBytes > heldMaxBytes && held.length > 1) {
      const [gone = ''] = held.splice(1, 1);
      heldBytes -= Buffer.byteLength(gone);
      lost += 1;
    }
  };
  /** What is left of a text; null: nothing. */
  const restOf = (text: string, waitMs: number) => {
    const bytes = Buffer.from(text);
    const written = writeNow(text, waitMs);
    return written >= bytes.length ? null : bytes.subarray(written).toString();
  };
  const drain = (waitMs: number) => {
    while (held.length > 0) {
      const [first = ''] = held.splice(0, 1);
      heldBytes -= Buffer.byteLength(first);
      const rest = restOf(first, waitMs);
      if (rest !== null) {
        putFirst(rest);
        return;
      }
      if (lost === 0) continue;
      const lines = lost;
      lost = 0;
      if (lostLine !== null) putFirst(lostLine(lines));
    }
    if (retry !== null) clearInterval(retry);
    retry = null;
  };
  return {
    write(line) {
      if (held.length > 0) {
        putLast(line);
        return;
      }
      const rest = restOf(line, 0);
      if (rest !== null) putFirst(rest);
    },
    flush: drain,
  };
}

function linesLost(lines: number): string {
  const ts = new Date(systemClock.wallMs()).toISOString();
  return `${JSON.stringify({ ts, lvl: 'warn', msg: 'log.lines_lost', lines })}\n`;
}

/** A sink for a descriptor that nobody keeps waiting, such as one of a file. */
export function descriptorSink(fd: number): LogSink {
  return createLogSink({ writeNow: (text) => writtenTo(fd, text) });
}

/** A sink for a file that may be moved away at any time: the next line makes a new one. */
export function fileSink(path: string): LogSink {
  const writeNow = (text: string) => {
    try {
      const fd = openSync(path, 'a', 0o640);
      try {
        return writtenTo(fd, text);
      } finally {
        closeSync(fd);
      }
    } catch {
      return 0;
    }
  };
  return createLogSink({ writeNow });
}

/** How many bytes of `text` were written; never throws. */
export function writtenTo(fd: number, text: string): number {
  try {
    return writeSync(fd, text);
  } catch {
    return 0;
  }
}
