import { createHash } from 'node:crypto';
import { openNpyFile } from './npy.ts';
import { ImportFailure } from './problems.ts';

/**
 * SHA-256 of an array's elements, without the .npy header, in hex; null when the file is no whole
 * array: native checks say why.
 */
export async function sha256OfArray(
  path: string,
  signal: AbortSignal = new AbortController().signal,
): Promise<string | null> {
  const hash = createHash('sha256');
  try {
    const source = await openNpyFile(path, signal);
    try {
      for await (const block of source.blocks()) hash.update(block);
    } finally {
      await source.close();
    }
  } catch (error) {
    if (error instanceof ImportFailure) return null;
    throw error;
  }
  return hash.digest('hex');
}
