import { realpath } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';

/** Folders below which requests may name files. Links count by where they lead. */

/** Whether `path` lies below `root`; both without links. */
export function isInside(root: string, path: string): boolean {
  const inside = relative(root, path);
  return inside !== '' && inside !== '..' && !inside.startsWith(`..${sep}`);
}

/** Where `path` leads, as far as it is there; what is not there yet holds no links. */
export async function placeOf(path: string): Promise<string> {
  const wanted = resolve(path);
  try {
    return await realpath(wanted);
  } catch (error) {
    const isAbsent = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (!isAbsent || dirname(wanted) === wanted) throw error;
    return join(await placeOf(dirname(wanted)), wanted.slice(dirname(wanted).length));
  }
}
