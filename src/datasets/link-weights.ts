import { join } from 'node:path';
import type { LinkArray } from './check-links.ts';
import type { ImportContext } from './import-context.ts';
import { labelNumbers } from './label-arrays.ts';
import { openNpyFile } from './npy.ts';
import { badFile, formatCount, ImportFailure } from './problems.ts';

/** How much each link of training counts beside the others, as `links/train_weights.npy` has it. */

/** Of sides that nothing is learnt from. */
const unread = ['val_weights.npy', 'valid_weights.npy', 'test_weights.npy'];

interface Files {
  readonly folder: string;
  readonly names: readonly string[];
  /** By the names that it may have, the first of which there is. */
  readonly file: string | null;
  /** The links of training; null: something is wrong with them. */
  readonly pairs: LinkArray | null;
}

/** [links], null where there are none, or something is wrong with them, which is told. */
export async function readLinkWeights(
  context: ImportContext,
  { folder, names, file, pairs }: Files,
): Promise<Float32Array | null> {
  const { problems } = context;
  for (const name of unread.filter((each) => names.includes(each))) {
    problems.add(`links/${name}`, 'is not read: links of training alone have weights');
  }
  if (file === null) return null;
  try {
    return await weightsIn(context, { path: join(folder, file), name: `links/${file}`, pairs });
  } catch (error) {
    if (!(error instanceof ImportFailure)) throw error;
    for (const { description } of error.problems) problems.add(`links/${file}`, description);
    return null;
  }
}

async function weightsIn(
  { signal }: ImportContext,
  {
    path,
    name,
    pairs,
  }: { readonly path: string; readonly name: string; readonly pairs: LinkArray | null },
): Promise<Float32Array> {
  const source = await openNpyFile(path, signal);
  try {
    const { type, shape } = source.header;
    const [rows = 0, columns = 1] = shape;
    if (shape.length === 0 || shape.length > 2 || columns !== 1) {
      throw badFile(name, `has shape (${shape.join(', ')}), expected [links]`);
    }
    const links = pairs === null ? rows : pairs.values.length / 2;
    if (rows !== links) {
      const expected = `expected ${formatCount(links)}, one for each link`;
      throw badFile(name, `has ${formatCount(rows)} rows: ${expected}`);
    }
    const numbersOf = labelNumbers(type);
    const weights = new Float32Array(rows);
    let at = 0;
    let sum = 0;
    for await (const block of source.blocks()) {
      const numbers = numbersOf(block);
      for (let index = 0; index < numbers.length; index += 1, at += 1) {
        const weight = Math.fround(Number(numbers[index]));
        if (!(weight >= 0) || !Number.isFinite(weight)) {
          const expected = 'expected a finite number from 0 on for each link';
          throw badFile(name, `has ${numbers[index]} at index ${at}: ${expected}`);
        }
        weights[at] = weight;
        sum += weight;
      }
    }
    if (sum > 0) return weights;
    throw badFile(name, 'has no weight above 0: expected one or more, or no such file');
  } finally {
    await source.close();
  }
}
