import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { repository } from '../support/daemon.ts';
import { findPython, runPython } from '../support/python.ts';
import { skipped } from '../support/skipped.ts';

/** Jobs and searches on a real Ray cluster of several nodes, all of them on this host. */

const scratch = mkdtempSync(join(tmpdir(), 'gnnd-ray-'));
const package_ = join(repository, 'test', 'e2e', 'python', 'package');

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** A Python with ray, optuna and our package; made once in .cache. Null without an index. */
async function rayPython(): Promise<string | null> {
  const folder = join(repository, '.cache', 'ray');
  const python = join(folder, 'bin', 'python');
  const maker = await findPython('torch');
  if (maker === null) return null;
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
  try {
    if (!existsSync(python)) await runPython(maker, ['-m', 'venv', folder]);
    await runPython(python, [...pip, '-r', join(package_, 'ray.txt')]);
    // Again each time: it is what is tested.
    await runPython(python, [...pip, '--force-reinstall', '--no-deps', sourceOfPackage]);
    await runPython(python, [...pip, sourceOfPackage]);
    return python;
  } catch {
    return null;
  }
}

const sourceOfPackage = join(repository, 'src', 'python');

test('jobs on lost nodes go on elsewhere; searches stop what is behind', async (context) => {
  const python = await rayPython();
  if (python === null) return context.skip(skipped('jobs on a Ray cluster', 'no ray from PyPI'));
  const script = ['-W', 'ignore', '-m', 'unittest', '-b', 'test_ray'];
  const said = await runPython(python, script, {
    GNND_COMMAND: `${process.execPath} ${join(repository, 'dist', 'main.js')}`,
    CORA: join(repository, 'test', 'fixtures', 'cora.npz'),
    PYTHONPATH: package_,
    PYTHONPYCACHEPREFIX: join(repository, '.cache', 'python-bytecode'),
    // Workers are nice by default, and a daemon in one would starve beside other tests.
    RAY_worker_niceness: '0',
    RAY_TRAIN_V2_ENABLED: '1',
    TMPDIR: scratch,
  });
  expect(said).not.toContain('skipped');
}, 900_000);
