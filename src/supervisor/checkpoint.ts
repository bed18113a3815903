import { createHash } from 'node:crypto';
import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { syncFolder, writeFileAtomic } from '../base/atomic-file.ts';
import type { ModelManifest, ParameterTensor } from '../native/contract.ts';

/**
 * Checkpoints (docs/formats/checkpoint.md): a folder with model.safetensors (last epoch),
 * best.safetensors (best validation accuracy) and MANIFEST.json. The folder appears whole or not
 * at all.
 */

/** SHA-256 over the tensors' bytes in manifest order, padding left out; hex. */
export function parametersSha256(manifest: ModelManifest, parameters: Float32Array): string {
  const hash = createHash('sha256');
  for (const bytes of tensorBytes(manifest, parameters)) hash.update(bytes);
  return hash.digest('hex');
}

/** The safetensors file of a parameter vector, as chunks to write. */
export function safetensorsOf(
  manifest: ModelManifest,
  parameters: Float32Array,
  metadata: Readonly<Record<string, string>>,
): readonly Uint8Array[] {
  const header: Record<string, unknown> = { __metadata__: metadata };
  let at = 0;
  for (const tensor of manifest.tensors) {
    const { name, shape } = tensor;
    const bytes = 4 * elementsOf(tensor);
    header[name] = { dtype: 'F32', shape, data_offsets: [at, at + bytes] };
    at += bytes;
  }
  const json = JSON.stringify(header);
  // Data starts at a multiple of 8 bytes; the format pads the header with spaces.
  const text = Buffer.from(json.padEnd(Math.ceil(json.length / 8) * 8, ' '), 'utf8');
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.byteLength));
  return [length, text, ...tensorBytes(manifest, parameters)];
}

export interface CheckpointFiles {
  readonly last: Float32Array;
  readonly best: Float32Array;
  /** What MANIFEST.json says beside the files' digests. */
  readonly facts: Readonly<Record<string, unknown>>;
}

/** Writes `folder` durably; on failure nothing of it is left. */
export function writeCheckpoint(
  folder: string,
  manifest: ModelManifest,
  files: CheckpointFiles,
): void {
  const temporary = `${folder}.tmp-${process.pid}`;
  rmSync(temporary, { recursive: true, force: true });
  try {
    mkdirSync(temporary, { recursive: true });
    const digests: Record<string, { sha256: string; parametersSha256: string }> = {};
    for (const [name, data] of [
      ['model.safetensors', files.last],
      ['best.safetensors', files.best],
    ] as const) {
      const chunks = safetensorsOf(manifest, data, { format: 'pt' });
      writeFileAtomic(join(temporary, name), chunks);
      const hash = createHash('sha256');
      for (const chunk of chunks) hash.update(chunk);
      digests[name] = {
        sha256: hash.digest('hex'),
        parametersSha256: parametersSha256(manifest, data),
      };
    }
    const text = JSON.stringify({ format: 1, ...files.facts, files: digests }, null, 2);
    writeFileAtomic(join(temporary, 'MANIFEST.json'), [`${text}\n`]);
    rmSync(folder, { recursive: true, force: true });
    renameSync(temporary, folder);
    syncFolder(join(folder, '..'));
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    throw error;
  }
}

function tensorBytes(manifest: ModelManifest, parameters: Float32Array): readonly Uint8Array[] {
  return manifest.tensors.map((tensor) => {
    const at = parameters.byteOffset + 4 * tensor.offset;
    return new Uint8Array(parameters.buffer, at, 4 * elementsOf(tensor));
  });
}

function elementsOf({ shape }: ParameterTensor): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** Floats of the model, padding left out. */
export function parameterCountOf({ tensors }: ModelManifest): number {
  return tensors.reduce((sum, tensor) => sum + elementsOf(tensor), 0);
}
