import { createHash } from 'node:crypto';
import { readRegular } from '../base/regular-file.ts';

/** What of an image (docs/formats/image.md) another job can begin with. */

const format = 2;
const headerBytesMin = 328;
/** Between the header and the parameters. */
const sumsBytes = 64;
const digestBytes = 32;
const at = {
  ...{ magic: 0, format: 8, headerBytes: 12 },
  ...{ shape: 72, versions: 232, optimizerVersions: 240, bests: 248 },
} as const;
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
  if (found !== format) throw new Error(`${path} has format ${found}; this gnnd reads ${format}`);
  const end = bytes.length - digestBytes;
  const digest = createHash('sha256').update(bytes.subarray(0, end)).digest();
  if (!digest.equals(bytes.subarray(end))) throw new Error(`${path} is damaged`);
  const u64 = (offset: number) => Number(bytes.readBigUInt64LE(offset));
  const floats = u64(at.shape + 8 * parametersInShape);
  const optimizer = u64(at.optimizerVersions) * u64(at.shape + 8 * optimizerInShape);
  const versions = u64(at.versions);
  if (which === 'BEST' && u64(at.bests) === 0) throw new Error(`${path} knows no best parameters`);
  const first = which === 'BEST' ? versions * floats + optimizer : (versions - 1) * floats;
  const from = bytes.readUInt32LE(at.headerBytes) + sumsBytes + 4 * first;
  const copy = new Uint8Array(4 * floats);
  copy.set(bytes.subarray(from, from + copy.length));
  return new Float32Array(copy.buffer);
}
