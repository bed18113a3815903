import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { messageOf } from '../../base/errors.ts';

/** A published npm package, exactly. */
export interface NpmPackage {
  /** `name@version`. */
  readonly spec: string;
  /** As `npm pack` names it. */
  readonly fileName: string;
  /** Of the .tgz. */
  readonly sha256: string;
}

export const dependentPackages: NpmPackage = {
  spec: 'dependent-packages@2.2.2',
  fileName: 'dependent-packages-2.2.2.tgz',
  sha256: '31fcbe7a4b5f11eddb2aaca15406b375f01be1f8d1e55dc25de8e5b5b03c9970',
};

/**
 * The package's archive in `folder`, fetched with `npm pack` unless it is there. It is not
 * installed: install scripts may do anything. Throws when what came is not what was meant.
 */
export async function fetchNpmPackage(
  { spec, fileName, sha256 }: NpmPackage,
  folder: string,
  signal: AbortSignal,
): Promise<string> {
  const path = join(folder, fileName);
  if (existsSync(path) && (await sha256Of(path, signal)) === sha256) return path;
  await mkdir(folder, { recursive: true });
  const temporary = await mkdtemp(join(folder, '.fetch-'));
  try {
    const args = ['pack', spec, '--ignore-scripts'];
    await promisify(execFile)('npm', args, { cwd: temporary, signal });
    const fetched = join(temporary, fileName);
    const found = existsSync(fetched) ? await sha256Of(fetched, signal) : 'no such file';
    if (found !== sha256) throw new Error(`expected SHA-256 ${sha256}, got ${found}`);
    await rename(fetched, path);
    return path;
  } catch (error) {
    signal.throwIfAborted();
    throw new Error(`npm pack ${spec}: ${messageOf(error)}`, { cause: error });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

async function sha256Of(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash, { signal });
  return hash.digest('hex');
}
