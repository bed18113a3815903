import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Clock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import { assertTransition } from '../../../src/jobs/job-state.ts';
import { openStore, type Store, type StoreOptions } from '../../../src/store/store.ts';

/** A folder that is removed when the test ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-store-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function temporaryStorePath(): string {
  return join(temporaryFolder(), 'store', 'gnnd.db');
}

/** What a crash at this moment would leave on the disk. */
export function crashImage(path: string): string {
  const copy = join(temporaryFolder(), 'gnnd.db');
  copyFileSync(path, copy);
  if (existsSync(`${path}-wal`)) copyFileSync(`${path}-wal`, `${copy}-wal`);
  return copy;
}

/** Every reading is one ms later than the one before. */
export function countingClock(): Clock {
  let nowMs = 1_700_000_000_000;
  return {
    wallMs: () => nowMs++,
    monotonicMs: () => nowMs++,
  };
}

export function storeOptions(changes: Partial<StoreOptions> = {}): StoreOptions {
  return {
    clock: countingClock(),
    log: createLog({ level: 'error', write: () => {} }),
    assertTransition,
    ...changes,
  };
}

/** Closed when the test ends. */
export function openTestStore(path: string, changes: Partial<StoreOptions> = {}): Store {
  const store = openStore(path, storeOptions(changes));
  onTestFinished(() => store.close());
  return store;
}
