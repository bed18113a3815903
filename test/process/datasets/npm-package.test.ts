import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fetchNpmDeps, npmDepsPackage } from '../../../src/datasets/npm-package.ts';
import { folderOf, makeFolder, never } from '../../unit/datasets/workbench.ts';

/** A stand-in for npm, first on the PATH. */
function putNpm(script: string): void {
  const folder = folderOf({ npm: `#!/bin/sh\n${script}\n` });
  chmodSync(join(folder, 'npm'), 0o755);
  process.env['PATH'] = `${folder}:${originalPath}`;
}

let originalPath = '';
beforeEach(() => {
  originalPath = process.env['PATH'] ?? '';
});
afterEach(() => {
  process.env['PATH'] = originalPath;
});

test('a package with another content is refused, and not kept', async () => {
  putNpm(`echo hello > ${npmDepsPackage.fileName}`);
  const cache = join(makeFolder(), 'cache');
  await expect(fetchNpmDeps(cache, never)).rejects.toThrow(
    /npm pack dependent-packages@2\.2\.2 delivered [0-9a-f]{64}, expected SHA-256 31fcbe7a/,
  );
  expect(readdirSync(cache)).toEqual([]);
});

test('what npm says on failure is passed on', async () => {
  putNpm('echo "npm error network" >&2; exit 1');
  const cache = makeFolder();
  await expect(fetchNpmDeps(cache, never)).rejects.toThrow(
    'cannot fetch the npm package dependent-packages@2.2.2: npm error network',
  );
  expect(readdirSync(cache)).toEqual([]);
});

test('a missing npm is named', async () => {
  process.env['PATH'] = makeFolder();
  await expect(fetchNpmDeps(makeFolder(), never)).rejects.toThrow('spawn npm ENOENT');
});

test('a damaged copy and the rest of a killed fetch are replaced', async () => {
  putNpm('exit 1');
  const cache = makeFolder();
  mkdirSync(join(cache, '.tmp-npm-1'));
  writeFileSync(join(cache, npmDepsPackage.fileName), 'half');
  await expect(fetchNpmDeps(cache, never)).rejects.toThrow('cannot fetch');
  expect(readdirSync(cache)).toEqual([npmDepsPackage.fileName]);
});
