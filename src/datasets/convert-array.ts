import { float16Max, float16Widener, roundToFloat16 } from './float16.ts';
import type { NpyType, NpyValues } from './npy.ts';
import { formatCount } from './problems.ts';

/** Elements of one type as those of another, block by block. */

/** Types that a dataset's arrays are stored in. */
export type StoredType = 'int32' | 'uint32' | 'int64' | 'float16' | 'float32';

/** Called for an element that the wanted type has no room for, with its index in the block. */
export type OnOutOfRange = (index: number, value: number | bigint) => void;
export type Converter = (block: NpyValues, onOutOfRange: OnOutOfRange) => NpyValues;

/** `from` is a type that can be `to`: any number as a float, any integer or bool as an integer. */
export function converterOf(from: NpyType, to: StoredType): Converter {
  if (from === to) return (block) => block;
  const isWide = from === 'int64' || from === 'uint64';
  if (to === 'int32') return isWide ? narrow : (block, outside) => toInt32(block, outside);
  if (to === 'uint32') return isWide ? narrowUnsigned : toUint32;
  if (to === 'int64' && from === 'uint64') return (block) => block;
  if (to === 'int64') return from === 'int32' ? widen : toInt64;
  if (from === 'float16') {
    const widenFloat16 = float16Widener();
    return (block) => widenFloat16(block as Uint16Array);
  }
  if (to === 'float32') return toFloat32;
  return (block, outside) => {
    const isWide = block instanceof Float64Array || block instanceof Float32Array;
    return roundToFloat16(isWide ? block : toFloat32(block), outside);
  };
}

function toFloat32(block: NpyValues): Float32Array {
  if (block instanceof BigInt64Array) return Float32Array.from(block, Number);
  return new Float32Array(block);
}

function toInt32(block: NpyValues, onOutOfRange: OnOutOfRange): Int32Array {
  if (block instanceof Uint32Array) {
    for (const [index, value] of block.entries()) {
      if (value > 0x7fffffff) onOutOfRange(index, value);
    }
  }
  return new Int32Array(block as Int32Array);
}

function toUint32(block: NpyValues, onOutOfRange: OnOutOfRange): Uint32Array {
  for (const [index, value] of block.entries()) if (value < 0) onOutOfRange(index, value);
  return new Uint32Array(block as Int32Array);
}

function toInt64(block: NpyValues): BigInt64Array {
  return BigInt64Array.from(block as Int32Array, BigInt);
}

/** int32 to int64, without a BigInt per element. */
function widen(block: NpyValues): BigInt64Array {
  const values = block as Int32Array;
  const words = new Int32Array(2 * values.length);
  for (const [index, value] of values.entries()) {
    words[2 * index] = value;
    words[2 * index + 1] = value >> 31;
  }
  return new BigInt64Array(words.buffer);
}

function narrow(block: NpyValues, onOutOfRange: OnOutOfRange): Int32Array {
  const words = new Int32Array(block.buffer, block.byteOffset, 2 * block.length);
  const values = new Int32Array(block.length);
  for (let index = 0; index < values.length; index += 1) {
    const low = words[2 * index] ?? 0;
    if (words[2 * index + 1] !== low >> 31) {
      onOutOfRange(index, (block as BigInt64Array)[index] ?? 0n);
    }
    values[index] = low;
  }
  return values;
}

function narrowUnsigned(block: NpyValues, onOutOfRange: OnOutOfRange): Uint32Array {
  const words = new Uint32Array(block.buffer, block.byteOffset, 2 * block.length);
  const values = new Uint32Array(block.length);
  for (let index = 0; index < values.length; index += 1) {
    if (words[2 * index + 1] !== 0) onOutOfRange(index, (block as BigInt64Array)[index] ?? 0n);
    values[index] = words[2 * index] ?? 0;
  }
  return values;
}

/** Elements that the type of a dataset has no room for: the first one, and how many. */
export class OutOfRange {
  count = 0;
  #done = 0;
  #at = 0;
  #value: number | bigint = 0;

  see(index: number, value: number | bigint): void {
    if (this.count === 0) {
      this.#at = this.#done + index;
      this.#value = value;
    }
    this.count += 1;
  }

  advance(elements: number): void {
    this.#done += elements;
  }

  /** `columns` is null for a vector, which is one of `type`. */
  describe(columns: number | null, type: NpyType): string {
    const more = this.count > 1 ? ` and ${formatCount(this.count - 1)} more` : '';
    if (columns === null) return `has ${this.#value} at index ${this.#at}, beyond ${type}${more}`;
    const place = `row ${Math.floor(this.#at / columns)}, column ${this.#at % columns}`;
    return (
      `has ${this.#value} at ${place}${more}, beyond ${float16Max}, the largest float16: ` +
      'import the features as float32'
    );
  }
}
