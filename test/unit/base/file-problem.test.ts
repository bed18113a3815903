import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { fileProblem } from '../../../src/base/file-problem.ts';

test.each([
  ['/nowhere/job.yaml', 'there is no such file or folder'],
  [tmpdir(), 'it is a folder, not a file'],
  ['/etc/passwd/job.yaml', 'a part of its path is a file, not a folder'],
])('%s: %s', (path, expected) => {
  let found = '';
  try {
    readFileSync(path);
  } catch (error) {
    found = fileProblem(error);
  }
  expect(found).toBe(expected);
});

test('what is not known is told as it is', () => {
  expect(fileProblem(new Error('it is odd'))).toBe('it is odd');
});
