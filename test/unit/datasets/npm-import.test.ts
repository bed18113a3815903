import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { featuresOf } from '../../../src/datasets/npm-names.ts';
import { madeUpArchive, madeUpNames } from './made-up-npm.ts';
import { folderOf, linesOf, npmArchive, tar, tryImport } from './workbench.ts';

function archiveFile(content: Uint8Array): string {
  return join(folderOf({ 'package.tgz': content }), 'package.tgz');
}

test('a made-up archive becomes the graph worked out by hand', async () => {
  const imported = await tryImport('NPM_DEPS', archiveFile(madeUpArchive()));
  expect(imported.manifest).toMatchObject({
    num_nodes: 10,
    num_edges: 18,
    num_features: 128,
    num_classes: 2,
    undirected: true,
    split: { train: 1, val: 3, test: 0 },
    class_names: ['gulp', 'react'],
  });
  expect(readFileSync(join(imported.folder, 'names.txt'), 'utf8')).toBe(
    madeUpNames.map((name) => `${name}\n`).join(''),
  );
  expect(imported.numbers('indptr.npy')).toEqual([0, 1, 2, 3, 6, 8, 11, 13, 16, 18, 18]);
  expect(imported.numbers('indices.npy')).toEqual([
    ...[5, 7, 6],
    ...[4, 5, 8],
    ...[3, 7],
    ...[0, 3, 6],
    ...[2, 5],
    ...[1, 4, 8],
    ...[3, 7],
  ]);
  expect(imported.numbers('labels.npy')).toEqual([-1, -1, 0, -1, 0, 0, -1, -1, 1, -1]);
  expect(imported.numbers('train.npy')).toEqual([2]);
  expect(imported.numbers('val.npy')).toEqual([4, 5, 8]);
  const features = featuresOf(madeUpNames, ['gulp', 'react']);
  expect(imported.numbers('features.npy')).toEqual([...features]);
});

test('files that are not lists of names are named', async () => {
  const archive = npmArchive(
    { good: ['a'], object: { a: 1 }, mixed: ['a', 1], accent: ['caf\u00e9'], line: ['a\nb'] },
    { broken: undefined },
  );
  expect(await linesOf('NPM_DEPS', archiveFile(archive))).toEqual([
    'package.tgz/dependents.tgz/object.json: is not a JSON array of package names',
    'package.tgz/dependents.tgz/mixed.json: is not a JSON array of package names',
    'package.tgz/dependents.tgz/accent.json: has the name "caf\u00e9", expected printable ASCII',
    'package.tgz/dependents.tgz/line.json: has the name "a\\nb", expected printable ASCII',
    expect.stringContaining('package.tgz/devDependents.tgz/broken.json: is not JSON'),
  ]);
});

test('an archive without the two members is refused', async () => {
  const other = gzipSync(tar([['package/package.json', '{}']]));
  expect(await linesOf('NPM_DEPS', archiveFile(other))).toEqual([
    'package.tgz: has no member package/dependents.tgz',
    'package.tgz: has no member package/devDependents.tgz',
  ]);
});

test('a member that is no list is refused', async () => {
  const inner = gzipSync(tar([['dependents/readme.md', 'hello']]));
  const archive = gzipSync(tar([['package/dependents.tgz', inner]]));
  expect(await linesOf('NPM_DEPS', archiveFile(archive))).toEqual([
    'package.tgz/dependents.tgz: has the member "dependents/readme.md", ' +
      'expected dependents/*.json',
  ]);
});

test('a truncated or damaged archive is refused', async () => {
  const whole = madeUpArchive();
  const cut = await linesOf('NPM_DEPS', archiveFile(whole.subarray(0, whole.length - 40)));
  expect(cut).toEqual([expect.stringContaining('package.tgz: is not a readable .tgz')]);
  const garbage = gzipSync(tar([['package/dependents.tgz', 'not gzip']]));
  const damaged = await linesOf('NPM_DEPS', archiveFile(garbage));
  expect(damaged).toEqual([expect.stringContaining('package.tgz: is not a readable .tgz')]);
  const noTar = await linesOf('NPM_DEPS', archiveFile(gzipSync('hello')));
  expect(noTar).toEqual([expect.stringContaining('package.tgz: is truncated')]);
});
