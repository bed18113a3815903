import { expect, test } from 'vitest';
import { readTar } from '../../../src/datasets/tar.ts';
import { tar } from './workbench.ts';

async function* chunksOf(bytes: Uint8Array, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function list(archive: Uint8Array, size: number): Promise<string[]> {
  const entries: string[] = [];
  for await (const entry of readTar(chunksOf(archive, size), 'x.tar')) {
    const content = Buffer.from(await entry.read()).toString();
    entries.push(`${entry.kind} ${entry.name} ${entry.bytes} ${content.slice(0, 5)}`);
  }
  return entries;
}

const archive = tar([
  ['d/', ''],
  ['d/ two words .json', '[]'],
  ['d/.json', 'x'.repeat(1500)],
  ['d/last', ''],
]);

test('lists folders and files with their content, however the stream is cut', async () => {
  for (const size of [7, 512, 1000, archive.length]) {
    expect(await list(archive, size)).toEqual([
      'folder d/ 0 ',
      'file d/ two words .json 2 []',
      'file d/.json 1500 xxxxx',
      'file d/last 0 ',
    ]);
  }
});

test('skips content that nobody reads, and streams it where asked', async () => {
  const streamed: number[] = [];
  for await (const entry of readTar(chunksOf(archive, 600), 'x.tar')) {
    if (entry.name !== 'd/.json') continue;
    for await (const part of entry.stream()) streamed.push(part.length);
  }
  expect(streamed.reduce((sum, length) => sum + length, 0)).toBe(1500);
  expect(streamed.length).toBeGreaterThan(1);
});

test('joins the prefix field', async () => {
  const long = tar([['name', '']]);
  long.write('some/folder', 345);
  const header = long.subarray(0, 512);
  header.write(' '.repeat(8), 148);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  expect(await list(long, 512)).toEqual(['file some/folder/name 0 ']);
});

test('says that an archive is truncated or damaged', async () => {
  await expect(list(archive.subarray(0, 700), 512)).rejects.toThrow('x.tar: is truncated');
  await expect(list(archive.subarray(0, 1024), 512)).rejects.toThrow('x.tar: is truncated');
  const changed = Buffer.from(archive);
  changed.write('e', 0);
  await expect(list(changed, 512)).rejects.toThrow('x.tar: is damaged: a header');
});
