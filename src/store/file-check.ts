import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { GnndError, messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { type Pool, poolTask } from '../pool/pool.ts';
import { checkFile, type FileFindings } from './check-file.ts';
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
  /** Resolves when the thread has read the file, or will not. */
  readonly ended: Promise<void>;
  /** Ends the thread, whatever it does. */
  stop(): void;
}

export interface FileCheckOptions {
  readonly path: string;
  readonly log: Log;
  /** Larger files are read by a thread. */
  readonly atOpenMaxBytes: number;
  readonly pool: Pool;
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
  { path, log, atOpenMaxBytes }: Omit<FileCheckOptions, 'onDamage' | 'pool'>,
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

const checking = poolTask(import.meta.url, './check-file.ts', 'LONG', checkFile);

/** Reads the file on a thread. */
export function checkInBackground({ path, log, pool, onDamage }: FileCheckOptions): FileCheck {
  let isDone = false;
  const found = (message: FileFindings) => {
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
  const stopping = new AbortController();
  const ended = pool.run(checking, path, stopping.signal).then(found, (error: unknown) => {
    if (stopping.signal.aborted) return;
    // A thread that cannot work proves nothing: the next start looks again.
    log.warn('store.check_failed', { error: messageOf(error) });
  });
  return { isDone: () => isDone, ended, stop: () => stopping.abort() };
}

/** Path of the mark beside a store that a thread found damaged, until a start has looked itself. */
function markOf(path: string): string {
  return `${path}.damaged`;
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
