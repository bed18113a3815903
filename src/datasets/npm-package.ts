import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../base/errors.ts';
import { fileChunks } from './byte-streams.ts';
import type { ArrayName } from './dataset-writer.ts';

const arraySums: Readonly<Partial<Record<ArrayName, string>>> = {
  indptr: 'b31b69241d9cb4dedb285d9df49bf0e79bdf9482a4ebf72771389378d306c93f',
  indices: '87caa9ed0ea0710fa2f22b7d485cc7abca462e2ccb1d8ff678a5adf2114cc06d',
  features: '36f2824c497fff657cc9b3dbfb45c22c735b524361ef2d56b030624407a684f0',
  labels: '76d263779c5395c92f3a3fe45368740c846de566a253c98e3238c0d8cfb3bf14',
  train: '6be4df37d05d29a637e7b328e2f3138843292ac7ae6ff8bb28a3409cb88999ef',
  val: '9b4c8513dd131462335a709660be614ce7ab3d1e3ba509c03339a0a52604081a',
  test: '5d50c44f2f568decff4632bd3cefef729ba4f886533e18e76c10c715f0a4a2fb',
};

/** The published package that the npm dependency graph is made of, and what it must become. */
export const npmDepsPackage = {
  spec: 'dependent-packages@2.2.2',
  fileName: 'dependent-packages-2.2.2.tgz',
  sha256: '31fcbe7a4b5f11eddb2aaca15406b375f01be1f8d1e55dc25de8e5b5b03c9970',
  /** Files in each of its two archives. */
  files: { dependents: 80_340, devDependents: 31_806 },
  /** Of the raw bytes of the arrays of the finished dataset. */
  arrays: arraySums,
} as const;

/** SHA-256 of a file, in hex. */
export async function sha256OfFile(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of fileChunks(path)) {
    signal.throwIfAborted();
    hash.update(chunk);
  }
  return hash.digest('hex');
}

/**
 * The path of the package's archive in `cacheFolder`, fetched with `npm pack` unless a good copy is
 * there. The package is not installed: its install script would unpack 100,000 small files. Throws
 * an Error that says what to do when npm fails or delivers something else.
 */
export async function fetchNpmDeps(cacheFolder: string, signal: AbortSignal): Promise<string> {
  const { spec, fileName, sha256 } = npmDepsPackage;
  const path = join(cacheFolder, fileName);
  if (existsSync(path) && (await sha256OfFile(path, signal)) === sha256) return path;
  await mkdir(cacheFolder, { recursive: true });
  await sweep(cacheFolder);
  const temporary = join(cacheFolder, `${temporaryPrefix}${process.pid}`);
  await mkdir(temporary);
  try {
    await npmPack(temporary, signal);
    const fetched = join(temporary, fileName);
    const found = existsSync(fetched) ? await sha256OfFile(fetched, signal) : 'no file';
    if (found !== sha256) {
      throw new Error(`npm pack ${spec} delivered ${found}, expected SHA-256 ${sha256}`);
    }
    await rename(fetched, path);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  return path;
}

const temporaryPrefix = '.tmp-npm-';

/** Removes what an earlier process left when it was killed while it fetched. */
async function sweep(cacheFolder: string): Promise<void> {
  for (const name of await readdir(cacheFolder)) {
    if (!name.startsWith(temporaryPrefix)) continue;
    await rm(join(cacheFolder, name), { recursive: true, force: true });
  }
}

async function npmPack(folder: string, signal: AbortSignal): Promise<void> {
  const { spec } = npmDepsPackage;
  try {
    // Run in the folder itself, so that no project's settings apply.
    await promisify(execFile)('npm', ['pack', spec, '--ignore-scripts'], { cwd: folder, signal });
  } catch (error) {
    signal.throwIfAborted();
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr) : '';
    const why = stderr.trim() === '' ? messageOf(error) : stderr.trim();
    throw new Error(`cannot fetch the npm package ${spec}: ${why}`, { cause: error });
  }
}
