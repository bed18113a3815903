import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';

/** Numbers and times for people. */

export function percent(share: number, digits = 1): string {
  return `${(100 * share).toFixed(digits)}\u00a0%`;
}

/** Three significant digits. */
export function short(value: number): string {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
}

const units: readonly (readonly [number, string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
  [1, 'ms'],
  [1e-3, 'µs'],
];

/** The two largest units from a minute on, one number below. */
export function duration(ms: number): string {
  const [size, unit] = units.find(([unitMs]) => ms >= unitMs) ?? [1e-6, 'ns'];
  if (size < 60_000) return `${short(ms / size)} ${unit}`;
  const whole = Math.floor(ms / size);
  const [nextSize, nextUnit] = units[units.findIndex(([unitMs]) => unitMs === size) + 1] ?? [1, ''];
  const rest = Math.floor((ms - whole * size) / nextSize);
  return rest === 0 ? `${whole} ${unit}` : `${whole} ${unit} ${rest} ${nextUnit}`;
}

/** A time in one whole unit: `50 s`, `3 min`, `2 d`. */
export function age(ms: number): string {
  const [size, unit] = units.find(([unitMs]) => unitMs >= 1000 && ms >= unitMs) ?? [1000, 's'];
  return `${Math.floor(ms / size)} ${unit}`;
}

/** Plans and notices begin in lower case: gnnctl has a title before them. */
export function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

export function count(value: number | bigint): string {
  return value.toLocaleString('en');
}

export function bytes(value: number): string {
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = value < 1 ? 0 : Math.min(names.length - 1, Math.floor(Math.log2(value) / 10));
  return `${short(value / 2 ** (10 * power))} ${names[power]}`;
}

/** Null for a time that is not set. */
export function msOf(time: Timestamp | undefined): number | null {
  return time === undefined ? null : timestampMs(time);
}

/** `jobs/mine` is `mine`. */
export function idOf(name: string): string {
  return name.slice(name.indexOf('/') + 1);
}
