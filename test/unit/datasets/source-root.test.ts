import { mkdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { fileChunks, openSource } from '../../../src/datasets/byte-streams.ts';
import { withinRoot } from '../../../src/datasets/source-root.ts';
import type { ImportFormat } from '../../../src/records/dataset-record.ts';
import { linesOf, makeFolder, never, pathGraph } from './workbench.ts';

/** Members of a source that lead out of sources_dir. */

const tables = { 'nodes.csv': 'id,label\n', 'edges.csv': 'source,target\n' };
const arrays = { ...pathGraph, 'names.txt': 'a\nb\nc\n', 'meta.json': '{}' };
const ogb = { 'raw/node-feat.csv.gz': '', 'split/time/train.csv.gz': '', 'mapping/a.csv.gz': '' };
const graphbolt = { 'metadata.yaml': 'graph: {}\n', 'data/features.npy': '', 'edges/b.csv': '' };

type Files = Readonly<Record<string, string | Uint8Array>>;

/** A source of each format and its members that are links: files, and folders of files. */
const sources: readonly (readonly [ImportFormat, Files, readonly string[]])[] = [
  ['NPY', arrays, ['features.npy']],
  ['NPY', arrays, ['indptr.npy', 'names.txt']],
  ['NPY', arrays, ['meta.json']],
  ['CSV', tables, ['edges.csv']],
  ['CSV', { ...tables, 'features.npy': arrays['features.npy'] }, ['features.npy', 'nodes.csv']],
  ['PARQUET', { 'nodes.parquet': '', 'edges.parquet': '' }, ['nodes.parquet']],
  ['PARQUET', { 'nodes.parquet/part-0.parquet': '' }, ['nodes.parquet/part-0.parquet']],
  ['OGB', ogb, ['raw']],
  ['OGB', ogb, ['mapping', 'split/time/train.csv.gz']],
  ['GRAPHBOLT', graphbolt, ['metadata.yaml']],
  ['GRAPHBOLT', graphbolt, ['data', 'edges/b.csv']],
];

/** A source below `allowed` whose `linked` members lie elsewhere. */
function sourceOf(files: Files, linked: readonly string[]) {
  const top = makeFolder();
  const [allowed, secret] = [join(top, 'allowed'), join(top, 'secret')];
  const source = join(allowed, 'graph');
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(source, name)), { recursive: true });
    writeFileSync(join(source, name), content);
  }
  linked.forEach((name, at) => {
    const place = join(secret, String(at));
    mkdirSync(secret, { recursive: true });
    renameSync(join(source, name), place);
    symlinkSync(place, join(source, name));
  });
  return { allowed, secret, source };
}

describe('a member of a source that leads out of sources_dir', () => {
  it.each(sources)('is refused by its name, as of %s', async (format, files, linked) => {
    const { allowed, source } = sourceOf(files, linked);
    const lines = await linesOf(format, source, null, { root: allowed });
    const what = `leads out of ${allowed}, the daemon's sources_dir: put a copy there`;
    expect(lines.sort()).toEqual(linked.map((name) => `${name}: ${what}`).sort());
  });

  it('by several links, or by those of a folder beside it, is refused likewise', async () => {
    const { allowed, secret, source } = sourceOf(arrays, ['features.npy']);
    renameSync(join(source, 'features.npy'), join(allowed, 'one'));
    symlinkSync('../one', join(source, 'features.npy'));
    mkdirSync(join(allowed, 'beside'));
    symlinkSync(secret, join(allowed, 'beside', 'deep'));
    symlinkSync('../beside', join(source, 'other'));
    const lines = await linesOf('NPY', source, null, { root: allowed });
    expect(lines.map((line) => line.split(':')[0]).sort()).toEqual(['features.npy', 'other/deep']);
  });

  it('is refused when it is opened, if it was another when it was looked at', async () => {
    const { allowed, secret, source } = sourceOf(arrays, ['features.npy']);
    const path = join(source, 'features.npy');
    unlinkSync(path);
    await withinRoot({ root: allowed, source, signal: never }, async () => {
      symlinkSync(join(secret, '0'), path);
      await expect(openSource(path)).rejects.toThrow('features.npy: leads out of');
      await expect(fileChunks(path).next()).rejects.toThrow('features.npy: leads out of');
      const file = await openSource(join(source, 'labels.npy'));
      await file.close();
    });
  });
});

test('links that stay in sources_dir, and rings of them, are followed', async () => {
  const { allowed, source } = sourceOf(arrays, []);
  mkdirSync(join(allowed, 'shared'));
  renameSync(join(source, 'features.npy'), join(allowed, 'shared', 'x.npy'));
  symlinkSync('../shared/x.npy', join(source, 'features.npy'));
  symlinkSync('..', join(source, 'ring'));
  symlinkSync('nowhere', join(source, 'dangling'));
  const read = async () => (await openSource(join(source, 'features.npy'))).close();
  await withinRoot({ root: allowed, source, signal: never }, read);
});
