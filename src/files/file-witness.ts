import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, systemClock } from '../base/clock.ts';

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

/** A file that was read, and what it held. */
interface Seen {
  readonly stamp: string;
  readonly sha256: string;
  readonly atMs: number;
}

/**
 * How long times vouch for a file. What rots below the file system changes no times, so that files
 * are read again now and then; a day bounds what that costs to a reading a day.
 */
export const vouchMs = 24 * 3_600_000;

/**
 * Which files hold what they are to hold. A file is read once a day; in between its device, inode,
 * size and times vouch for it, so whoever asks again costs a `stat` for each file. The time of the
 * last change is the kernel's and cannot be set back as that of the last writing can.
 */
export class FileWitness {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** By path. */
  readonly #seen = new Map<string, Seen>();

  constructor(clock: Pick<Clock, 'monotonicMs'> = systemClock) {
    this.#clock = clock;
  }

  /** Files that were just digested by whoever wrote them. */
  async remember(folder: string, files: readonly NamedDigest[]): Promise<void> {
    for (const { name, sha256 } of files) {
      const path = join(folder, name);
      this.#see(path, await stampOf(path), sha256);
    }
  }

  #see(path: string, stamp: string, sha256: string): void {
    this.#seen.set(path, { stamp, sha256, atMs: this.#clock.monotonicMs() });
  }

  /** Changes the times of a file by `touch`, after which it is as well known as before. */
  async touching(path: string, touch: (path: string) => void): Promise<void> {
    const seen = this.#seen.get(path);
    const isKnown = seen !== undefined && seen.stamp === (await stampOf(path));
    touch(path);
    if (isKnown) this.#seen.set(path, { ...seen, stamp: await stampOf(path) });
  }

  /**
   * The files that hold something else, in the order of `files`. `digest` answers SHA-256 in hex of
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
      const isFresh = seen !== undefined && this.#clock.monotonicMs() - seen.atMs < vouchMs;
      if (isFresh && seen.stamp === stamp && seen.sha256 === file.sha256) continue;
      unread.push({ file, stamp });
    }
    if (unread.length === 0) return [];
    const names = unread.map(({ file }) => file.name);
    const digests = await digest(folder, names);
    return unread.flatMap(({ file: { name, sha256: expected }, stamp }, index) => {
      const path = join(folder, name);
      const found = digests[index] ?? '';
      if (found !== expected) return [{ path, expected, found }];
      this.#see(path, stamp, expected);
      return [];
    });
  }
}

async function stampOf(path: string): Promise<string> {
  const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
  return [dev, ino, size, mtimeNs, ctimeNs].join(':');
}
