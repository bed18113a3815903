import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { repository, TestDaemon } from '../support/daemon.ts';
import { findPython } from '../support/python.ts';
import { skipped } from '../support/skipped.ts';

/** Benchmarks that call native functions: no type checks their options. */

const run = promisify(execFile);
const python = await findPython('torch');
let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ datasets: ['cora'] });
});

test('propagation beside torch.sparse is measured', async (context) => {
  if (python === null) return context.skip(skipped('a benchmark', 'there is no torch'));
  const folder = join(daemon.folder, 'state', 'datasets', 'cora');
  const options = ['--hops', '1', '--rounds', '1', '--threads', '1'];
  const { stdout } = await run('node', ['bench/propagate/run.mjs', folder, ...options], {
    cwd: repository,
    env: { ...process.env, GNND_PYTHON: python },
  });
  const [said, line = '{}'] = stdout.trim().split('\n');
  expect(said).toMatch(/times as fast/);
  const { timesTorch } = JSON.parse(line) as { timesTorch: number };
  expect(timesTorch).toBeGreaterThan(0);
});
