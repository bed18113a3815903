import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * Writes `chunks` to `path` so that a reader sees the old file or the new one, never a part: a
 * temporary sibling, fsync, rename, fsync of the folder. On failure (a full disk, say) the sibling
 * is removed and the error goes to the caller.
 */
export function writeFileAtomic(
  path: string,
  chunks: readonly (string | Uint8Array)[],
  mode = 0o640,
): void {
  const temporary = `${path}.tmp-${process.pid}`;
  try {
    const fd = openSync(temporary, 'w', mode);
    try {
      for (const chunk of chunks) writeAll(fd, chunk);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

/** Makes a rename inside `folder` durable. */
export function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function writeAll(fd: number, chunk: string | Uint8Array): void {
  const bytes = typeof chunk === 'string' ? Buffer.from(chunk, 'utf8') : chunk;
  let at = 0;
  while (at < bytes.byteLength) at += writeSync(fd, bytes, at, bytes.byteLength - at);
}

/**
 * Removes what killed writers left (names with `.tmp-`) in `folder` and down to `depth` levels of
 * folders below it; answers the paths. Only for a folder that nobody else writes to now.
 */
export function sweepTemporary(folder: string, depth: number): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.name.includes('.tmp-')) {
      rmSync(path, { recursive: true, force: true });
      return [path];
    }
    return entry.isDirectory() && depth > 0 ? sweepTemporary(path, depth - 1) : [];
  });
}
