import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll } from 'vitest';
import { temporaryFolder } from './at-end.ts';
import { repository, TestDaemon } from './daemon.ts';
import { findPython, runPython } from './python.ts';
import { skipped } from './skipped.ts';

/** Our Python package, built and installed as a user would, without an index. */

/** Folder of the package's own tests, which Python runs. */
export const packageTests = join(repository, 'test', 'e2e', 'python', 'package');

const wheels = join(repository, '.cache', 'python-wheels');
const geometric = join(repository, '.cache', 'pyg');
const extras = join(repository, '.cache', 'python-extras');

export interface InstalledPackage {
  /** Python of a virtual environment with the package, grpcio, numpy and protobuf only. */
  readonly python: string;
  /** For PYTHONPATH: torch, torch_geometric and other libraries; null where set-up lacks one. */
  readonly libraries: string | null;
}

/** Makes a virtual environment in `folder`. Null where set-up could not get the wheels. */
export async function installPackage(folder: string): Promise<InstalledPackage | null> {
  const maker = await findPython('torch');
  if (maker === null || !existsSync(wheels)) return null;
  await runPython(maker, ['-m', 'venv', '--without-pip', folder]);
  const python = join(folder, 'bin', 'python');
  const source = join(repository, 'src', 'python');
  const install = ['install', '--quiet', '--no-index', '--find-links', wheels, source];
  await runPython(maker, ['-m', 'pip', '--python', python, ...install]);
  return { python, libraries: await libraryPath(maker) };
}

/**
 * A Python with our package and what a file of requirements beside its tests names, from PyPI; made
 * once in `.cache/NAME`. Null without an index.
 */
export async function pythonWith(name: string, requirements: string): Promise<string | null> {
  const folder = join(repository, '.cache', name);
  const python = join(folder, 'bin', 'python');
  const maker = await findPython('torch');
  if (maker === null) return null;
  const source = join(repository, 'src', 'python');
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
  try {
    if (!existsSync(python)) await runPython(maker, ['-m', 'venv', folder]);
    await runPython(python, [...pip, '-r', join(packageTests, requirements)]);
    // Again each time: it is what is tested.
    await runPython(python, [...pip, '--force-reinstall', '--no-deps', source]);
    await runPython(python, [...pip, source]);
    return python;
  } catch {
    return null;
  }
}

async function libraryPath(maker: string): Promise<string | null> {
  if (![geometric, extras].every(existsSync)) return null;
  const torch = await runPython(maker, ['-c', 'import torch; print(torch.__file__)']);
  return [extras, geometric, dirname(dirname(torch.trim()))].join(':');
}

interface Skipping {
  readonly skip: (note?: string) => never;
}

/** Runs files of the package's unit tests; rejects with all it said when one fails. */
type UnitTests = (
  context: Skipping,
  modules: readonly string[],
  options?: { readonly withLibraries: boolean },
) => Promise<void>;

/** The package in a clean environment, and a daemon, for the tests of one file. */
export function unitTests(): UnitTests {
  const scratch = temporaryFolder('gnnd-package-');
  let daemon: TestDaemon;
  let installed: InstalledPackage | null;
  beforeAll(async () => {
    [daemon, installed] = await Promise.all([
      TestDaemon.start(),
      installPackage(join(scratch, 'venv')),
    ]);
  });
  return async ({ skip }, modules, { withLibraries } = { withLibraries: false }) => {
    if (installed === null) {
      skipped('the Python package', 'no .cache/python-wheels');
      return skip('no wheels');
    }
    const { python, libraries } = installed;
    if (withLibraries && libraries === null) {
      skipped('the Python package with libraries', 'no .cache/python-extras');
      return skip('no libraries');
    }
    const flags = ['-W', 'ignore::DeprecationWarning', '-m', 'unittest', '-b'];
    await runPython(python, [...flags, ...modules], {
      GNND_ADDRESS: daemon.address,
      GNND_COMMAND: `${process.execPath} ${join(repository, 'dist', 'main.js')}`,
      GNND_READER: join(repository, 'build', 'native', 'gnnd_reader.so'),
      CORA: join(repository, 'test', 'fixtures', 'cora.npz'),
      PYTHONPATH: [packageTests, ...(withLibraries ? [libraries ?? ''] : [])].join(':'),
      PYTHONPYCACHEPREFIX: join(repository, '.cache', 'python-bytecode'),
    });
  };
}
