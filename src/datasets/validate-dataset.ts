import { join } from 'node:path';
import { fileProblem } from '../base/file-problem.ts';
import { readRegular } from '../base/regular-file.ts';
import type { DatasetManifest, TypedManifest } from '../records/dataset-record.ts';
import { sha256OfArray } from './array-digest.ts';
import type { DatasetCheck, TaskWatch, Validation } from './data-tasks.ts';
import { arrayNames, digestOf, linkArrayNames } from './dataset-writer.ts';
import { ProblemList } from './problems.ts';
import { checkElements, type NativeValidator } from './read-source.ts';

interface ValidateOptions extends TaskWatch {
  readonly dataset: DatasetCheck;
  readonly native: NativeValidator;
}

/** Checks that a dataset is what was imported (checksums), and every element of it (native). */
export async function validateDataset(options: ValidateOptions): Promise<Validation> {
  const { dataset, native, progress, signal } = options;
  const problems = new ProblemList();
  const manifest = await readManifest(dataset, problems);
  if (manifest !== null) {
    const files = filesOf(manifest);
    for (const [at, file] of files.entries()) {
      progress((0.5 * at) / files.length, `comparing the checksum of ${file}`);
      const expected = manifest.sha256[file];
      const found = await sha256OfArray(join(dataset.path, file), signal);
      if (found === null || found === expected) continue;
      problems.add(file, `was changed: its SHA-256 is ${found}, dataset.json has ${expected}`);
    }
    progress(0.5, 'checking every element');
    const whole = { folder: dataset.path, checked: [] };
    const checked = await checkElements(native, whole, manifest);
    signal.throwIfAborted();
    problems.addAll(checked.problems, checked.problemCount);
  }
  return { problems: problems.kept, problemCount: problems.count };
}

/** Its arrays, in the order in which they are told of. */
function filesOf({ version, sha256 }: DatasetManifest | TypedManifest): readonly string[] {
  if (version === 2) return Object.keys(sha256);
  return [...arrayNames, ...linkArrayNames]
    .map((name) => `${name}.npy`)
    .filter((file) => sha256[file] !== undefined);
}

/** Null when it is missing or not the one that was imported. */
async function readManifest(
  dataset: DatasetCheck,
  problems: ProblemList,
): Promise<DatasetManifest | TypedManifest | null> {
  try {
    const bytes = await readRegular(join(dataset.path, 'dataset.json'));
    const digest = digestOf(bytes);
    // The file has the bytes that the import wrote, so that its shape needs no check.
    if (digest === dataset.digest) return JSON.parse(bytes.toString('utf8'));
    const expected = `the import's was ${dataset.digest}`;
    problems.add('dataset.json', `was changed: its SHA-256 is ${digest}, ${expected}`);
  } catch (error) {
    problems.add('dataset.json', `cannot be read: ${fileProblem(error)}`);
  }
  return null;
}
