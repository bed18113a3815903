import { existsSync, readdirSync, rmSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { makeFolder, syncFolder } from '../base/atomic-file.ts';
import { GnndError } from '../base/errors.ts';
import type { ImportFormat } from '../records/dataset-record.ts';
import { readWritten } from './adopt.ts';
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
      await putInPlace(temporary, join(folder, id), written.digest);
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
  const { id, source, root, choices, format, progress, signal, tasks } = options;
  const watch = { progress, signal };
  const asked = { id, root, choices, folder };
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
  { id, source, root, choices, progress, signal, tasks }: ImportOptions,
): Promise<DatasetWritten> {
  const arrays = join(folder, '.converted');
  await mkdir(arrays);
  const { directed } = choices;
  const { notices } = await tasks.convert(
    { format, source, root, directed, folder: arrays },
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
    { id, source: arrays, format: arraysFormat(arrays), root: '', choices: asked, origin, folder },
    { signal, progress: later },
  );
  await rm(arrays, { recursive: true });
  return written;
}

/** What a converter has made: arrays of one type, or of several. */
function arraysFormat(folder: string): 'NPY' | 'TYPED_NPY' {
  return existsSync(join(folder, 'types.json')) ? 'TYPED_NPY' : 'NPY';
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
