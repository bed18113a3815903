import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../base/errors.ts';
import type { DatasetManifest, DatasetRecord, OperationRecord } from '../spec/dataset-record.ts';
import { arrayNames, digestOf } from './dataset-writer.ts';
import type { ReportProgress } from './import-context.ts';
import { openNpyFile } from './npy.ts';
import { ImportFailure, ProblemList } from './problems.ts';
import { countsOf, type NativeValidator } from './run-import.ts';

export interface ValidateOptions {
  readonly dataset: DatasetRecord;
  readonly native: NativeValidator;
  readonly progress: ReportProgress;
  readonly signal: AbortSignal;
}

/** Checks that a dataset is what was imported (checksums), and every element of it (native). */
export async function validateDataset(
  options: ValidateOptions,
): Promise<NonNullable<OperationRecord['validation']>> {
  const { dataset, native, progress, signal } = options;
  const problems = new ProblemList();
  const manifest = await readManifest(dataset, problems);
  if (manifest !== null) {
    for (const [at, name] of arrayNames.entries()) {
      progress((0.5 * at) / arrayNames.length, `comparing the checksum of ${name}.npy`);
      const file = `${name}.npy`;
      const expected = manifest.sha256[file];
      if (expected === undefined) continue;
      const found = await sha256OfArray(join(dataset.path, file), signal);
      if (found === null || found === expected) continue;
      problems.add(file, `was changed: its SHA-256 is ${found}, dataset.json has ${expected}`);
    }
    progress(0.5, 'checking every element');
    const checked = await native.datasetValidate(dataset.path, countsOf(manifest));
    signal.throwIfAborted();
    problems.addAll(checked.problems, checked.problemCount);
  }
  return { problems: problems.kept, problemCount: problems.count };
}

/** Null when it is missing or not the one that was imported. */
async function readManifest(
  dataset: DatasetRecord,
  problems: ProblemList,
): Promise<DatasetManifest | null> {
  try {
    const bytes = await readFile(join(dataset.path, 'dataset.json'));
    const digest = digestOf(bytes);
    // Its bytes are the ones that the import wrote, so that its shape needs no check.
    if (digest === dataset.digest) return JSON.parse(bytes.toString('utf8')) as DatasetManifest;
    const expected = `the import's was ${dataset.digest}`;
    problems.add('dataset.json', `was changed: its SHA-256 is ${digest}, ${expected}`);
  } catch (error) {
    problems.add('dataset.json', `cannot be read: ${messageOf(error)}`);
  }
  return null;
}

/** Null when the file is no whole array; the native check says why. */
async function sha256OfArray(path: string, signal: AbortSignal): Promise<string | null> {
  const hash = createHash('sha256');
  try {
    const source = await openNpyFile(path, signal);
    try {
      for await (const block of source.blocks()) hash.update(block);
    } finally {
      await source.close();
    }
  } catch (error) {
    if (error instanceof ImportFailure) return null;
    throw error;
  }
  return hash.digest('hex');
}
