import { converterOf } from './convert-array.ts';
import { elementCount, type NpyHeader, type NpySource, type NpyValues } from './npy.ts';
import { badFile, formatCount } from './problems.ts';

/** Arrays that say which nodes are in a split: their ids in any order, or masks. */

/**
 * Whether an array is a mask by its header: bool, or called so whatever its type, or a column for
 * each of several splits. Whole numbers in one axis may be one, too, which splitIds finds out.
 */
export function isMaskArray(
  name: string,
  { type, shape }: NpyHeader,
  numNodes: number | undefined,
): boolean {
  if (type === 'bool' || name.endsWith('_mask')) return true;
  return shape[0] === numNodes && (shape[1] ?? 1) > 1;
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
 * The nodes of a split, ascending. `column` is that of a mask; null: the array has ids, or a mask
 * of 0 and 1 that nothing in its header tells. Throws ImportFailure for a mask of other numbers.
 */
export async function splitIds(
  source: NpySource,
  { column, numNodes }: { readonly column: number | null; readonly numNodes: number | undefined },
  onBlock: (block: NpyValues) => void,
): Promise<BigInt64Array> {
  if (column !== null) return await masked(source, column, onBlock);
  const found = await ids(source, onBlock);
  return maskedIds(source.path, found, numNodes) ?? found.sort();
}

/**
 * The nodes that numbers mark as a mask; null where they are ids. One that comes twice cannot be an
 * id, so that 0 and 1 are a mask as soon as there are more than two. Throws ImportFailure for a
 * mask of another length than there are nodes.
 */
function maskedIds(
  path: string,
  numbers: BigInt64Array,
  numNodes: number | undefined,
): BigInt64Array | null {
  const isRepeated = numbers.length > 2 || (numbers.length === 2 && numbers[0] === numbers[1]);
  if (!isRepeated || !numbers.every((number) => number === 0n || number === 1n)) return null;
  if (numNodes !== undefined && numbers.length !== numNodes) {
    const found = `has ${formatCount(numbers.length)} values of 0 and 1, which are a mask`;
    throw badFile(path, `${found}: expected ${formatCount(numNodes)}, one for each node`);
  }
  const marked: bigint[] = [];
  for (const [node, number] of numbers.entries()) if (number === 1n) marked.push(BigInt(node));
  return BigInt64Array.from(marked);
}

async function ids(source: NpySource, onBlock: (block: NpyValues) => void) {
  const { path, header } = source;
  const { type, shape } = header;
  if ((shape[1] ?? 1) > 1) {
    const expected = 'expected node ids in one axis, or masks in columns, a row for each node';
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
  return found;
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
