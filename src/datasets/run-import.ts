import { readdirSync, rmSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { makeFolder, syncFolder } from '../base/atomic-file.ts';
import type { ImportFormat } from '../records/dataset-record.ts';
import {
  type ConvertedFormat,
  hasNoSplits,
  isConverted,
  OtherFormat,
} from './converted-formats.ts';
import type { DataTasks, SourceImport, TaskWatch } from './data-tasks.ts';
import type { DatasetWritten } from './dataset-writer.ts';

const temporaryPrefix = '.tmp-';

export interface ImportOptions
  extends Omit<SourceImport, 'folder' | 'origin' | 'format'>,
    TaskWatch {
  readonly format: ImportFormat;
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
  const { id, folder, signal } = options;
  const temporary = await mkdtemp(join(folder, `${temporaryPrefix}${id}-`));
  try {
    const written = await readInto(temporary, options);
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

/** Where the arrays of a converted source are made, of 1. */
const convertedShare = 0.5;

async function readInto(folder: string, options: ImportOptions): Promise<DatasetWritten> {
  const { id, source, choices, format, progress, signal, tasks } = options;
  const watch = { progress, signal };
  const asked = { id, choices, folder };
  if (isConverted(format)) return await readConverted(format, folder, options);
  try {
    return await tasks.importSource({ ...asked, source, format, origin: null }, watch);
  } catch (error) {
    if (!(error instanceof OtherFormat)) throw error;
    return await readConverted(error.format, folder, options);
  }
}

/** The arrays are made beside the dataset, so that most of them become its files without a copy. */
async function readConverted(
  format: ConvertedFormat,
  folder: string,
  { id, source, choices, progress, signal, tasks }: ImportOptions,
): Promise<DatasetWritten> {
  const arrays = join(folder, '.converted');
  await mkdir(arrays);
  const { directed } = choices;
  const { notices } = await tasks.convert(
    { format, source, directed, folder: arrays },
    { signal, progress: (share, message) => progress(convertedShare * share, message) },
  );
  const origin = {
    source: `${format.toLowerCase()} ${basename(source)}`,
    hasNoSplits: hasNoSplits(format),
    notices,
  };
  const asked = { ...choices, directed: false, link: true };
  const later = (share: number, message: string) =>
    progress(convertedShare + (1 - convertedShare) * share, message);
  const written = await tasks.importSource(
    { id, source: arrays, format: 'NPY', choices: asked, origin, folder },
    { signal, progress: later },
  );
  await rm(arrays, { recursive: true });
  return written;
}

/** Makes the folder of datasets and removes what killed imports left in it; answers their names. */
export function prepareFolder(folder: string): string[] {
  makeFolder(folder);
  const left = readdirSync(folder).filter((name) => name.startsWith(temporaryPrefix));
  for (const name of left) rmSync(join(folder, name), { recursive: true, force: true });
  return left;
}
