import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { sha256OfArray } from '../datasets/array-digest.ts';
import type { ReportProgress } from '../datasets/import-context.ts';

export interface DigestOptions {
  readonly folder: string;
  readonly names: readonly string[];
  /** Whether to digest only the elements of .npy files, without headers, as dataset.json does. */
  readonly elements: boolean;
}

/**
 * SHA-256 of each file, in hex; empty for one that is no whole array, where elements are asked for.
 * Rejects with the system's error.
 */
export async function digestFiles(
  { folder, names, elements }: DigestOptions,
  progress: ReportProgress,
): Promise<readonly string[]> {
  const digests: string[] = [];
  for (const [index, name] of names.entries()) {
    progress(index / names.length, `reading ${name}`);
    const path = join(folder, name);
    digests.push(elements ? ((await sha256OfArray(path)) ?? '') : await sha256OfFile(path));
  }
  return digests;
}

async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const piece of createReadStream(path, { highWaterMark: pieceBytes })) {
    hash.update(piece);
  }
  return hash.digest('hex');
}

const pieceBytes = 2 ** 20;
