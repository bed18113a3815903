import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { GnndError, messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { CheckMessage } from './check-worker.ts';
import type { Database } from './database.ts';
import { quickCheck } from './schema.ts';

/**
 * After a stop that was not clean the store's file is read to its end. That takes as long as the
 * file is large, so a large one is read by a thread while the daemon works: what it finds ends the
 * daemon, and the mark that it leaves makes the next start read the file first.
 */

export interface FileCheck {
  /** True when the file has been read and is whole, or need not be read. */
  isDone(): boolean;
  /** Resolves when the thread has ended. */
  readonly ended: Promise<void>;
  /** Ends the thread, whatever it does. */
  stop(): void;
}

export interface FileCheckOptions {
  readonly path: string;
  readonly log: Log;
  /** Larger files are read by a thread. */
  readonly atOpenMaxBytes: number;
  /** Called when the thread found damage. */
  readonly onDamage: (error: GnndError) => void;
}

/** Some tenths of a second, from a disk that is not slow. */
export const checkAtOpenMaxBytes = 64 * 2 ** 20;

export const noCheck: FileCheck = {
  isDone: () => true,
  ended: Promise.resolve(),
  stop: () => {},
};

/** Throws STORE_CORRUPT when the file is small, or was found damaged before, and is damaged. */
export function checkAtOpen(
  database: Database,
  { path, log, atOpenMaxBytes }: Omit<FileCheckOptions, 'onDamage'>,
): 'CHECKED' | 'LATER' {
  const bytes = sizeOf(path) + sizeOf(`${path}-wal`);
  if (bytes > atOpenMaxBytes && !existsSync(markOf(path))) {
    log.info('store.check_later', { path, bytes });
    return 'LATER';
  }
  quickCheck(database, path);
  rmSync(markOf(path), { force: true });
  return 'CHECKED';
}

/** Reads the file by a thread of its own. */
export function checkInBackground({ path, log, onDamage }: FileCheckOptions): FileCheck {
  let isDone = false;
  const found = (message: CheckMessage) => {
    if (message.kind === 'WHOLE') {
      isDone = true;
      log.info('store.checked', { path, tables: message.tables });
      return;
    }
    const { problems } = message;
    try {
      writeFileSync(markOf(path), `${problems.join('\n')}\n`);
    } catch (error) {
      log.warn('store.mark_failed', { path, error: messageOf(error) });
    }
    onDamage(new GnndError('STORE_CORRUPT', `${path} is damaged: ${problems.join('; ')}`));
  };
  let stop = () => {};
  const ended = new Promise<void>((resolve) => {
    const worker = new Worker(workerPath(import.meta.url), { workerData: { path } });
    worker.unref();
    stop = () => void worker.terminate();
    worker.on('message', found);
    // A thread that cannot work proves nothing: the next start looks again.
    worker.on('error', (error) => log.warn('store.check_failed', { error: messageOf(error) }));
    worker.on('exit', () => resolve());
  });
  return { isDone: () => isDone, ended, stop: () => stop() };
}

/** Beside a store that a thread found to be damaged, as long as no start has looked itself. */
function markOf(path: string): string {
  return `${path}.damaged`;
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * Threads load plain JavaScript: Node 20 does not read TypeScript. Run from the sources (under the
 * test runner), the built worker is used.
 */
function workerPath(moduleUrl: string): string {
  const built = extname(fileURLToPath(moduleUrl)) === '.js';
  const relative = built ? './check-worker.js' : '../../dist/store/check-worker.js';
  const path = fileURLToPath(new URL(relative, moduleUrl));
  if (!existsSync(path)) throw new Error(`${path} is missing; run: npm run build`);
  return path;
}
