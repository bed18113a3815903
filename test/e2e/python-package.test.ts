import { join } from 'node:path';
import { beforeAll, test } from 'vitest';
import { temporaryFolder } from '../support/at-end.ts';
import { repository, TestDaemon } from '../support/daemon.ts';
import { runPython } from '../support/python.ts';
import { type InstalledPackage, installPackage, packageTests } from '../support/python-package.ts';
import { skipped } from '../support/skipped.ts';

/** The Python package, built from its source and installed into a clean environment. */

const scratch = temporaryFolder('gnnd-package-');
let daemon: TestDaemon;
let installed: InstalledPackage | null;

beforeAll(async () => {
  [daemon, installed] = await Promise.all([
    TestDaemon.start(),
    installPackage(join(scratch, 'venv')),
  ]);
});

interface Skipping {
  readonly skip: (note?: string) => never;
}

/** Runs a file of unit tests; rejects with all it said when one fails. */
async function unittest(
  { skip }: Skipping,
  modules: readonly string[],
  { withLibraries = false } = {},
): Promise<void> {
  if (installed === null) {
    skipped('the Python package', 'no .cache/python-wheels');
    return skip('no wheels');
  }
  const { python, libraries } = installed;
  if (withLibraries && libraries === null) {
    skipped('the Python package with libraries', 'no .cache/python-extras');
    return skip('no libraries');
  }
  await runPython(
    python,
    ['-W', 'ignore::DeprecationWarning', '-m', 'unittest', '-b', ...modules],
    {
      GNND_ADDRESS: daemon.address,
      GNND_COMMAND: `${process.execPath} ${join(repository, 'dist', 'main.js')}`,
      CORA: join(repository, 'test', 'fixtures', 'cora.npz'),
      PYTHONPATH: [packageTests, ...(withLibraries ? [libraries ?? ''] : [])].join(':'),
      PYTHONPYCACHEPREFIX: join(repository, '.cache', 'python-bytecode'),
    },
  );
}

test('does without a daemon what needs none', (context) =>
  unittest(context, [
    'test_alone',
    'test_history',
    'test_identity',
    'test_mistakes',
    'test_values',
  ]));

test('imports, submits, watches, predicts and takes models away', (context) =>
  unittest(context, ['test_daemon']));

test('runs a job as an engine starts it, and hands jobs to engines', (context) =>
  unittest(context, ['test_fleet']));

test('starts a daemon that ends with its process', (context) => unittest(context, ['test_local']));

test('takes a graph of other libraries for what it is', (context) =>
  unittest(context, ['test_extras.Imports'], { withLibraries: true }));

test('takes graphs as people have them, and names what is wrong with them', (context) =>
  unittest(context, ['test_found'], { withLibraries: true }));

test('has one digest of a random graph, whichever way it comes in', (context) =>
  unittest(context, ['test_ways'], { withLibraries: true }));

test('gives torch_geometric a module that computes the logits that gnnd predicts', (context) =>
  unittest(context, ['test_extras.Modules'], { withLibraries: true }));

test('hands out modules that compute its logits on any graph: loops, repeats, one way', (context) =>
  unittest(context, ['test_exports'], { withLibraries: true }));

test('has each model in PyTorch and as ONNX, computing what gnnd predicts', (context) =>
  unittest(context, ['test_torch'], { withLibraries: true }));

test('does what its page and its notebook say', (context) =>
  unittest(context, ['test_pages'], { withLibraries: true }));
