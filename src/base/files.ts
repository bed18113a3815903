import { type Dirent, utimesSync } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from './clock.ts';

/** A file as a look at it found it. */
export interface SizedFile {
  readonly path: string;
  readonly bytes: number;
  /** When it was last written, or said to be used. */
  readonly atMs: number;
}

/** The regular files in `folder` and below it, links left out; none where there is no folder. */
export async function filesBelow(folder: string): Promise<readonly SizedFile[]> {
  const files: SizedFile[] = [];
  for (const entry of await entriesOf(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) files.push(...(await filesBelow(path)));
    else if (entry.isFile()) {
      const found = await lstat(path).catch(() => null);
      if (found !== null) files.push({ path, bytes: found.size, atMs: found.mtimeMs });
    }
  }
  return files;
}

/** Empty where there is no folder. */
export async function entriesOf(folder: string): Promise<readonly Dirent[]> {
  return await readdir(folder, { withFileTypes: true }).catch(() => []);
}

/** Says that a derived file is used now: the least recently used goes first. */
export function markUsed(path: string): void {
  const now = systemClock.wallMs() / 1000;
  try {
    utimesSync(path, now, now);
  } catch {
    // Gone, or of another user: it is as old as it looks.
  }
}
