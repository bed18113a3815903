import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder, writeFileAtomic } from '../base/atomic-file.ts';
import { GnndError, messageOf } from '../base/errors.ts';
import { readRegular } from '../base/regular-file.ts';
import type { ModelManifest } from '../native/contract.ts';
import { parametersOf, parametersSha256Of } from './checkpoint.ts';

/**
 * The parameters with which a job begins that begins from another one: a copy of its own, because
 * that one may be deleted, or write over its images, before this one is prepared.
 */

const startFileOf = (jobFolder: string) => join(jobFolder, 'start.safetensors');

/** Durably. */
export async function writeStartFile(jobFolder: string, bytes: Uint8Array): Promise<void> {
  makeFolder(jobFolder);
  await writeFileAtomic(startFileOf(jobFolder), [bytes]);
}

/** Of a job that was not made after all. */
export async function removeStartFile(jobFolder: string): Promise<void> {
  await rm(jobFolder, { recursive: true, force: true });
}

/** Throws CHECKPOINT_CORRUPT where the file is not what the job was created with. */
export async function readStartFile(
  jobFolder: string,
  manifest: ModelManifest,
  sha256: string,
): Promise<Float32Array> {
  const path = startFileOf(jobFolder);
  try {
    const bytes = await readRegular(path);
    const found = await parametersSha256Of(bytes);
    if (found !== sha256) throw new Error(`${path} has SHA-256 ${found}, expected ${sha256}`);
    return parametersOf(manifest, { path, bytes });
  } catch (cause) {
    throw new GnndError('CHECKPOINT_CORRUPT', messageOf(cause), { cause });
  }
}
