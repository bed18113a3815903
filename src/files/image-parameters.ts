import { createHash } from 'node:crypto';
import { readRegular } from '../base/regular-file.ts';

/** What of an image (docs/formats/image.md) another job can begin with. */

/** By format: where numbers lie, and the bytes between the header and the parameters. */
const newer = { versions: 240, optimizerVersions: 248, bests: 256, sumsBytes: 128 };
const formats = new Map([
  [2, { versions: 232, optimizerVersions: 240, bests: 248, sumsBytes: 64 }],
  [3, newer],
  // What differs lies behind the parameters.
  [4, newer],
]);
const headerBytesMin = 328;
const digestBytes = 32;
const at = { magic: 0, format: 8, headerBytes: 12, shape: 72 } as const;
const parametersInShape = 5;
const optimizerInShape = 6;

/** The newest parameters of an image, or the best ones so far. Throws a sentence. */
export async function imageParameters(path: string, which: 'BEST' | 'LAST'): Promise<Float32Array> {
  const bytes = await readRegular(path);
  if (
    bytes.length < headerBytesMin + digestBytes ||
    bytes.toString('latin1', 0, 8) !== 'GNDIMG01'
  ) {
    throw new Error(`${path} is no image`);
  }
  const found = bytes.readUInt32LE(at.format);
  const format = formats.get(found);
  if (format === undefined) {
    const known = [...formats.keys()].join(', ');
    throw new Error(`${path} has format ${found}; this gnnd reads ${known}`);
  }
  const end = bytes.length - digestBytes;
  const digest = createHash('sha256').update(bytes.subarray(0, end)).digest();
  if (!digest.equals(bytes.subarray(end))) throw new Error(`${path} is damaged`);
  const u64 = (offset: number) => Number(bytes.readBigUInt64LE(offset));
  const floats = u64(at.shape + 8 * parametersInShape);
  const optimizer = u64(format.optimizerVersions) * u64(at.shape + 8 * optimizerInShape);
  const versions = u64(format.versions);
  if (which === 'BEST' && u64(format.bests) === 0) {
    throw new Error(`${path} knows no best parameters`);
  }
  const first = which === 'BEST' ? versions * floats + optimizer : (versions - 1) * floats;
  const from = bytes.readUInt32LE(at.headerBytes) + format.sumsBytes + 4 * first;
  const copy = new Uint8Array(4 * floats);
  copy.set(bytes.subarray(from, from + copy.length));
  return new Float32Array(copy.buffer);
}
