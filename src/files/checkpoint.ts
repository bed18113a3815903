import { existsSync } from 'node:fs';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder, writeFileAtomic } from '../base/atomic-file.ts';
import { sha256Of } from '../base/digest.ts';
import { messageOf } from '../base/errors.ts';
import { createLine } from '../base/line.ts';
import { readRegular } from '../base/regular-file.ts';
import type { ModelManifest, ModelOptions, ParameterTensor } from '../native/contract.ts';

/**
 * Checkpoints (docs/formats/checkpoint.md): a folder with last.safetensors (last epoch),
 * best.safetensors (best validation accuracy) and MANIFEST.json. The folder appears whole or not
 * at all.
 */

/** SHA-256 over the tensors' bytes in manifest order, padding left out; hex. */
export function parametersSha256(
  manifest: ModelManifest,
  parameters: Float32Array,
): Promise<string> {
  return sha256Of(Buffer.concat(tensorBytes(manifest, parameters)));
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

/** What is known of a checkpoint's file beside its bytes. */
export interface FileDigests {
  readonly sha256: string;
  readonly parametersSha256: string;
}

/** The digests of both files. */
export interface CheckpointDigests {
  readonly last: FileDigests;
  readonly best: FileDigests;
}

/**
 * Writes `folder` durably; on failure nothing of it is left. Bytes are copied here, digested and
 * written by other threads.
 */
export async function writeCheckpoint(
  folder: string,
  manifest: ModelManifest,
  files: CheckpointFiles,
): Promise<CheckpointDigests> {
  const temporary = `${folder}.tmp-${process.pid}`;
  // An older one goes in one step, not file by file: whoever dies meanwhile leaves no part of it.
  const older = `${temporary}-older`;
  for (const left of [temporary, older]) await rm(left, { recursive: true, force: true });
  try {
    await mkdir(temporary, { recursive: true });
    const write = async (name: string, data: Float32Array): Promise<FileDigests> => {
      const bytes = Buffer.concat(safetensorsOf(manifest, data, { format: 'pt' }));
      const tensors = splitSafetensors(bytes).data;
      const [sha256, parametersSha256] = await Promise.all([sha256Of(bytes), sha256Of(tensors)]);
      await writeFileAtomic(join(temporary, name), [bytes]);
      return { sha256, parametersSha256 };
    };
    const last = await write(fileNames.LAST, files.last);
    const best = await write(fileNames.BEST, files.best);
    const digests = { [fileNames.LAST]: last, [fileNames.BEST]: best };
    const text = JSON.stringify(
      { format: formatRead, ...files.facts, model: files.model, files: digests },
      null,
      2,
    );
    await writeFileAtomic(join(temporary, 'MANIFEST.json'), [`${text}\n`]);
    if (existsSync(folder)) await rename(folder, older);
    await rename(temporary, folder);
    syncFolder(join(folder, '..'));
    await rm(older, { recursive: true, force: true });
    return { last, best };
  } catch (error) {
    if (existsSync(older) && !existsSync(folder)) await rename(older, folder);
    await rm(temporary, { recursive: true, force: true });
    throw error;
  }
}

/** Which epoch's parameters: that of the best validation accuracy, or the last one. */
export type CheckpointKind = 'BEST' | 'LAST';

const formatRead = 1;

const fileNames: Readonly<Record<CheckpointKind, string>> = {
  BEST: 'best.safetensors',
  LAST: 'last.safetensors',
};

/** What is known of one file of a checkpoint folder, which was checked. */
export interface CheckpointFacts extends FileDigests {
  readonly path: string;
  readonly size: number;
  readonly model: ModelOptions;
  /** What the model has learnt of nodes: the task of its dataset. */
  readonly task: string;
  /** Names of the dataset's columns of features; null where it named none. */
  readonly featureNames: readonly string[] | null;
  /** In the order of the file. */
  readonly tensors: readonly { readonly name: string; readonly shape: readonly number[] }[];
}

/** The file whole. */
export interface CheckpointFile extends CheckpointFacts {
  readonly bytes: Buffer;
}

/** Throws a sentence that names the file when it is missing, or not what was written there. */
export async function readCheckpoint(
  folder: string,
  kind: CheckpointKind,
): Promise<CheckpointFile> {
  const name = fileNames[kind];
  const path = join(folder, name);
  try {
    const manifest = await readRegular(join(folder, 'MANIFEST.json'));
    const facts: ManifestFacts = JSON.parse(manifest.toString('utf8'));
    if (facts.format !== formatRead) {
      throw new Error(
        'it was made by another version of gnnd ' +
          `(format ${facts.format}; this one reads ${formatRead}): train it again`,
      );
    }
    const written = facts.files[name];
    const bytes = await readRegular(path);
    const sha256 = await sha256Of(bytes);
    if (written?.sha256 !== sha256) throw new Error('its SHA-256 is not the one in MANIFEST.json');
    const { tensors } = splitSafetensors(bytes);
    const { parametersSha256 } = written;
    const { model, task, featureNames } = facts;
    const known = { sha256, parametersSha256, model, task, featureNames, tensors };
    return { path, bytes, size: bytes.length, ...known };
  } catch (error) {
    throw new Error(`the checkpoint ${path} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

/** One file of a checkpoint folder. */
export interface CheckpointPlace {
  readonly folder: string;
  readonly kind: CheckpointKind;
}

/** As `readCheckpoint`, without the bytes. A task of the pool. */
export async function checkpointFacts({ folder, kind }: CheckpointPlace): Promise<CheckpointFacts> {
  const { bytes: _, ...facts } = await readCheckpoint(folder, kind);
  return facts;
}

/** Answers as `readCheckpoint` does, but for the bytes. */
export type CheckpointLook = (folder: string, kind: CheckpointKind) => Promise<CheckpointFacts>;

/** Checkpoints that a look remembers. */
const rememberedMax = 1000;

/**
 * Looks that read one file at a time, and each only once until it or its manifest changes: a list
 * of checkpoints is asked for often.
 */
export function createCheckpointLook(read: CheckpointLook): CheckpointLook {
  const line = createLine();
  const known = new Map<string, { readonly stamp: string; readonly facts: CheckpointFacts }>();
  return async (folder, kind) => {
    const path = join(folder, fileNames[kind]);
    const leave = await line.enter(new AbortController().signal);
    try {
      const stamps = [path, join(folder, 'MANIFEST.json')].map(stampOf);
      const stamp = (await Promise.all(stamps)).join();
      const before = known.get(path);
      if (before?.stamp === stamp) return before.facts;
      const facts = await read(folder, kind);
      known.delete(path);
      known.set(path, { stamp, facts });
      const [oldest] = known.keys();
      if (known.size > rememberedMax && oldest !== undefined) known.delete(oldest);
      return facts;
    } finally {
      leave();
    }
  };
}

/** Changes whenever the file does, or is another one. */
async function stampOf(path: string): Promise<string> {
  const found = await stat(path, { bigint: true }).catch(() => null);
  return found === null ? '' : `${found.ino}:${found.size}:${found.mtimeNs}:${found.ctimeNs}`;
}

/** What this module reads of MANIFEST.json. */
interface ManifestFacts {
  readonly format: number;
  readonly model: ModelOptions;
  readonly task: string;
  readonly featureNames: readonly string[] | null;
  readonly files: Readonly<Record<string, FileDigests>>;
}

/** The parameter vector; throws when the file's tensors are not those of the manifest. */
export function parametersOf(
  manifest: ModelManifest,
  { path, bytes }: Pick<CheckpointFile, 'path' | 'bytes'>,
): Float32Array {
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

/** Names and shapes, in the order of a file that safetensorsOf wrote. */
export function tensorsOf(bytes: Buffer): CheckpointFacts['tensors'] {
  return splitSafetensors(bytes).tensors;
}

/** SHA-256 of the parameters in a file that safetensorsOf wrote, as checkpoints say it. */
export function parametersSha256Of(bytes: Buffer): Promise<string> {
  return sha256Of(splitSafetensors(bytes).data);
}

/** Tensors and data of a file that safetensorsOf wrote: tensors lie in the header's order. */
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
