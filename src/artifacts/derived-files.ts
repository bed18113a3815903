import { unlinkSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { filesBelow, type SizedFile } from '../base/files.ts';
import { derivedDiskShare } from '../config/retention-limits.ts';

/**
 * Files that jobs make from datasets and can make again: standardised features, hot orders, graphs
 * of links, and folders of propagated features. Files, or their folders, begin with the digest of
 * their dataset; who uses one says so by its time (`markUsed`).
 */

export interface DerivedFile extends SizedFile {
  readonly reason: string;
}

/** Time that users other than attempts, such as exports, have from finding to opening a file. */
const graceMs = 10 * 60_000;
const digestLength = 32;
const ours = /^[0-9a-f]{32}-.*\.npy$/;
const folderOfOurs = /^[0-9a-f]{32}-[0-9a-f]{16}-links$/;

/** Folders that go as a whole, and who knows whether they are in use. */
export interface DerivedFolders {
  /** Each as if it was a file, of the time when it was last used. */
  sized(): Promise<readonly SizedFile[]>;
  /** Whether nobody makes or reads the folder. */
  isIdle(path: string): boolean;
  /**
   * False when it is in use by now, or gone. Looks and takes it away in one turn of the event loop;
   * resolves when its bytes are free.
   */
  removeIdle(path: string): Promise<boolean>;
}

export interface DerivedLimits {
  /** Null: a share of the disk. */
  readonly maxBytes: number | null;
  readonly nowMs: number;
  /** Digests of datasets that a job works on now. */
  readonly inUse: ReadonlySet<string>;
  readonly folders: DerivedFolders;
}

/** What is beyond the limit and not in use, the least recently used first. */
export async function derivedBeyond(
  folder: string,
  { maxBytes, nowMs, inUse, folders }: DerivedLimits,
): Promise<readonly DerivedFile[]> {
  const files = [...(await filesBelow(folder)), ...(await folders.sized())];
  const limit = maxBytes ?? (await shareOfDisk(folder));
  const reason = `derived files may take ${limit} bytes (cache_max_bytes)`;
  let total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  const beyond: DerivedFile[] = [];
  for (const file of [...files].sort((a, b) => a.atMs - b.atMs || (a.path < b.path ? -1 : 1))) {
    if (total <= limit) break;
    const isIdle = isRemovable(file.path, inUse) || folders.isIdle(file.path);
    if (file.atMs > nowMs - graceMs || !isIdle) continue;
    beyond.push({ ...file, reason });
    total -= file.bytes;
  }
  return beyond;
}

/**
 * False when it is in use by now, or gone. Looks and removes in one turn of the event loop, in
 * which no attempt can begin.
 */
export function removeDerived(path: string, inUse: ReadonlySet<string>): boolean {
  if (!isRemovable(path, inUse)) return false;
  try {
    unlinkSync(path);
    return true;
  } catch {
    return false;
  }
}

function isRemovable(path: string, inUse: ReadonlySet<string>): boolean {
  const folder = basename(dirname(path));
  const name = folderOfOurs.test(folder) ? folder : basename(path);
  if (name !== folder && !ours.test(name)) return false;
  const digest = name.slice(0, digestLength);
  return ![...inUse].some((used) => used.startsWith(digest));
}

async function shareOfDisk(folder: string): Promise<number> {
  const disk = await statfs(folder).catch(() => null);
  if (disk === null) return Number.POSITIVE_INFINITY;
  return Math.floor(derivedDiskShare * disk.blocks * disk.bsize);
}
