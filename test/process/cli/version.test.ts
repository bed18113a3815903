import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repository } from '../../support/daemon.ts';

/** Scripts ask for the version again and again, and loading all of gnnctl takes half a second. */

/** Modules of ours and of packages that Node loads, as it says itself. */
function loaded(...args: readonly string[]): readonly string[] {
  const env = { ...process.env, NODE_DEBUG: 'esm' };
  const command = [join(repository, 'dist', 'cli', 'main.js'), ...args];
  const { status, stderr } = spawnSync(process.execPath, command, { env, encoding: 'utf8' });
  expect(status).toBe(0);
  return [...new Set(stderr.match(/file:\/\/[^ ']*\.js/g) ?? [])];
}

test('gnnctl --version loads few modules, and a command loads them all', () => {
  const few = loaded('--version');
  expect(few.length).toBeGreaterThan(1);
  expect(few.length, few.join('\n')).toBeLessThan(8);
  expect(loaded('version').length).toBeGreaterThan(100);
});
