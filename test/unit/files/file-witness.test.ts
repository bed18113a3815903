import { mkdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { digestFiles } from '../../../src/executor/digest-files.ts';
import { FileWitness, vouchMs } from '../../../src/files/file-witness.ts';
import { temporaryFolder } from '../../support/at-end.ts';

/** Counts the files that are read. */

const root = temporaryFolder('gnnd-witness-');

async function folderOf(name: string) {
  const folder = join(root, name);
  mkdirSync(folder);
  writeFileSync(join(folder, 'a'), 'first');
  writeFileSync(join(folder, 'b'), 'second');
  const read: string[] = [];
  const digest = async (_: string, names: readonly string[]) => {
    read.push(...names);
    return await digestFiles({ folder, names, elements: false }, () => {});
  };
  const [a = '', b = ''] = await digestFiles(
    { folder, names: ['a', 'b'], elements: false },
    () => {},
  );
  const files = [
    { name: 'a', sha256: a },
    { name: 'b', sha256: b },
  ];
  const clock = { nowMs: 0 };
  const witness = new FileWitness({ monotonicMs: () => clock.nowMs });
  const wrong = async () => {
    const found = await witness.wrongOnes(folder, files, digest);
    return found.map(({ path }) => path);
  };
  return { folder, files, witness, clock, read, wrong };
}

it('reads each file once, and none that its writer has just digested', async () => {
  const { folder, files, witness, read, wrong } = await folderOf('once');
  expect(await wrong()).toEqual([]);
  expect(await wrong()).toEqual([]);
  expect(read).toEqual(['a', 'b']);
  const other = await folderOf('written');
  await other.witness.remember(other.folder, other.files);
  expect(await other.wrong()).toEqual([]);
  expect(other.read).toEqual([]);
  await witness.remember(folder, files);
  expect(await wrong()).toEqual([]);
  expect(read).toEqual(['a', 'b']);
});

it('finds a file of the same size and times that holds something else', async () => {
  const { folder, read, wrong } = await folderOf('changed');
  expect(await wrong()).toEqual([]);
  const { atime, mtime } = statSync(join(folder, 'b'));
  writeFileSync(join(folder, 'b'), 'sec0nd');
  utimesSync(join(folder, 'b'), atime, mtime);
  expect(await wrong()).toEqual([join(folder, 'b')]);
  // What is wrong is read again each time: somebody may have mended it.
  expect(await wrong()).toEqual([join(folder, 'b')]);
  expect(read).toEqual(['a', 'b', 'b', 'b']);
  writeFileSync(join(folder, 'b'), 'second');
  expect(await wrong()).toEqual([]);
});

it('rejects where a file is gone', async () => {
  const { folder, wrong } = await folderOf('gone');
  rmSync(join(folder, 'a'));
  await expect(wrong()).rejects.toThrow('ENOENT');
});

it('reads a file again after a day: what rots below the file system changes no time', async () => {
  const { clock, read, wrong } = await folderOf('rotten');
  expect(await wrong()).toEqual([]);
  clock.nowMs = vouchMs - 1;
  expect(await wrong()).toEqual([]);
  expect(read).toEqual(['a', 'b']);
  clock.nowMs = vouchMs;
  expect(await wrong()).toEqual([]);
  expect(read).toEqual(['a', 'b', 'a', 'b']);
});

it('knows a file as well as before after its times were set by us, and no better', async () => {
  const { folder, witness, read, wrong } = await folderOf('touched');
  expect(await wrong()).toEqual([]);
  const touch = (path: string) => utimesSync(path, 1, 1);
  await witness.touching(join(folder, 'a'), touch);
  expect(await wrong()).toEqual([]);
  expect(read).toEqual(['a', 'b']);
  writeFileSync(join(folder, 'a'), 'f1rst');
  await witness.touching(join(folder, 'a'), touch);
  expect(await wrong()).toEqual([join(folder, 'a')]);
});
