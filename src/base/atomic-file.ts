import { randomUUID } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
} from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

/**
 * Writes `chunks` to `path` so that a reader sees the old file or the new one, never a part: a
 * temporary sibling, fsync, rename, fsync of the folder. On failure (a full disk, say) the sibling
 * is removed and the error goes to the caller. Other threads do the work.
 */
export async function writeFileAtomic(
  path: string,
  chunks: readonly (string | Uint8Array)[],
  mode = 0o640,
): Promise<void> {
  // Process ids are not enough where containers share a folder.
  const temporary = `${path}.tmp-${process.pid}-${randomUUID()}`;
  try {
    const file = await open(temporary, 'w', mode);
    try {
      for (const chunk of chunks) await file.appendFile(chunk);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

/**
 * Makes a folder and those above it that are missing. (Node's own way tries for ever where the
 * kernel answers ENOENT to a new folder, as below /proc.) Answers the highest that it made, if any.
 */
export function makeFolder(path: string, mode = 0o750): string | undefined {
  const missing: string[] = [];
  for (let at = resolve(path); !existsSync(at); at = dirname(at)) missing.push(at);
  for (const folder of missing.toReversed()) {
    try {
      mkdirSync(folder, { mode });
    } catch (error) {
      // Somebody else may have made it meanwhile.
      if (!existsSync(folder)) throw error;
    }
  }
  return missing.at(-1);
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
