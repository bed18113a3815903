import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { importedVariable, repository, TestDaemon } from './daemon.ts';

/** Before the tests of a run that train: a daemon imports the citation graphs, once for all. */
export async function setup(): Promise<() => void> {
  const daemon = await TestDaemon.start();
  try {
    for (const id of ['cora', 'citeseer']) {
      await daemon.import(id, join(repository, 'test', 'fixtures', `${id}.npz`));
    }
  } finally {
    await daemon.stop(true);
  }
  process.env[importedVariable] = join(daemon.folder, 'state', 'datasets');
  return () => rmSync(daemon.folder, { recursive: true, force: true });
}
