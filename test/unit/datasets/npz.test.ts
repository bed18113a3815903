import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readZipDirectory, readZipMember } from '../../../src/datasets/npz.ts';
import { folderOf, never, zip } from './workbench.ts';

const content = { 'a.npy': Buffer.from('abc'.repeat(1000)), 'empty.npy': Buffer.alloc(0) };

async function read(archive: Uint8Array, name: string): Promise<string> {
  const path = join(folderOf({ 'graph.npz': archive }), 'graph.npz');
  const member = (await readZipDirectory(path)).get(name);
  if (member === undefined) throw new Error(`no member ${name}`);
  const chunks: Uint8Array[] = [];
  for await (const chunk of readZipMember(path, member, never)) chunks.push(chunk);
  return Buffer.concat(chunks).toString('latin1');
}

test('reads stored, deflated and ZIP64 members', async () => {
  for (const options of [{}, { stored: true }, { zip64: true }, { zip64: true, stored: true }]) {
    expect(await read(zip(content, options), 'a.npy')).toBe('abc'.repeat(1000));
    expect(await read(zip(content, options), 'empty.npy')).toBe('');
  }
});

test('finds the directory in front of a comment', async () => {
  const archive = zip(content);
  archive.writeUInt16LE(5, archive.length - 2);
  expect(await read(Buffer.concat([archive, Buffer.from('hello')]), 'a.npy')).toContain('abc');
});

test('names archive and member when a byte was changed', async () => {
  const archive = zip(content, { stored: true });
  archive.writeUInt8(0x7a, 40);
  await expect(read(archive, 'a.npy')).rejects.toThrow('graph.npz/a.npy: is damaged');
  const packed = zip(content);
  packed.fill(0xff, 37, 41);
  await expect(read(packed, 'a.npy')).rejects.toThrow('graph.npz/a.npy: is damaged');
});

test('refuses what is not a whole archive', async () => {
  const archive = zip(content);
  const cut = archive.subarray(0, archive.length - 10);
  await expect(read(cut, 'a.npy')).rejects.toThrow('graph.npz: is not a whole .npz file');
  await expect(read(Buffer.alloc(0), 'a.npy')).rejects.toThrow('graph.npz: is not a whole .npz');
  await expect(read(Buffer.alloc(500, 7), 'a.npy')).rejects.toThrow('graph.npz: is not a whole');
  const shifted = Buffer.concat([archive.subarray(20)]);
  await expect(read(shifted, 'a.npy')).rejects.toThrow('graph.npz: is damaged');
});

test('refuses members that are encrypted or packed in another way', async () => {
  const patched = (at: number, value: number) => {
    const archive = zip(content);
    const entry = archive.indexOf(Buffer.from([0x50, 0x4b, 0x01, 0x02]));
    archive.writeUInt16LE(value, entry + at);
    return archive;
  };
  await expect(read(patched(8, 1), 'a.npy')).rejects.toThrow('graph.npz/a.npy: is encrypted');
  await expect(read(patched(10, 14), 'a.npy')).rejects.toThrow('has compression method 14');
});
