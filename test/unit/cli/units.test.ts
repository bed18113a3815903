import { expect, test } from 'vitest';
import {
  formatAge,
  formatBytes,
  formatDuration,
  formatNs,
  formatPercent,
  formatRate,
  parseBytes,
  parseDurationMs,
} from '../../../src/cli/session/units.ts';
import { formatCount } from '../../../src/spec/counted.ts';
import { forAll } from '../../support/random.ts';

test('durations have units and may be put together', () => {
  expect(parseDurationMs('90s')).toBe(90_000);
  expect(parseDurationMs('5m')).toBe(300_000);
  expect(parseDurationMs('2h')).toBe(7_200_000);
  expect(parseDurationMs('1h30m')).toBe(5_400_000);
  expect(parseDurationMs('250ms')).toBe(250);
  expect(parseDurationMs('0.1s')).toBe(100);
  expect(parseDurationMs('1d')).toBe(86_400_000);
});

test('what is no duration is refused, also fractions of a millisecond', () => {
  for (const text of ['', '90', '-5s', '5 m', '5x', '1.s', 's', '0.5ms', '5min']) {
    expect(parseDurationMs(text), text).toBeNull();
  }
});

test('sizes take binary suffixes only', () => {
  expect(parseBytes('512MiB')).toBe(512 * 2 ** 20);
  expect(parseBytes('8GiB')).toBe(8 * 2 ** 30);
  expect(parseBytes('1.5KiB')).toBe(1536);
  expect(parseBytes('7B')).toBe(7);
  for (const text of ['512MB', '512', '1.0001KiB', 'MiB', '-1KiB', '99999999TiB', '1iB']) {
    expect(parseBytes(text), text).toBeNull();
  }
});

test('every whole number of a unit is read back as that number of it', () => {
  forAll(50, (random) => {
    const amount = random.integer(0, 5000);
    expect(parseBytes(`${amount}KiB`)).toBe(amount * 1024);
    expect(parseDurationMs(`${amount}m`)).toBe(amount * 60_000);
  });
});

test('durations are shown in the unit that people use', () => {
  expect(formatDuration(340)).toBe('340 ms');
  expect(formatDuration(12_340)).toBe('12.3 s');
  expect(formatDuration(59_960)).toBe('1m 00s');
  expect(formatDuration(245_000)).toBe('4m 05s');
  expect(formatDuration(7_800_000)).toBe('2h 10m');
  expect(formatDuration(273_600_000)).toBe('3d 4h');
});

test('ages have one unit', () => {
  expect([5000, 300_000, 10_800_000, 864_000_000].map(formatAge)).toEqual([
    '5s',
    '5m',
    '3h',
    '10d',
  ]);
  expect(formatAge(-3000)).toBe('0s');
});

test('numbers have three digits, separators and suffixes', () => {
  expect(formatNs(812)).toBe('812 ns');
  expect(formatNs(14_321)).toBe('14.3 µs');
  expect(formatNs(2_310_000)).toBe('2.31 ms');
  expect(formatNs(999_600_000)).toBe('1.00 s');
  expect(formatBytes(512)).toBe('512 B');
  expect(formatBytes(1.5 * 2 ** 30)).toBe('1.50 GiB');
  expect(formatCount(2_330_240n)).toBe('2,330,240');
  expect(formatCount(999)).toBe('999');
  expect(formatRate(949.6)).toBe('950');
  expect(formatRate(18_420)).toBe('18.4k');
  expect(formatRate(1_234_567)).toBe('1.23M');
  expect(formatPercent(0.7123)).toBe('71.2 %');
});
