import { readdirSync, rmSync } from 'node:fs';
import { chmod, mkdtemp, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { makeFolder, syncFolder } from '../base/atomic-file.ts';
import { GnndError } from '../base/errors.ts';
import { readWritten } from './adopt.ts';
import type { DataTasks, SourceImport, TaskWatch } from './data-tasks.ts';
import type { DatasetWritten } from './dataset-writer.ts';

const temporaryPrefix = '.tmp-';

export interface ImportOptions extends Omit<SourceImport, 'folder'>, TaskWatch {
  /** Where datasets live; the dataset becomes its subfolder `id`. */
  readonly folder: string;
  /** Do everything but keep the result. */
  readonly validateOnly: boolean;
  readonly tasks: DataTasks;
}

/**
 * Has the dataset made beside its place and moves it there: a dataset's folder is whole or absent,
 * also after a crash. Throws ImportFailure for what is wrong with the source.
 */
export async function runImport(options: ImportOptions): Promise<DatasetWritten> {
  const { id, source, format, root, choices, folder, progress, signal } = options;
  const temporary = await mkdtemp(join(folder, `${temporaryPrefix}${id}-`));
  try {
    const written = await options.tasks.importSource(
      { id, source, format, root, choices, folder: temporary },
      { progress, signal },
    );
    signal.throwIfAborted();
    if (!options.validateOnly) {
      await putInPlace(temporary, join(folder, id), written.digest);
    }
    return written;
  } finally {
    // An aborted task may still be in the middle of a write, which makes the folder not empty.
    await rm(temporary, { recursive: true, force: true, maxRetries: 10 });
  }
}

/**
 * A dataset that stands there is none of this daemon's, which imports over none that it knows: it
 * is another daemon's. The same one serves both, another one stays.
 */
async function putInPlace(made: string, place: string, digest: string): Promise<void> {
  const found = readWritten(place);
  if (found?.digest === digest) return;
  if (found !== null) {
    const message =
      `${place} has another dataset, of a daemon that shares datasets_dir: import under another ` +
      'id, or remove that folder if no daemon uses it';
    throw new GnndError('DATASET_EXISTS', message);
  }
  await rm(place, { recursive: true, force: true });
  await chmod(made, 0o750);
  await rename(made, place);
  syncFolder(dirname(place));
}

/**
 * Makes the folder of datasets and removes what killed imports left in it, if nobody else imports
 * there; answers their names.
 */
export function prepareFolder(folder: string, isAlone: boolean): string[] {
  makeFolder(folder);
  if (!isAlone) return [];
  const left = readdirSync(folder).filter((name) => name.startsWith(temporaryPrefix));
  for (const name of left) rmSync(join(folder, name), { recursive: true, force: true });
  return left;
}
