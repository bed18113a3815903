import { expect, test } from 'vitest';
import { parseNumber } from '../../../src/datasets/table-columns.ts';
import { forAll, type Random } from '../../support/random.ts';

/** Decimal numbers and what is nearly one. */
function randomText(random: Random): string {
  const digits = () =>
    Array.from({ length: random.integer(0, 12) }, () => random.integer(0, 9)).join('');
  const sign = random.pick(['', '', '-', '+']);
  const exponent = random.chance(0.2)
    ? `e${random.pick(['', '-', '+'])}${random.integer(0, 30)}`
    : '';
  const text = `${sign}${digits()}${random.pick(['', '.', '.'])}${digits()}${exponent}`;
  if (!random.chance(0.2)) return text;
  const at = random.integer(0, text.length);
  return text.slice(0, at) + random.pick(['.', '-', ' ', 'x', 'e', '\u0661']) + text.slice(at);
}

test('numbers are what Number and float32 make of decimals, and nothing else is one', () => {
  forAll(5000, (random) => {
    const text = randomText(random);
    const isDecimal = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text);
    const value = Math.fround(Number(text));
    expect(parseNumber(text), text).toBe(isDecimal && Number.isFinite(value) ? value : null);
  });
});

test('numbers of every length are rounded once', () => {
  const texts = ['0.1', '16777217', '123456789012345', '1234567890123456', '-.000000000000001'];
  for (const text of [...texts, '5.', '-0', '3.4028235e38', '00012.50', '9007199254740993']) {
    expect(parseNumber(text), text).toBe(Math.fround(Number(text)));
  }
  for (const text of ['', '.', '-', '+', '-.', '1.2.3', '1e', '0x10', 'nan', '1 ', '3.5e38']) {
    expect(parseNumber(text), text).toBe(null);
  }
  for (const field of [1.5, -2]) expect(parseNumber(field)).toBe(field);
  for (const field of [Number.NaN, 1e39, [1]]) expect(parseNumber(field)).toBe(null);
});
