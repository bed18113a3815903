import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

/** faults.c for LD_PRELOAD, compiled for the test that asks; null where there is no compiler. */
export function faultsLibrary(): string | null {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-faults-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const source = fileURLToPath(new URL('./faults.c', import.meta.url));
  const library = join(folder, 'faults.so');
  const args = ['-O1', '-shared', '-fPIC', '-o', library, source, '-ldl'];
  const { error, status, stderr } = spawnSync('cc', args, { encoding: 'utf8' });
  if (error !== undefined) return null;
  if (status !== 0) throw new Error(stderr);
  return library;
}
