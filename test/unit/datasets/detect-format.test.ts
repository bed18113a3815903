import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import {
  createDetector,
  type Detection,
  detectBelow,
  detectFormat,
} from '../../../src/datasets/detect-format.ts';
import { createVirtualTime, settled } from '../../support/api-fakes.ts';
import { folderOf, makeFolder, pathGraph, zip } from './workbench.ts';

test('the format follows from what is there', async () => {
  const files = folderOf({ 'a.bin': zip({}) });
  expect(await detectFormat(folderOf(pathGraph), null)).toEqual({ kind: 'format', format: 'NPY' });
  expect(await detectFormat(folderOf({ 'nodes.csv.gz': '' }), null)).toEqual({
    kind: 'format',
    format: 'CSV',
  });
  expect(await detectFormat(join(files, 'a.bin'), null)).toEqual({ kind: 'format', format: 'NPZ' });
});

async function descriptionOf(path: string): Promise<string> {
  const detection = await detectFormat(path, null);
  return detection.kind === 'problem' ? detection.description : detection.format;
}

test('a source of no known format is described', async () => {
  const folder = folderOf({ 'notes.txt': 'hello' });
  const paths = [folder, join(folder, 'notes.txt'), join(folder, 'absent')];
  const descriptions = await Promise.all(paths.map(descriptionOf));
  expect(descriptions).toEqual([
    expect.stringContaining('is a folder of no format that is known (notes.txt): gnnd reads NPY'),
    expect.stringContaining('is a text: a graph is needed'),
    expect.stringContaining('cannot be read: there is no such file or folder'),
  ]);
});

test('a format that was asked for must fit a file or a folder', async () => {
  const folder = folderOf(pathGraph);
  expect(await detectFormat(folder, 'CSV')).toEqual({ kind: 'format', format: 'CSV' });
  expect(await detectFormat(folder, 'NPZ')).toEqual({
    kind: 'problem',
    description: 'the format NPZ is read from a file, and this is a folder',
  });
});

test.each([
  ['a FIFO', 'fifo'],
  ['a socket', 'socket'],
  ['a character device', '/dev/null'],
])('%s is refused by its type, and nothing waits for it', async (type, name) => {
  const folder = makeFolder();
  execFileSync('mkfifo', [join(folder, 'fifo')]);
  const server = createServer().listen(join(folder, 'socket'));
  await once(server, 'listening');
  const description = await descriptionOf(resolve(folder, name));
  server.close();
  expect(description).toBe(`is ${type}, expected a regular file or a folder`);
});

test('disks that do not answer are given up, and no more than two threads to them', async () => {
  const answers: ((detection: Detection) => void)[] = [];
  const time = createVirtualTime();
  const detect = createDetector(
    () => new Promise((answer) => answers.push(answer)),
    (delayMs, signal) => time.sleep(delayMs, signal),
  );
  const late = [detect('/a', null), detect('/b', null)];
  await time.advance(5000);
  for (const detection of await Promise.all(late)) {
    expect(detection).toMatchObject({ description: 'cannot be read: no answer within 5 s' });
  }
  expect(await detect('/c', null)).toMatchObject({
    description: 'cannot be looked at: 2 other sources have not answered yet',
  });
  const format = { kind: 'format', format: 'NPY' } as const;
  answers[0]?.(format);
  await settled();
  const fourth = detect('/d', null);
  answers[2]?.(format);
  expect(await fourth).toEqual(format);
});

test('below a root nothing else is looked at, also not by a link', async () => {
  const outside = folderOf(pathGraph);
  const root = makeFolder();
  mkdirSync(join(root, 'graph'));
  writeFileSync(join(root, 'graph', 'indptr.npy'), '');
  symlinkSync(outside, join(root, 'leads-out'));
  const look = detectBelow(root);
  expect(await look(join(root, 'graph'), null)).toEqual({ kind: 'format', format: 'NPY' });
  const description = `is not in ${root}, the daemon's sources_dir`;
  for (const source of [outside, join(root, 'leads-out'), join(root, '..'), root]) {
    expect(await look(source, null)).toEqual({ kind: 'problem', description });
  }
  expect(await look(join(root, 'none'), null)).toMatchObject({ kind: 'problem' });
  expect(await detectBelow('')(outside, null)).toEqual({ kind: 'format', format: 'NPY' });
});
