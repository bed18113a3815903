import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import type { ReportProgress } from '../datasets/import-context.ts';

export interface DigestOptions {
  readonly folder: string;
  readonly names: readonly string[];
}

/** SHA-256 of each file, in hex. Rejects with the system's error. */
export async function digestFiles(
  { folder, names }: DigestOptions,
  progress: ReportProgress,
): Promise<readonly string[]> {
  const digests: string[] = [];
  for (const [index, name] of names.entries()) {
    progress(index / names.length, `reading ${name}`);
    const hash = createHash('sha256');
    for await (const piece of createReadStream(join(folder, name), { highWaterMark: pieceBytes })) {
      hash.update(piece);
    }
    digests.push(hash.digest('hex'));
  }
  return digests;
}

const pieceBytes = 2 ** 20;
