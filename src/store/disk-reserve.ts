import { closeSync, mkdirSync, openSync, statfsSync, writeSync } from 'node:fs';
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

/**
 * Reserves `bytes` in the file `path`. A disk that is already full begins released; one on which
 * no file can be made for another reason (a limit) has none and refuses nothing. Never throws.
 */
export function diskReserve(path: string, bytes: number, log: Log): DiskReserve {
  let state: 'WHOLE' | 'RELEASED' | 'NONE' = 'NONE';
  // Writes zeros: Node has no fallocate, and a hole reserves nothing.
  const write = (count: number): void => {
    mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
    const fd = openSync(path, 'w', 0o640);
    try {
      for (let at = 0; at < count; ) {
        at += writeSync(fd, chunk, 0, Math.min(chunk.length, count - at), at);
      }
    } finally {
      closeSync(fd);
    }
  };
  /** Whether it is whole now. */
  const take = (): boolean => {
    try {
      write(bytes);
      state = 'WHOLE';
      return true;
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? '';
      state = ['ENOSPC', 'EDQUOT'].includes(code) ? 'RELEASED' : 'NONE';
      log.warn('store.reserve_failed', { path, error: messageOf(error) });
      giveUp();
      return false;
    }
  };
  const giveUp = (): boolean => {
    try {
      write(0);
      return true;
    } catch {
      return false;
    }
  };
  take();
  return {
    get isReleased() {
      return state === 'RELEASED';
    },
    release: () => {
      if (state !== 'WHOLE' || !giveUp()) return false;
      state = 'RELEASED';
      log.warn('store.reserve_released', { path, bytes });
      return true;
    },
    restore: () => {
      if (state !== 'RELEASED' || freeBytes(path) < 2 * bytes) return;
      if (take()) log.info('store.reserve_restored', { path, bytes });
    },
  };
}

/** Free bytes for users other than root; 0 where they cannot be told. */
function freeBytes(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
