import { describe, expect, test } from 'vitest';
import {
  featuresAs,
  float16Max,
  float16Widener,
  roundToFloat16,
} from '../../../src/datasets/float16.ts';

const widen = float16Widener();
const every = Uint16Array.from({ length: 1 << 16 }, (_, bits) => bits);
const values = widen(every);
const none = () => expect.unreachable();
/** Bits of the finite ones from 0 up. */
const ascending = every.subarray(0, 0x7c00);

describe('a float16', () => {
  test('has the value that its bits stand for', () => {
    const some = [0x0000, 0x8000, 0x0001, 0x03ff, 0x0400, 0x3c00, 0xc000, 0x7bff, 0x7c00, 0xfc00];
    expect([...widen(Uint16Array.from(some))]).toEqual([
      ...[0, -0, 2 ** -24, 1023 * 2 ** -24, 2 ** -14],
      ...[1, -2, float16Max, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
    ]);
    expect([...widen(Uint16Array.of(0x7c01, 0xffff))]).toEqual([Number.NaN, Number.NaN]);
  });

  test('becomes itself again, every one', () => {
    const back = roundToFloat16(values, none);
    const notANumber = every.filter((bits) => (bits & 0x7fff) > 0x7c00);
    for (const bits of notANumber) back[bits] = bits;
    expect(back).toEqual(every);
  });
});

describe('rounding to float16', () => {
  test('goes to the nearest one, and half-way to the even one, between all neighbours', () => {
    const between = (share: number, from: typeof Float32Array | typeof Float64Array) => {
      const numbers = new from(ascending.length - 1).map((_, at) => {
        const low = values[at] ?? 0;
        return low + share * ((values[at + 1] ?? 0) - low);
      });
      return [...roundToFloat16(numbers, none)];
    };
    const lower = [...ascending.subarray(0, -1)];
    const upper = lower.map((bits) => bits + 1);
    const even = lower.map((bits) => bits + (bits & 1));
    expect(between(0.5, Float32Array)).toEqual(even);
    expect(between(0.4999, Float32Array)).toEqual(lower);
    expect(between(0.5001, Float32Array)).toEqual(upper);
    // Rounding to float32 on the way would lose which side of half-way these are on.
    expect(between(0.5 - 2 ** -30, Float64Array)).toEqual(lower);
    expect(between(0.5 + 2 ** -30, Float64Array)).toEqual(upper);
  });

  test('keeps signs, infinities and what is no number', () => {
    const numbers = [
      -0,
      -1.5,
      -1e-9,
      Number.NEGATIVE_INFINITY,
      Number.POSITIVE_INFINITY,
      Number.NaN,
    ];
    const bits = roundToFloat16(Float64Array.from(numbers), none);
    expect([...bits]).toEqual([0x8000, 0xbe00, 0x8000, 0xfc00, 0x7c00, 0x7e00]);
  });

  test('tells of every finite number beyond the largest', () => {
    const told: [number, number][] = [];
    const numbers = [float16Max, 65504.001, -1e300, Number.POSITIVE_INFINITY, -float16Max];
    roundToFloat16(Float64Array.from(numbers), (index, value) => told.push([index, value]));
    expect(told).toEqual([
      [1, 65504.001],
      [2, -1e300],
    ]);
  });

  test('features that were checked before may not be beyond it', () => {
    expect(featuresAs(Float32Array.of(1), 'float32')).toEqual(Float32Array.of(1));
    expect(featuresAs(Float32Array.of(1), 'float16')).toEqual(Uint16Array.of(0x3c00));
    expect(() => featuresAs(Float32Array.of(70_000), 'float16')).toThrow(RangeError);
  });
});
