import { existsSync } from 'node:fs';
import { type FileHandle, mkdir, open, rename, rm, rmdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { makeFolder } from '../../base/atomic-file.ts';
import { messageOf } from '../../base/errors.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { CliError } from '../session/exit.ts';

/**
 * The folder that receives an export. Files are written aside and take their places when all are
 * there, export.json last: a folder with an export.json holds the whole of one export.
 */
export interface ExportFolder {
  readonly path: string;
  /** Files that have begun, in their order. */
  readonly files: readonly { readonly name: string; readonly bytes: number }[];
  /** Begins a file of `bytes` bytes, which `write` will give. */
  begin(name: string, bytes: number): Promise<void>;
  write(data: Uint8Array): Promise<void>;
  /** Puts all files in their places. Throws when one is shorter than promised. */
  commit(): Promise<void>;
  /** Removes what was written aside, and folders that were made for nothing. Never throws. */
  close(): Promise<void>;
}

/** All names that an export can have; what a server calls a file is not trusted. */
const exportNames = [
  'model.safetensors',
  'nodes.npy',
  'logits.npy',
  'predictions.npy',
  'labels.npy',
  'export.json',
] as const;

/** The same of an inference. */
export const predictionNames = [
  'nodes.npy',
  'predictions.npy',
  'logits.npy',
  'probabilities.npy',
  'embeddings.npy',
  'pairs.npy',
  'nearest.npy',
  'scores.npy',
  'predictions.parquet',
  'predictions.csv',
  'inference.json',
] as const;

/**
 * Throws a CliError when the folder cannot be written to, or holds an export already. The last of
 * `names` is the file that makes it one.
 */
export async function openExportFolder(
  given: string,
  force: boolean,
  names: readonly string[] = exportNames,
): Promise<ExportFolder> {
  const path = resolve(given);
  const lastName = names.at(-1) ?? '';
  const aside = join(path, `.export.tmp-${process.pid}`);
  if (!force) refuseOlder(path, names);
  const firstMade = await naming(path, madeFolder(path));
  const files: { name: string; bytes: number; written: number }[] = [];
  let handle: FileHandle | null = null;
  let isCommitted = false;
  const closeFile = async () => {
    const open = handle;
    handle = null;
    if (open === null) return;
    try {
      await open.sync();
    } finally {
      await open.close();
    }
    const last = files.at(-1);
    if (last !== undefined && last.written !== last.bytes) throw cutOff(last.name);
  };
  const removeAside = () => rm(aside, { recursive: true, force: true }).catch(() => {});
  try {
    await rm(aside, { recursive: true, force: true });
    await naming(aside, mkdir(aside));
  } catch (error) {
    await removeFolders(path, firstMade);
    throw error;
  }
  return {
    path,
    files,
    async begin(name, bytes) {
      await naming(path, closeFile());
      if (!names.some((known) => known === name)) {
        throw new CliError(
          gnnctlExit.INTERNAL,
          `the daemon sent a file of an unknown name: ${name}`,
        );
      }
      handle = await naming(join(path, name), open(join(aside, name), 'w', 0o644));
      files.push({ name, bytes, written: 0 });
    },
    async write(data) {
      const file = files.at(-1);
      if (handle === null || file === undefined) throw cutOff('the first file');
      await naming(join(path, file.name), writeAll(handle, data));
      file.written += data.length;
    },
    async commit() {
      await naming(path, closeFile());
      if (files.at(-1)?.name !== lastName) throw cutOff(lastName);
      if (!force) refuseOlder(path, names);
      // Without it the folder holds no export until it is back.
      await rm(join(path, lastName), { force: true });
      for (const { name } of files) {
        await naming(join(path, name), rename(join(aside, name), join(path, name)));
      }
      isCommitted = true;
      for (const name of names) {
        // The file is left from an earlier export that had more files.
        if (!files.some((file) => file.name === name)) await rm(join(path, name), { force: true });
      }
      const folder = await open(path);
      await folder.sync().finally(() => folder.close());
    },
    async close() {
      await handle?.close().catch(() => {});
      await removeAside();
      if (!isCommitted) await removeFolders(path, firstMade);
    },
  };
}

function refuseOlder(path: string, names: readonly string[]): void {
  const there = names.filter((name) => existsSync(join(path, name)));
  if (there.length === 0) return;
  const message = `${path} holds ${there.join(', ')}: nothing was written`;
  throw new CliError(gnnctlExit.CONFLICT, message, ['--force replaces an earlier export']);
}

function cutOff(name: string): CliError {
  return new CliError(gnnctlExit.INTERNAL, `the daemon ended the export within ${name}`);
}

async function writeAll(handle: FileHandle, data: Uint8Array): Promise<void> {
  for (let at = 0; at < data.length; ) {
    at += (await handle.write(data, at, data.length - at)).bytesWritten;
  }
}

/** The folders from `path` up to the first one that we made, while they are empty. */
async function removeFolders(path: string, firstMade: string | undefined): Promise<void> {
  if (firstMade === undefined) return;
  try {
    for (let folder = path; folder.length >= firstMade.length; folder = dirname(folder)) {
      await rmdir(folder);
    }
  } catch {
    // Somebody else put something there.
  }
}

async function madeFolder(path: string): Promise<string | undefined> {
  return makeFolder(path, 0o777);
}

const exitByCode: Readonly<Record<string, number>> = {
  EACCES: gnnctlExit.PERMISSION,
  EPERM: gnnctlExit.PERMISSION,
  EROFS: gnnctlExit.PERMISSION,
  ENOSPC: gnnctlExit.RESOURCE_EXHAUSTED,
  EDQUOT: gnnctlExit.RESOURCE_EXHAUSTED,
  ENOTDIR: gnnctlExit.CONFLICT,
  EEXIST: gnnctlExit.CONFLICT,
};

/** A failed system call as a CliError that says what could not be written and why. */
async function naming<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof CliError) throw error;
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const why = messageOf(error).replace(/, \w+( '.*)?$/, '');
    throw new CliError(exitByCode[code] ?? gnnctlExit.FAILURE, `cannot write ${path}: ${why}`);
  }
}
