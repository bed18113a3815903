import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeFolder } from '../../../src/base/atomic-file.ts';

test('a folder is made with those above it, and once more without effect', () => {
  const root = mkdtempSync(join(tmpdir(), 'gnnd-folders-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  makeFolder(join(root, 'a', 'b'));
  makeFolder(join(root, 'a', 'b'));
  expect(statSync(join(root, 'a', 'b')).mode & 0o777).toBe(0o750);
  writeFileSync(join(root, 'file'), '');
  expect(() => makeFolder(join(root, 'file', 'c'))).toThrow(/ENOTDIR/);
});

test('a folder that the kernel refuses for ever is refused at once', () => {
  expect(() => makeFolder('/proc/1/x/store')).toThrow(/ENOENT|EACCES/);
});
