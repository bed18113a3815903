import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder } from '../base/atomic-file.ts';
import type { DatasetCounts, DatasetValidation } from '../native/contract.ts';
import type { DatasetManifest, FeatureDtype, ImportFormat } from '../spec/dataset-record.ts';
import { DatasetWriter, type DatasetWritten } from './dataset-writer.ts';
import { importers } from './detect-format.ts';
import type { ReportProgress } from './import-context.ts';
import type { ImportPool } from './import-pool.ts';
import { NoticeList } from './notices.ts';
import { ProblemList } from './problems.ts';

/** The native check of every element of a dataset. */
export interface NativeValidator {
  datasetValidate(folder: string, counts: DatasetCounts): Promise<DatasetValidation>;
}

export interface ImportOptions {
  readonly id: string;
  /** A file or folder. */
  readonly source: string;
  readonly format: ImportFormat;
  /** Null: that of the source where it has one, else float32. */
  readonly featureDtype: FeatureDtype | null;
  /** Tables only: an edge stands in the row of its target, not in that of its source, too. */
  readonly directed: boolean;
  /** Where datasets live; the dataset becomes its subfolder `id`. */
  readonly folder: string;
  /** Do everything but keep the result. */
  readonly validateOnly: boolean;
  readonly pool: ImportPool;
  readonly native: NativeValidator;
  readonly progress: ReportProgress;
  readonly signal: AbortSignal;
}

const temporaryPrefix = '.tmp-';
/** What is left of the progress for the check. */
const importShare = 0.9;

/**
 * Reads the source, writes the dataset beside its place, checks every element, and moves it there:
 * a dataset's folder is whole or absent, also after a crash. Throws ImportFailure for what is wrong
 * with the source.
 */
export async function runImport(options: ImportOptions): Promise<DatasetWritten> {
  const { id, source, folder, progress, signal } = options;
  const temporary = join(folder, `${temporaryPrefix}${id}-${process.pid}`);
  await mkdir(temporary, { mode: 0o750 });
  const problems = new ProblemList();
  const notices = new NoticeList();
  const writer = new DatasetWriter(temporary);
  try {
    const facts = await importers[options.format]({
      source,
      featureDtype: options.featureDtype,
      directed: options.directed,
      writer,
      problems,
      notices,
      progress: (fraction, message) => progress(importShare * fraction, message),
      pool: options.pool,
      signal,
    });
    problems.throwIfAny();
    const written = await writer.finish(id, facts, notices.kept);
    progress(importShare, 'checking every element');
    const found = await options.native.datasetValidate(temporary, countsOf(written.manifest));
    problems.addAll(found.problems, found.problemCount);
    problems.throwIfAny();
    signal.throwIfAborted();
    if (!options.validateOnly) {
      // What stands there is no dataset: one that the daemon knows is never imported over.
      await rm(join(folder, id), { recursive: true, force: true });
      await rename(temporary, join(folder, id));
      syncFolder(folder);
    }
    return written;
  } finally {
    await writer.close();
    await rm(temporary, { recursive: true, force: true });
  }
}

/** What the native core needs to know of a manifest. */
export function countsOf(manifest: DatasetManifest): DatasetCounts {
  return {
    numNodes: manifest.num_nodes,
    numEdges: manifest.num_edges,
    numFeatures: manifest.num_features,
    numClasses: manifest.num_classes,
    train: manifest.split.train,
    val: manifest.split.val,
    test: manifest.split.test,
    featureDtype: manifest.feature_dtype ?? 'float32',
  };
}

/** Makes the folder of datasets and removes what killed imports left in it; answers their names. */
export function prepareFolder(folder: string): string[] {
  mkdirSync(folder, { recursive: true, mode: 0o750 });
  const left = readdirSync(folder).filter((name) => name.startsWith(temporaryPrefix));
  for (const name of left) rmSync(join(folder, name), { recursive: true, force: true });
  return left;
}
