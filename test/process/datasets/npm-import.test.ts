import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createImportPool, type ImportPool } from '../../../src/datasets/import-pool.ts';
import { fetchNpmDeps, npmDepsPackage, sha256OfFile } from '../../../src/datasets/npm-package.ts';
import { madeUpArchive } from '../../unit/datasets/made-up-npm.ts';
import { folderOf, never, tryImport } from '../../unit/datasets/workbench.ts';

const cacheFolder = fileURLToPath(new URL('../../../.cache', import.meta.url));
const cached = join(cacheFolder, npmDepsPackage.fileName);
const isFull = process.env['GNND_FULL'] === '1';
const isRealRun = isFull || existsSync(cached);

if (!isRealRun) {
  process.stderr.write(
    `SKIPPED: the import of the real npm package (no ${npmDepsPackage.fileName} in .cache; ` +
      'GNND_FULL=1 fetches it)\n',
  );
}

let pool: ImportPool;
beforeAll(() => {
  pool = createImportPool();
});
afterAll(() => pool.close());

test('threads give the same dataset as the caller alone', async () => {
  const source = join(folderOf({ 'package.tgz': madeUpArchive() }), 'package.tgz');
  const threads = await tryImport('NPM_DEPS', source, { pool });
  const alone = await tryImport('NPM_DEPS', source);
  expect(threads.manifest).toEqual(alone.manifest);
  expect(threads.digest).toBe(alone.digest);
});

test('edges of tables are sorted in a thread', async () => {
  const folder = folderOf({
    'nodes.csv': 'id,label,split,x\na,0,train,1\nb,1,val,2\n',
    'edges.csv': 'source,target,weight\na,b,3\n',
  });
  const threads = await tryImport('CSV', folder, { pool });
  expect(threads.manifest).toEqual((await tryImport('CSV', folder)).manifest);
});

test('a closed pool refuses and ends what it does', async () => {
  const closing = createImportPool();
  const names = new TextEncoder().encode('a-b');
  const rows = closing.npmFeatures({ names, numNames: 1, classNames: [] });
  const settled = rows.then(
    () => 'done',
    () => 'ended',
  );
  await closing.close();
  await closing.close();
  expect(['done', 'ended']).toContain(await settled);
});

describe.skipIf(!isRealRun)('the real package', () => {
  test('has the published counts and checksums', async () => {
    mkdirSync(cacheFolder, { recursive: true });
    const source = await fetchNpmDeps(cacheFolder, never);
    expect(await sha256OfFile(source, never)).toBe(npmDepsPackage.sha256);
    const { manifest } = await tryImport('NPM_DEPS', source, { pool });
    expect(manifest).toMatchObject({
      num_nodes: 304_031,
      num_edges: 2 * 2_330_240,
      num_features: 128,
      num_classes: 44,
      undirected: true,
      split: { train: 34_693, val: 11_493, test: 11_406 },
      source: 'npm package dependent-packages@2.2.2',
    });
    const sums = Object.entries(npmDepsPackage.arrays).map(([name, sum]) => [`${name}.npy`, sum]);
    expect(manifest.sha256).toEqual(Object.fromEntries(sums));
    expect(manifest.class_names?.slice(0, 3)).toEqual(['react', 'grunt', 'generator']);
  }, 120_000);
});
