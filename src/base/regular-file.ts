import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  type Stats,
  statSync,
} from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';

/**
 * The one door to files that others made: regular files only. Opening a FIFO waits for a writer
 * that may never come, and a device gives what it likes; both are refused, by name and type.
 */

/** What a path is that is no regular file. The message is a sentence with the path and the type. */
export class NotRegularFile extends Error {
  constructor(path: string, stats: Stats) {
    super(`${path} is ${kindOf(stats)}, expected a regular file`);
    this.name = 'NotRegularFile';
  }
}

/** The type of a file for people, with its article. */
export function kindOf(stats: Stats): string {
  if (stats.isFile()) return 'a regular file';
  if (stats.isDirectory()) return 'a folder';
  if (stats.isFIFO()) return 'a FIFO';
  if (stats.isSocket()) return 'a socket';
  return stats.isBlockDevice() ? 'a block device' : 'a character device';
}

// Where the file was exchanged between the look and the opening: waits for no writer, and makes no
// terminal ours.
const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

/** Opens `path` for reading; follows links. Throws NotRegularFile, or the system's error. */
export async function openRegular(path: string): Promise<FileHandle> {
  refuseOthers(path, await stat(path));
  const file = await open(path, flags);
  try {
    refuseOthers(path, await file.stat());
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** All of a file. Throws as `openRegular` does. */
export async function readRegular(path: string): Promise<Buffer> {
  const file = await openRegular(path);
  try {
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** The same where nothing else is to go on meanwhile. The caller closes the descriptor. */
export function openRegularSync(path: string): number {
  refuseOthers(path, statSync(path));
  const fd = openSync(path, flags);
  try {
    refuseOthers(path, fstatSync(fd));
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** All of a file, at once. */
export function readRegularSync(path: string): Buffer {
  const fd = openRegularSync(path);
  try {
    return readFileSync(fd);
  } finally {
    closeSync(fd);
  }
}

function refuseOthers(path: string, stats: Stats): void {
  if (!stats.isFile()) throw new NotRegularFile(path, stats);
}
