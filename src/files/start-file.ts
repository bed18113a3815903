import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder, writeFileAtomic } from '../base/atomic-file.ts';
import { GnndError, messageOf } from '../base/errors.ts';
import { readRegular } from '../base/regular-file.ts';
import type { ModelManifest } from '../native/contract.ts';
import { loadCore } from '../native/load.ts';
import {
  type CheckpointFacts,
  type CheckpointKind,
  parametersOf,
  parametersSha256Of,
  readCheckpoint,
  safetensorsOf,
  tensorsOf,
} from './checkpoint.ts';

/**
 * The parameters with which a job begins that begins from another one: a copy of its own, because
 * that one may be deleted, or write over its images, before this one is prepared.
 */

const startFileOf = (jobFolder: string) => join(jobFolder, 'start.safetensors');

export interface StartSource {
  /** A checkpoint's folder, or an image (docs/formats/image.md). */
  readonly path: string;
  readonly which: CheckpointKind;
  /**
   * Manifest of an image's model, since images name no tensors; null: the path is a checkpoint's.
   */
  readonly manifest: ModelManifest | null;
  /** Folder of the job that is to begin; null: it is only asked what would be copied. */
  readonly jobFolder: string | null;
}

export interface StartFacts {
  readonly parametersSha256: string;
  /** In the order of the file. */
  readonly tensors: CheckpointFacts['tensors'];
}

/** Copies the parameters, durably. Throws a sentence. A task of the pool: files are gigabytes. */
export async function copyStart({ path, which, manifest, jobFolder }: StartSource) {
  const bytes =
    manifest === null
      ? (await readCheckpoint(path, which)).bytes
      : bytesOfImage(path, which, manifest);
  const facts: StartFacts = {
    parametersSha256: await parametersSha256Of(bytes),
    tensors: tensorsOf(bytes),
  };
  if (jobFolder === null) return facts;
  makeFolder(jobFolder);
  await writeFileAtomic(startFileOf(jobFolder), [bytes]);
  return facts;
}

function bytesOfImage(path: string, which: CheckpointKind, manifest: ModelManifest): Buffer {
  const parameters = loadCore().imageParameters(path, which);
  if (manifest.numFloats !== parameters.length) throw new Error(`${path} is of another model`);
  return Buffer.concat([...safetensorsOf(manifest, parameters, { format: 'pt' })]);
}

/** Removes the folder of a job that was not made after all. */
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
