import { closeSync, constants, lstatSync, type Stats, unlinkSync } from 'node:fs';
import { access, lstat, stat, unlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import { getSystemErrorMap } from 'node:util';
import { sleep, systemClock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { loadCore } from '../native/load.ts';

/**
 * A unix socket at a path that others want, too: other daemons at the same moment, people and
 * cleaners of folders later. Only the file that was made here is removed.
 */
export interface BoundSocket {
  /** Bound, and not listening yet. */
  readonly fd: number;
  /** Whether the path still leads to this socket. */
  isThere(): boolean;
  /** Removes its file, if it is still there. */
  remove(): void;
}

/** sun_path of Linux, less its final zero. */
const socketPathBytesMax = 107;

/**
 * Binds a socket with `mode`; one that nobody listens on any more is replaced, by one process at a
 * time. Throws what is in the way, with the code EADDRINUSE where it may go.
 */
export async function bindSocket(path: string, mode: number): Promise<BoundSocket> {
  if (Buffer.byteLength(path) > socketPathBytesMax) {
    throw new Error(`a socket's path has at most ${socketPathBytesMax} bytes`);
  }
  const leave = await enter(path);
  try {
    await clearStale(path);
    const fd = loadCore().hostBindSocket(path, mode);
    if (fd < 0) throw systemError(fd);
    const own = await lstat(path);
    const isThere = () => isSame(own, lookAt(path));
    const remove = () => {
      if (isThere()) unlinkSync(path);
    };
    return { fd, isThere, remove };
  } finally {
    leave();
  }
}

const enterMaxMs = 10_000;
const lookMs = 20;

/**
 * Waits until nobody else replaces the socket; the answered function lets the next one in. The lock
 * is a file that goes with who holds it: whoever has locked one that was removed meanwhile has
 * locked nothing.
 */
async function enter(path: string): Promise<() => void> {
  const lockPath = `${path}.lock`;
  const untilMs = systemClock.monotonicMs() + enterMaxMs;
  for (;;) {
    const fd = await lockOf(lockPath);
    if (fd !== null && (await isStillThere(fd, lockPath))) {
      return () => {
        unlinkSync(lockPath);
        closeSync(fd);
      };
    }
    if (fd !== null) closeSync(fd);
    if (systemClock.monotonicMs() > untilMs)
      throw inUse('another process is about to listen there');
    await sleep(lookMs);
  }
}

/** Null while others hold it. */
async function lockOf(path: string): Promise<number | null> {
  try {
    return loadCore().hostLock(path);
  } catch (error) {
    // Says so where nobody could make a socket there either.
    await access(dirname(path), constants.W_OK);
    throw inUse(messageOf(error));
  }
}

async function isStillThere(fd: number, path: string): Promise<boolean> {
  const [held, found] = await Promise.all([stat(`/proc/self/fd/${fd}`), orNull(lstat(path))]);
  return isSame(held, found);
}

/** Removes a socket file after a connect to it was refused, and nothing else. */
async function clearStale(path: string): Promise<void> {
  const stats = await orNull(lstat(path));
  if (stats === null) return;
  if (!stats.isSocket()) throw new Error('a file that is no socket is in the way');
  if (await isListening(path)) throw inUse('another process listens there');
  await orNull(unlink(path));
}

function isListening(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error) => {
      // So many wait to be taken that no more may.
      if (isErrno(error, 'EAGAIN')) resolve(true);
      else if (isErrno(error, 'ECONNREFUSED') || isErrno(error, 'ENOENT')) resolve(false);
      else reject(error);
    });
  });
}

/** Null where there is no file. */
async function orNull<T>(look: Promise<T>): Promise<T | null> {
  return await look.catch((error: unknown) => {
    if (isErrno(error, 'ENOENT')) return null;
    throw error;
  });
}

function lookAt(path: string): Stats | null {
  return lstatSync(path, { throwIfNoEntry: false }) ?? null;
}

function isSame(a: Stats, b: Stats | null): boolean {
  return b !== null && a.dev === b.dev && a.ino === b.ino;
}

function inUse(why: string): Error {
  return Object.assign(new Error(why), { code: 'EADDRINUSE' });
}

/** What the kernel answered, a negative number, as Node says it. */
function systemError(errno: number): Error {
  const [code, message] = getSystemErrorMap().get(errno) ?? ['EIO', `error ${errno}`];
  return Object.assign(new Error(`${code}: ${message}`), { code });
}

function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
