import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/at-end.ts';
import { repository } from '../support/daemon.ts';
import { runPython } from '../support/python.ts';
import { packageTests, pythonWith } from '../support/python-package.ts';
import { skipped } from '../support/skipped.ts';

/** Jobs and searches on a real Ray cluster of several nodes, all of them on this host. */

const scratch = temporaryFolder('gnnd-ray-');

test('jobs on lost nodes go on elsewhere; searches stop what is behind', async (context) => {
  const python = await pythonWith('ray', 'ray.txt');
  if (python === null) return context.skip(skipped('jobs on a Ray cluster', 'no ray from PyPI'));
  const script = ['-W', 'ignore', '-m', 'unittest', '-b', 'test_ray'];
  const said = await runPython(python, script, {
    GNND_COMMAND: `${process.execPath} ${join(repository, 'dist', 'main.js')}`,
    CORA: join(repository, 'test', 'fixtures', 'cora.npz'),
    PYTHONPATH: packageTests,
    PYTHONPYCACHEPREFIX: join(repository, '.cache', 'python-bytecode'),
    // Workers are nice by default, and a daemon in one would starve beside other tests.
    RAY_worker_niceness: '0',
    RAY_TRAIN_V2_ENABLED: '1',
    TMPDIR: scratch,
  });
  expect(said).not.toContain('skipped');
}, 900_000);
