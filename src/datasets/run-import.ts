import { readdirSync, rmSync } from 'node:fs';
import { chmod, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder, syncFolder } from '../base/atomic-file.ts';
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
  const { id, source, format, choices, folder, progress, signal } = options;
  const temporary = await mkdtemp(join(folder, `${temporaryPrefix}${id}-`));
  try {
    const written = await options.tasks.importSource(
      { id, source, format, choices, folder: temporary },
      { progress, signal },
    );
    signal.throwIfAborted();
    if (!options.validateOnly) {
      // What stands there is no dataset: one that the daemon knows is never imported over.
      await rm(join(folder, id), { recursive: true, force: true });
      await chmod(temporary, 0o750);
      await rename(temporary, join(folder, id));
      syncFolder(folder);
    }
    return written;
  } finally {
    // An aborted task may still be in the middle of a write, which makes the folder not empty.
    await rm(temporary, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** Makes the folder of datasets and removes what killed imports left in it; answers their names. */
export function prepareFolder(folder: string): string[] {
  makeFolder(folder);
  const left = readdirSync(folder).filter((name) => name.startsWith(temporaryPrefix));
  for (const name of left) rmSync(join(folder, name), { recursive: true, force: true });
  return left;
}
