import { createHash } from 'node:crypto';
import { closeSync, createReadStream, existsSync, fsyncSync, openSync, readSync } from 'node:fs';
import { readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileWriter, ParquetWriter } from 'hyparquet-writer';
import { syncFolder, writeFileAtomic } from '../base/atomic-file.ts';
import type { ReportProgress } from '../datasets/import-context.ts';

/**
 * Makes a result of what Trainers wrote (native/core/executor/prediction_files.h): a Parquet file
 * where it is wanted, and inference.json with the digest of every file, last.
 */

export interface PublishOptions {
  /** Of the .npy files; nobody writes there any more. */
  readonly folder: string;
  readonly formats: readonly ('NPY' | 'PARQUET')[];
  readonly logits: boolean;
  readonly probabilities: boolean;
  readonly rows: number;
  readonly classes: number;
  /** What inference.json says beside the files. */
  readonly facts: Readonly<Record<string, unknown>>;
}

export interface Published {
  /** Of all files. */
  readonly bytes: number;
}

const manifestName = 'inference.json';
const parquetName = 'predictions.parquet';
const arrayNames = ['nodes', 'predictions', 'logits', 'probabilities'] as const;

/** Tried again, it makes the same. Rejects with the system's error. */
export async function publishPredictions(
  options: PublishOptions,
  progress: ReportProgress,
): Promise<Published> {
  const { folder, formats } = options;
  const hasArrays = formats.includes('NPY');
  await removeStrangers(folder);
  const isMissing = !existsSync(join(folder, parquetName));
  if (formats.includes('PARQUET') && isMissing) await writeParquet(options, progress);
  if (!hasArrays)
    for (const name of arrayNames) await rm(join(folder, `${name}.npy`), { force: true });
  const names = (await readdir(folder)).filter((name) => name !== manifestName).sort();
  const files: Record<string, { readonly bytes: number; readonly sha256: string }> = {};
  for (const [index, name] of names.entries()) {
    progress(index / names.length, `reading ${name}`);
    files[name] = await syncedDigest(join(folder, name));
  }
  const text = `${JSON.stringify({ ...options.facts, files }, null, 2)}\n`;
  await writeFileAtomic(join(folder, manifestName), [text]);
  const bytes = Object.values(files).reduce((sum, file) => sum + file.bytes, text.length);
  return { bytes };
}

/** What a killed publisher left half-written. */
async function removeStrangers(folder: string): Promise<void> {
  const known = new Set<string>([...arrayNames.map((name) => `${name}.npy`), parquetName]);
  for (const name of await readdir(folder)) {
    if (!known.has(name)) await rm(join(folder, name), { recursive: true, force: true });
  }
}

async function syncedDigest(path: string) {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  const hash = createHash('sha256');
  for await (const piece of createReadStream(path, { highWaterMark: 2 ** 20 })) hash.update(piece);
  return { bytes: (await stat(path)).size, sha256: hash.digest('hex') };
}

/** Numbers of a group of rows: what is held at once. */
const groupNumbers = 2 ** 20;

async function writeParquet(options: PublishOptions, progress: ReportProgress): Promise<void> {
  const { folder, rows, classes, logits, probabilities } = options;
  const path = join(folder, parquetName);
  const temporary = `${path}.tmp-${process.pid}`;
  const arrays = openArrays(folder);
  try {
    const wide = [...(logits ? ['logits'] : []), ...(probabilities ? ['probabilities'] : [])];
    const schema = [
      { name: 'root', num_children: 2 + wide.length },
      { name: 'node', type: 'INT64', repetition_type: 'REQUIRED' } as const,
      { name: 'prediction', type: 'INT64', repetition_type: 'REQUIRED' } as const,
      ...wide.flatMap((name) => listOf(name)),
    ];
    const file = fileWriter(temporary);
    const writer = new ParquetWriter({ writer: file, schema, createdBy: 'gnnd' });
    const step = Math.max(
      1,
      Math.min(rows, Math.floor(groupNumbers / (2 + wide.length * classes))),
    );
    for (let first = 0; first < rows; first += step) {
      const count = Math.min(step, rows - first);
      progress(first / rows, `writing ${parquetName}`);
      const columnData = [
        { name: 'node', data: arrays.nodes(first, count) },
        { name: 'prediction', data: arrays.predictions(first, count) },
        ...wide.map((name) => ({ name, data: arrays.wide(name, first, count, classes) })),
      ];
      await writer.write({ columnData, rowGroupSize: count });
    }
    await writer.finish();
    await rename(temporary, path);
    syncFolder(folder);
  } finally {
    arrays.close();
    await rm(temporary, { force: true });
  }
}

/** Of float32, none of them null. */
function listOf(name: string) {
  return [
    { name, converted_type: 'LIST', repetition_type: 'REQUIRED', num_children: 1 },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    { name: 'element', type: 'FLOAT', repetition_type: 'REQUIRED' },
  ] as const;
}

/** The .npy files by ranges of rows. Without nodes.npy the rows are those of all nodes. */
function openArrays(folder: string) {
  const fds = new Map<string, number>();
  const open = (name: string) => {
    const fd = fds.get(name) ?? openSync(join(folder, `${name}.npy`), 'r');
    fds.set(name, fd);
    return fd;
  };
  const bytesAt = (name: string, first: number, count: number, itemBytes: number) => {
    const fd = open(name);
    const head = Buffer.alloc(10);
    readSync(fd, head, 0, head.length, 0);
    const dataAt = head.length + head.readUInt16LE(8);
    const bytes = new Uint8Array(count * itemBytes);
    for (let done = 0; done < bytes.length; ) {
      const got = readSync(fd, bytes, done, bytes.length - done, dataAt + first * itemBytes + done);
      if (got === 0) throw new Error(`${name}.npy ends before row ${first + count}`);
      done += got;
    }
    return bytes.buffer;
  };
  const integers = (name: string, first: number, count: number) =>
    new BigInt64Array(bytesAt(name, first, count, BigInt64Array.BYTES_PER_ELEMENT));
  return {
    nodes: (first: number, count: number) =>
      existsSync(join(folder, 'nodes.npy'))
        ? integers('nodes', first, count)
        : BigInt64Array.from({ length: count }, (_, row) => BigInt(first + row)),
    predictions: (first: number, count: number) => integers('predictions', first, count),
    wide: (name: string, first: number, count: number, classes: number) => {
      const itemBytes = classes * Float32Array.BYTES_PER_ELEMENT;
      const values = new Float32Array(bytesAt(name, first, count, itemBytes));
      return Array.from({ length: count }, (_, row) =>
        Array.from(values.subarray(row * classes, (row + 1) * classes)),
      );
    },
    close: () => {
      for (const fd of fds.values()) closeSync(fd);
    },
  };
}
