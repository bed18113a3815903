import { stat } from 'node:fs/promises';
import { join } from 'node:path';

/** A file and what it is to hold. */
export interface NamedDigest {
  readonly name: string;
  readonly sha256: string;
}

export interface WrongFile {
  readonly path: string;
  readonly expected: string;
  readonly found: string;
}

/**
 * Which files hold what they are to hold. A file is read once; after that its device, inode, size
 * and times vouch for it, so whoever asks again costs a `stat` for each file. Who changes a file
 * and sets back its times in the same nanosecond is not found out.
 */
export class FileWitness {
  /** By path: the stamp of the file that had this digest. */
  readonly #seen = new Map<string, { readonly stamp: string; readonly sha256: string }>();

  /** Files that were just digested by whoever wrote them. */
  async remember(folder: string, files: readonly NamedDigest[]): Promise<void> {
    for (const { name, sha256 } of files) {
      const path = join(folder, name);
      this.#seen.set(path, { stamp: await stampOf(path), sha256 });
    }
  }

  /**
   * Those of `files` that hold something else, in their order. `digest` answers SHA-256 in hex of
   * the files it is given, in their order: those that nobody has read yet, or that changed since.
   */
  async wrongOnes(
    folder: string,
    files: readonly NamedDigest[],
    digest: (folder: string, names: readonly string[]) => Promise<readonly string[]>,
  ): Promise<readonly WrongFile[]> {
    const unread: { readonly file: NamedDigest; readonly stamp: string }[] = [];
    for (const file of files) {
      // Taken before the file is read: what is written meanwhile makes another stamp.
      const stamp = await stampOf(join(folder, file.name));
      const seen = this.#seen.get(join(folder, file.name));
      if (seen?.stamp !== stamp || seen.sha256 !== file.sha256) unread.push({ file, stamp });
    }
    if (unread.length === 0) return [];
    const names = unread.map(({ file }) => file.name);
    const digests = await digest(folder, names);
    return unread.flatMap(({ file: { name, sha256: expected }, stamp }, index) => {
      const path = join(folder, name);
      const found = digests[index] ?? '';
      if (found !== expected) return [{ path, expected, found }];
      this.#seen.set(path, { stamp, sha256: expected });
      return [];
    });
  }
}

async function stampOf(path: string): Promise<string> {
  const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
  return [dev, ino, size, mtimeNs, ctimeNs].join(':');
}
