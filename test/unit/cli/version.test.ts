import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runCli } from '../../../src/cli/program.ts';
import { program as gnnd } from '../../../src/serve.ts';
import { createTestIo } from './test-io.ts';

const { version } = JSON.parse(readFileSync('package.json', 'utf8'));

test.each(['--version', '-V'])('gnnctl %s prints the version, without a daemon', async (flag) => {
  const io = createTestIo({});
  const exitCode = await runCli(['--address', 'unix:/nowhere/gnnd.sock', flag], io.io);
  expect([exitCode, io.stdout(), io.stderr()]).toEqual([0, `${version}\n`, '']);
});

test('gnnd has the same flags', () => {
  const flags = gnnd.options.map((option) => option.flags);
  expect([gnnd.version(), flags]).toEqual([version, ['-V, --version']]);
});
