import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { syncFolder, writeFileAtomic } from '../base/atomic-file.ts';
import { messageOf } from '../base/errors.ts';
import { readRegular } from '../base/regular-file.ts';
import type { ModelManifest, ModelOptions, ParameterTensor } from '../native/contract.ts';

/**
 * Checkpoints (docs/formats/checkpoint.md): a folder with last.safetensors (last epoch),
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
  readonly model: ModelOptions;
  /** What MANIFEST.json says beside the model and the files' digests. */
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
      [fileNames.LAST, files.last],
      [fileNames.BEST, files.best],
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
    const text = JSON.stringify(
      { format: 1, ...files.facts, model: files.model, files: digests },
      null,
      2,
    );
    writeFileAtomic(join(temporary, 'MANIFEST.json'), [`${text}\n`]);
    rmSync(folder, { recursive: true, force: true });
    renameSync(temporary, folder);
    syncFolder(join(folder, '..'));
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    throw error;
  }
}

/** Which epoch's parameters: that of the best validation accuracy, or the last one. */
export type CheckpointKind = 'BEST' | 'LAST';

const fileNames: Readonly<Record<CheckpointKind, string>> = {
  BEST: 'best.safetensors',
  LAST: 'last.safetensors',
};
/** What earlier versions called the last epoch's. */
const earlierLastName = 'model.safetensors';

/** One file of a checkpoint folder, whole and checked. */
export interface CheckpointFile {
  readonly path: string;
  readonly bytes: Buffer;
  readonly sha256: string;
  readonly parametersSha256: string;
  /** Null in folders of earlier versions, which do not say it. */
  readonly model: ModelOptions | null;
  /** In the order of the file. */
  readonly tensors: readonly { readonly name: string; readonly shape: readonly number[] }[];
}

/** Throws a sentence that names the file when it is missing, or not what was written there. */
export async function readCheckpoint(
  folder: string,
  kind: CheckpointKind,
): Promise<CheckpointFile> {
  const isEarlier = kind === 'LAST' && existsSync(join(folder, earlierLastName));
  const name = isEarlier ? earlierLastName : fileNames[kind];
  const path = join(folder, name);
  try {
    const facts: CheckpointFacts = JSON.parse(
      (await readRegular(join(folder, 'MANIFEST.json'))).toString('utf8'),
    );
    const written = facts.files[name];
    const bytes = await readRegular(path);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    if (written?.sha256 !== sha256) throw new Error('its SHA-256 is not the one in MANIFEST.json');
    const { tensors } = splitSafetensors(bytes);
    const { parametersSha256 } = written;
    return { path, bytes, sha256, parametersSha256, model: facts.model ?? null, tensors };
  } catch (error) {
    throw new Error(`the checkpoint ${path} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

/** What this module reads of MANIFEST.json. */
interface CheckpointFacts {
  readonly model?: ModelOptions;
  readonly files: Readonly<Record<string, { sha256: string; parametersSha256: string }>>;
}

/** The parameter vector; throws when the file's tensors are not those of the manifest. */
export function parametersOf(manifest: ModelManifest, { path, bytes }: CheckpointFile) {
  const vector = new Float32Array(manifest.numFloats);
  const { tensors, data } = splitSafetensors(bytes);
  const wanted = manifest.tensors.map(({ name, shape }) => ({ name, shape }));
  if (JSON.stringify(tensors) !== JSON.stringify(wanted)) {
    throw new Error(`the checkpoint ${path} does not hold the tensors of its job's model`);
  }
  let at = 0;
  for (const target of tensorBytes(manifest, vector)) {
    target.set(data.subarray(at, at + target.length));
    at += target.length;
  }
  return vector;
}

/** Of a file that safetensorsOf wrote: tensors lie in the header's order. */
function splitSafetensors(bytes: Buffer) {
  const dataAt = 8 + Number(bytes.readBigUInt64LE(0));
  const header: Record<string, { shape: readonly number[] }> = JSON.parse(
    bytes.toString('utf8', 8, dataAt),
  );
  const { __metadata__: _, ...entries } = header;
  const tensors = Object.entries(entries).map(([name, { shape }]) => ({ name, shape }));
  return { tensors, data: bytes.subarray(dataAt) };
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
