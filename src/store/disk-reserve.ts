import { closeSync, ftruncateSync, mkdirSync, openSync, statfsSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';

/**
 * A file that keeps a piece of the disk for the store: when the disk is full it is given up, so
 * that what running jobs have to record, and deletions that make room, still find some. New jobs
 * are refused until it is whole again.
 */
export interface DiskReserve {
  readonly isReleased: boolean;
  /** Gives it up; false when there is nothing to give. */
  release(): boolean;
  /** Takes it again, once the disk has twice as much. */
  restore(): void;
}

const chunk = Buffer.alloc(2 ** 20);

/** In the file `path`, of `bytes`. A disk that is full to begin with has it released. */
export function diskReserve(path: string, bytes: number, log: Log): DiskReserve {
  let isReleased = true;
  const withFile = (flags: string, work: (fd: number) => void): boolean => {
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
      const fd = openSync(path, flags, 0o640);
      try {
        work(fd);
        return true;
      } finally {
        closeSync(fd);
      }
    } catch (error) {
      log.debug('store.reserve_failed', { path, error: messageOf(error) });
      return false;
    }
  };
  // Not fallocate, which Node has not; and not a hole, which keeps nothing.
  const fill = (fd: number) => {
    ftruncateSync(fd, 0);
    for (let at = 0; at < bytes; at += chunk.length) {
      const part = chunk.subarray(0, Math.min(chunk.length, bytes - at));
      if (writeSync(fd, part, 0, part.length, at) < part.length)
        throw new Error('the disk is full');
    }
  };
  const empty = () => withFile('a', (fd) => ftruncateSync(fd, 0));
  const take = () => {
    isReleased = !withFile('a', fill);
    if (isReleased) empty();
  };
  take();
  return {
    get isReleased() {
      return isReleased;
    },
    release: () => {
      if (isReleased || !empty()) return false;
      isReleased = true;
      log.warn('store.reserve_released', { path, bytes });
      return true;
    },
    restore: () => {
      if (!isReleased || freeBytes(path) < 2 * bytes) return;
      take();
      if (!isReleased) log.info('store.reserve_restored', { path, bytes });
    },
  };
}

/** For who is not root. 0 where that cannot be told. */
function freeBytes(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
