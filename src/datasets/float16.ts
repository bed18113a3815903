import type { FeatureDtype } from '../records/dataset-record.ts';

/** IEEE 754 binary16 as its bits: JavaScript has no numbers of that type to hold them in. */

/** The largest finite one. */
export const float16Max = 65_504;

/** Called for a finite value that float16 has no room for, with its index among the values. */
export type OnOverflow = (index: number, value: number) => void;

/** Makes a function that gives float16 as float32, which holds every one of them. */
export function float16Widener(): (halves: Uint16Array) => Float32Array {
  const values = Float32Array.from({ length: 1 << 16 }, (_, bits) => {
    const sign = bits >> 15 === 0 ? 1 : -1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    if (exponent === 0) return sign * fraction * 2 ** -24;
    if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
    return sign * (1024 + fraction) * 2 ** (exponent - 25);
  });
  return (halves) => Float32Array.from(halves, (bits) => values[bits] ?? 0);
}

/**
 * The nearest float16 of each number, ties to the even one, as NumPy's `astype(float16)` rounds;
 * what is not a number or infinite stays so. A finite number beyond `float16Max` is for
 * `onOverflow` to refuse.
 */
export function roundToFloat16(
  numbers: Float32Array | Float64Array,
  onOverflow: OnOverflow,
): Uint16Array {
  const halves = new Uint16Array(numbers.length);
  const number = new Float64Array(1);
  const words = new Uint32Array(number.buffer);
  for (let index = 0; index < numbers.length; index += 1) {
    const value = numbers[index] ?? 0;
    number[0] = value;
    const high = words[1] ?? 0;
    const sign = (high >>> 16) & signBit;
    const size = Math.abs(value);
    if (!(size <= float16Max)) {
      if (Number.isFinite(value)) onOverflow(index, value);
      halves[index] = Number.isNaN(value) ? notANumber : sign | infinity;
      continue;
    }
    const exponent = Math.max(((high >>> 20) & 0x7ff) - 1023, exponentMin);
    // In units of the last place, an integer below 2^11 once it is rounded: adding 2^52 rounds it
    // as the processor rounds, to the nearest with ties to the even one.
    const units = size * (unitsPerOne[exponent - exponentMin] ?? 0) + 2 ** 52 - 2 ** 52;
    // A carry out of the fraction moves on into the exponent. Below 2^-14 there is no hidden bit.
    halves[index] = sign | (units + (exponent - exponentMin) * 1024);
  }
  return halves;
}

/** Features for a dataset of this type. They must fit it. */
export function featuresAs(numbers: Float32Array, dtype: FeatureDtype): Float32Array | Uint16Array {
  if (dtype === 'float32') return numbers;
  return roundToFloat16(numbers, (_, value) => {
    throw new RangeError(`${value} is beyond ${float16Max}`);
  });
}

const signBit = 0x8000;
const infinity = 0x7c00;
const notANumber = 0x7e00;
/** Exponent of the smallest normal number, 2^-14. */
const exponentMin = -14;
/** 2^10 / 2^exponent, from the smallest exponent to the largest, 15. */
const unitsPerOne = Float64Array.from({ length: 30 }, (_, at) => 2 ** (10 - (at + exponentMin)));
