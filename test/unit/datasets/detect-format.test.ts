import { join } from 'node:path';
import { expect, test } from 'vitest';
import { detectFormat } from '../../../src/datasets/detect-format.ts';
import { folderOf, pathGraph, zip } from './workbench.ts';

test('the format follows from what is there', () => {
  const files = folderOf({ 'a.bin': zip({}), 'b.bin': Buffer.from([0x1f, 0x8b, 8]) });
  expect(detectFormat(folderOf(pathGraph), null)).toEqual({ kind: 'format', format: 'NPY' });
  expect(detectFormat(folderOf({ 'nodes.csv.gz': '' }), null)).toEqual({
    kind: 'format',
    format: 'CSV',
  });
  expect(detectFormat(join(files, 'a.bin'), null)).toEqual({ kind: 'format', format: 'NPZ' });
  expect(detectFormat(join(files, 'b.bin'), null)).toEqual({ kind: 'format', format: 'NPM_DEPS' });
});

test('a source of no known format is described', () => {
  const folder = folderOf({ 'notes.txt': 'hello' });
  const descriptions = [folder, join(folder, 'notes.txt'), join(folder, 'absent')].map((path) => {
    const detection = detectFormat(path, null);
    return detection.kind === 'problem' ? detection.description : detection.format;
  });
  expect(descriptions).toEqual([
    'the folder has no indptr.npy (format NPY) or nodes.csv and edges.csv (format CSV)',
    'the file is not an .npz file (format NPZ) or the .tgz of an npm package (format NPM_DEPS)',
    expect.stringContaining('cannot be read: ENOENT'),
  ]);
});

test('a format that was asked for must fit a file or a folder', () => {
  const folder = folderOf(pathGraph);
  expect(detectFormat(folder, 'CSV')).toEqual({ kind: 'format', format: 'CSV' });
  expect(detectFormat(folder, 'NPZ')).toEqual({
    kind: 'problem',
    description: 'the format NPZ is read from a file, and this is a folder',
  });
});
