import { converterOf } from './convert-array.ts';
import { elementCount, type NpyHeader, type NpySource, type NpyValues } from './npy.ts';
import { badFile, formatCount } from './problems.ts';

/** Arrays that say which nodes are in a split: their ids in any order, or masks. */

/** Whether an array is a mask: bool, or called so whatever its type. */
export function isMaskArray(name: string, { type }: NpyHeader): boolean {
  return type === 'bool' || name.endsWith('_mask');
}

/** The column of a mask that is to be read. Throws ImportFailure where that is not decided. */
export function maskColumn({ path, header }: NpySource, split: string | null): number {
  const columns = header.shape[1] ?? 1;
  if (columns === 1) return 0;
  const column = split !== null && /^\d{1,9}$/.test(split) ? Number(split) : columns;
  if (column < columns) return column;
  const what = `has shape (${header.shape.join(', ')}), ${formatCount(columns)} splits`;
  const wrong = split === null ? '' : `, and none is '${split}'`;
  throw badFile(path, `${what}${wrong}: choose one with split, 0 to ${columns - 1}`);
}

/**
 * The nodes of a split, ascending. `column` is that of a mask; null: the array has ids. Throws
 * ImportFailure for a mask of other numbers than 0 and 1.
 */
export async function splitIds(
  source: NpySource,
  column: number | null,
  onBlock: (block: NpyValues) => void,
): Promise<BigInt64Array> {
  return column === null ? await ids(source, onBlock) : await masked(source, column, onBlock);
}

async function ids(source: NpySource, onBlock: (block: NpyValues) => void) {
  const { path, header } = source;
  const { type, shape } = header;
  if ((shape[1] ?? 1) > 1) {
    const expected = 'expected node ids in one axis, or masks (bool) in columns';
    throw badFile(path, `has ${type} (${shape.join(', ')}), ${expected}`);
  }
  const found = new BigInt64Array(elementCount(shape));
  const convert = converterOf(type, 'int64');
  let at = 0;
  for await (const block of source.blocks()) {
    onBlock(block);
    found.set(convert(block, () => undefined) as BigInt64Array, at);
    at += block.length;
  }
  return found.sort();
}

async function masked(
  source: NpySource,
  column: number,
  onBlock: (block: NpyValues) => void,
): Promise<BigInt64Array> {
  const columns = source.header.shape[1] ?? 1;
  const marked: number[] = [];
  let at = 0;
  for await (const block of source.blocks()) {
    onBlock(block);
    for (let index = (column - (at % columns) + columns) % columns; index < block.length; ) {
      const value = Number(block[index] ?? 0);
      if (value === 1) marked.push((at + index - column) / columns);
      else if (value !== 0) {
        const row = (at + index - column) / columns;
        throw badFile(source.path, `has ${value} at row ${row}, expected a mask of 0 and 1`);
      }
      index += columns;
    }
    at += block.length;
  }
  return BigInt64Array.from(marked, BigInt);
}
