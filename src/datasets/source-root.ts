import { AsyncLocalStorage } from 'node:async_hooks';
import type { Dirent } from 'node:fs';
import { type FileHandle, readdir, readlink, realpath, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { isInside } from '../base/rooted.ts';
import { badFile, ImportFailure } from './problems.ts';

/**
 * sources_dir, below which sources lie: by where links lead, and that of each member, whoever reads
 * it. The whole source is looked at before anything of it is read, which is all that holds what
 * libraries open themselves. What we open is looked at once more when it is open, so that no link
 * that changes meanwhile gets around it.
 */

const roots = new AsyncLocalStorage<string>();

/** Does the work on a source, none of which leads out of `root`; empty: it may lead anywhere. */
export async function withinRoot<T>(
  { root, source, signal }: { root: string; source: string; signal: AbortSignal },
  work: () => Promise<T>,
): Promise<T> {
  if (root === '') return await work();
  const leaks = await leaksOf([root], source, signal);
  if (leaks.length > 0) {
    throw new ImportFailure(leaks.map((path) => ({ path, description: leadsOut(root) })));
  }
  return await roots.run(await realpath(root), work);
}

/** Throws ImportFailure for a file that was opened as `path` and lies elsewhere. */
export async function refuseOutside(file: FileHandle, path: string): Promise<void> {
  const root = roots.getStore();
  if (root === undefined) return;
  const place = await readlink(`/proc/self/fd/${file.fd}`);
  if (!isInside(root, place)) throw badFile(path, leadsOut(root));
}

/** What of `source`, a file or all of a folder, leads out of all of these folders. */
export async function leaksOf(
  folders: readonly string[],
  source: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const allowed = await Promise.all(folders.map((folder) => realpath(folder)));
  const leaks: string[] = [];
  const seen = new Set<string>();
  const visit = async (path: string): Promise<void> => {
    signal.throwIfAborted();
    // What leads nowhere leaks nothing: it cannot be read.
    const place = await realpath(path).catch(() => null);
    if (place === null || seen.has(place)) return;
    seen.add(place);
    if (!allowed.some((root) => place === root || isInside(root, place))) {
      leaks.push(relative(source, path) || path);
      return;
    }
    if (!(await stat(place)).isDirectory()) return;
    for (const entry of await entriesOf(place)) {
      if (entry.isDirectory() || entry.isSymbolicLink()) await visit(join(path, entry.name));
    }
  };
  await visit(source);
  return leaks;
}

/** Entries of a folder; none where it may not be read. */
async function entriesOf(folder: string): Promise<readonly Dirent[]> {
  return await readdir(folder, { withFileTypes: true }).catch(() => []);
}

export function leadsOut(root: string): string {
  return `leads out of ${root}, the daemon's sources_dir: put a copy there`;
}
