import { existsSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { writeFileAtomic } from '../base/atomic-file.ts';
import { messageOf } from '../base/errors.ts';
import { fileProblem } from '../base/file-problem.ts';
import { markUsed } from '../base/files.ts';
import type { Log } from '../base/log.ts';
import { readRegular } from '../base/regular-file.ts';
import { digestOf } from '../datasets/dataset-writer.ts';
import { FileWitness, type NamedDigest, type WrongFile } from '../files/file-witness.ts';
import type { DatasetManifest } from '../records/dataset-record.ts';
import { runTask, TaskError, type TaskOptions } from '../supervisor/supervisor.ts';

/**
 * Whether what a job reads is what was imported, or made of it (decision 0093): a bit that flips
 * on the disk would train another model under the same digest. A Preparer reads the files; what
 * was read and has not changed since is not read again for a day.
 */

type Task = Omit<TaskOptions, 'topologyFd'>;

/** A dataset as it was imported. */
export interface WitnessedDataset {
  readonly folder: string;
  /** SHA-256 of its dataset.json. */
  readonly digest: string;
}

export class DataWitness {
  readonly #files = new FileWitness();
  readonly #log: Pick<Log, 'warn'>;

  constructor(log: Pick<Log, 'warn'>) {
    this.#log = log;
  }

  /**
   * Rejects with a TaskError DATASET_CORRUPT that names each array which is not the imported one,
   * and as `runTask` does.
   */
  async checkDataset({ folder, digest }: WitnessedDataset, task: Task): Promise<void> {
    const { sha256 } = await manifestOf(folder, digest);
    const missing = Object.keys(sha256).filter((name) => !existsSync(join(folder, name)));
    const extra = addedWeights(folder, sha256);
    const files = Object.entries(sha256)
      .filter(([name]) => !missing.includes(name))
      .map(([name, expected]) => ({ name, sha256: expected }));
    const wrong = await this.#wrongOnes(folder, files, { task, elements: true });
    const said = [...missing.map((name) => `${name} is gone`), ...extra, ...wrong.map(changedText)];
    if (said.length > 0) throw corrupt(folder, said);
  }

  /**
   * Whether all files that were made of a dataset are there and as they were made; otherwise they
   * are removed, with a warning where they were damaged: whoever asks makes them again and says
   * so by `made`.
   */
  async isSound(paths: readonly string[], task: Task): Promise<boolean> {
    if (!paths.every((path) => existsSync(path))) return false;
    const problem = await this.#problemOf(paths, task);
    if (problem === null) {
      for (const path of paths) {
        await this.#files.touching(path, markUsed);
        markUsed(digestPath(path));
      }
      return true;
    }
    this.#log.warn('derived.damaged', { files: paths.map((path) => basename(path)), problem });
    for (const path of paths) rmSync(path, { force: true });
    return false;
  }

  /** Null: they are as they were made. */
  async #problemOf(paths: readonly string[], task: Task): Promise<string | null> {
    const problems: string[] = [];
    for (const [folder, names] of namesByFolder(paths)) {
      const files = names.map((name) => ({
        name,
        sha256: digestIn(digestPath(join(folder, name))),
      }));
      const unsaid = files.find(({ sha256 }) => sha256 === null);
      if (unsaid !== undefined) return `nothing says what ${join(folder, unsaid.name)} is to hold`;
      const known = files.map(({ name, sha256 }) => ({ name, sha256: sha256 ?? '' }));
      const wrong = await this.#wrongOnes(folder, known, { task, elements: false });
      problems.push(...wrong.map((file) => `${file.path}: ${differenceText(file)}`));
    }
    return problems.length === 0 ? null : problems.join('; ');
  }

  /** Notes what files that were just made hold. Rejects as `runTask` does. */
  async made(paths: readonly string[], task: Task): Promise<void> {
    for (const [folder, names] of namesByFolder(paths)) {
      const digests = await digestsOf(folder, names, { task, elements: false });
      for (const [index, name] of names.entries()) {
        const sha256 = digests[index] ?? '';
        await writeFileAtomic(digestPath(join(folder, name)), [`${sha256}\n`]);
        await this.#files.remember(folder, [{ name, sha256 }]);
      }
    }
  }

  #wrongOnes(folder: string, files: readonly NamedDigest[], how: Reading) {
    return this.#files.wrongOnes(folder, files, (_, names) => digestsOf(folder, names, how));
  }
}

/** A process reads the files of a folder. */
function namesByFolder(paths: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const path of paths) {
    const folder = dirname(path);
    found.set(folder, [...(found.get(folder) ?? []), basename(path)]);
  }
  return found;
}

interface Reading {
  readonly task: Task;
  /** Whether digests cover the elements of arrays alone. */
  readonly elements: boolean;
}

async function digestsOf(
  folder: string,
  names: readonly string[],
  { task, elements }: Reading,
): Promise<readonly string[]> {
  const options = { folder, names, elements };
  const answer = await runTask({ role: 'DIGEST', options }, { ...task, topologyFd: null });
  if (answer.role !== 'DIGEST') throw new Error(`a digest answered ${answer.role}`);
  return answer.value;
}

/** Path of a derived file's SHA-256, beside the file. */
function digestPath(path: string): string {
  return `${path}.sha256`;
}

function digestIn(path: string): string | null {
  try {
    return /^([0-9a-f]{64})\n$/.exec(readFileSync(path, 'utf8'))?.[1] ?? null;
  } catch {
    return null;
  }
}

async function manifestOf(folder: string, digest: string): Promise<DatasetManifest> {
  const bytes = await readRegular(join(folder, 'dataset.json')).catch((error: unknown) => {
    throw corrupt(folder, [`dataset.json cannot be read: ${fileProblem(error)}`]);
  });
  const found = digestOf(bytes);
  if (found !== digest) {
    throw corrupt(folder, [changedText({ path: 'dataset.json', expected: digest, found })]);
  }
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    throw corrupt(folder, [`dataset.json is no JSON: ${messageOf(error)}`]);
  }
}

/** Readers take weights where there is a file of that name. */
function addedWeights(folder: string, sha256: DatasetManifest['sha256']): readonly string[] {
  const name = 'edge_weights.npy';
  const isAdded = sha256[name] === undefined && existsSync(join(folder, name));
  return isAdded ? [`${name} is there and was not imported`] : [];
}

function changedText(file: WrongFile): string {
  return `${basename(file.path)} was changed after its import: ${differenceText(file)}`;
}

function differenceText({ expected, found }: WrongFile): string {
  if (found === '') return 'it is no whole array any more';
  return `its SHA-256 is ${found.slice(0, 12)}…, not ${expected.slice(0, 12)}…`;
}

function corrupt(folder: string, said: readonly string[]): TaskError {
  const id = basename(folder);
  const remedy =
    `put the imported file back (gnnctl dataset validate ${id} tells when all is well), or ` +
    'delete the dataset and import it again';
  return new TaskError('DATASET_CORRUPT', `dataset ${id}: ${said.join('; ')}: ${remedy}`);
}
