import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { repository } from '../support/daemon.ts';

/**
 * Memory that the kernel refuses to a native thread is an error with a code. It is refused here by
 * a limit on the address space, which `prlimit` (util-linux) sets once the process runs.
 */

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gnnd-memory-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** One row of zeros that is `dim` floats wide. */
function wideNpy(dim: number): string {
  const path = join(folder, 'wide.npy');
  const dict = `{'descr': '<f4', 'fortran_order': False, 'shape': (1, ${dim}), }`;
  const header = `\x93NUMPY\x01\x00v\x00${dict.padEnd(117)}\n`;
  writeFileSync(path, Buffer.concat([Buffer.from(header, 'latin1'), Buffer.alloc(4 * dim)]));
  return path;
}

const script = `
const core = require(process.env.ADDON);
const { execFileSync } = require('node:child_process');
const { readFileSync } = require('node:fs');
const status = readFileSync('/proc/self/status', 'utf8');
const bytes = Number(/VmSize:\\s+(\\d+)/.exec(status)[1]) * 1024 + (192 << 20);
execFileSync('prlimit', ['--pid', String(process.pid), '--as=' + bytes]);
core.datasetStandardize(process.env.INPUT, process.env.INPUT + '.out', '').then(
  () => console.log('done'),
  (error) => console.log(error.code + ' ' + error.message),
);
`;

test('a native thread that gets no memory rejects with a code, and the process lives', async () => {
  const addon = join(repository, 'build/native/gnnd_core.node');
  const env = { ...process.env, ADDON: addon, INPUT: wideNpy(20_000_000) };
  const child = spawn(process.execPath, ['-e', script], { env });
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect(errors).toBe('');
  expect(output).toMatch(/^SHM_ALLOCATION_FAILED out of memory/);
});
