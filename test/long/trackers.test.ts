import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/at-end.ts';
import { repository } from '../support/daemon.ts';
import { runPython } from '../support/python.ts';
import { packageTests, pythonWith } from '../support/python-package.ts';
import { skipped } from '../support/skipped.ts';

/** Jobs in a real MLflow, a server on this host, and in Weights & Biases, which is offline. */

const scratch = temporaryFolder('gnnd-trackers-');

test('MLflow and W&B store what jobs told, and how they ended', async (context) => {
  const python = await pythonWith('trackers', 'trackers.txt');
  if (python === null) return context.skip(skipped('trackers', 'no mlflow and wandb from PyPI'));
  const script = ['-W', 'ignore', '-m', 'unittest', '-b', 'test_trackers'];
  const said = await runPython(python, script, {
    GNND_COMMAND: `${process.execPath} ${join(repository, 'dist', 'main.js')}`,
    CORA: join(repository, 'test', 'fixtures', 'cora.npz'),
    PYTHONPATH: packageTests,
    PYTHONPYCACHEPREFIX: join(repository, '.cache', 'python-bytecode'),
    // Nothing goes out, and no settings of a user come in.
    MLFLOW_DISABLE_TELEMETRY: 'true',
    WANDB_ERROR_REPORTING: 'false',
    WANDB_MODE: 'offline',
    HOME: scratch,
    TMPDIR: scratch,
  });
  expect(said).not.toContain('skipped');
}, 900_000);
