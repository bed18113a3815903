import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** What a test file leaves behind is ended after its tests: the latest first. */

const left: (() => unknown)[] = [];

async function endAll(): Promise<void> {
  for (const end of left.splice(0).reverse()) await end();
}

// Tests import this, and so does set-up outside of any test, which ends what it starts itself.
if (process.env['VITEST_WORKER_ID'] !== undefined) afterAll(endAll);

/** Has `end` called after the tests of the file that runs. */
export function atEnd(end: () => unknown): void {
  left.push(end);
}

/** A folder for the tests of a file: called at its top, so that it is removed after them. */
export function temporaryFolder(prefix: string): string {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  // Once more: files of unit tests share one instance of this module.
  afterAll(endAll);
  return folder;
}
