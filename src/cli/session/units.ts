/** Durations, sizes and numbers: as people write them, and as people read them. */

const msByUnit: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** `90s`, `1h30m`, `250ms` in whole milliseconds; null when it is none. A unit is required. */
export function parseDurationMs(text: string): number | null {
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) return null;
  let totalMs = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) {
    totalMs += Number(amount) * (msByUnit[unit ?? ''] ?? Number.NaN);
  }
  const rounded = Math.round(totalMs);
  // Binary fractions of tenths are not exact: 0.1s must still be 100 ms.
  return Number.isSafeInteger(rounded) && Math.abs(rounded - totalMs) < 1e-6 ? rounded : null;
}

const binaryUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** `512MiB`, `1.5GiB`, `100B` in whole bytes; null when it is none. Binary suffixes only. */
export function parseBytes(text: string): number | null {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?) ?([KMGT]i)?B$/.exec(text) ?? [];
  if (amount === undefined) return null;
  const power = ' KMGT'.indexOf(unit.charAt(0) || ' ');
  const bytes = Number(amount) * 1024 ** power;
  return Number.isSafeInteger(bytes) ? bytes : null;
}

/** `340 ms`, `12.3 s`, `4m 05s`, `2h 10m`, `3d 4h`. */
export function formatDuration(durationMs: number): string {
  if (durationMs < 1000) return `${Math.round(durationMs)} ms`;
  const seconds = durationMs / 1000;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const two = (value: number) => String(value).padStart(2, '0');
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${two(whole % 60)}s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)}h ${two(minutes % 60)}m`;
  return `${Math.floor(minutes / 1440)}d ${Math.floor((minutes % 1440) / 60)}h`;
}

/** How long ago, in one unit: `12s`, `4m`, `3h`, `9d`. */
export function formatAge(ageMs: number): string {
  const seconds = Math.max(0, Math.floor(ageMs / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

/** Text of nanoseconds, with three digits: `812 ns`, `14.3 µs`, `2.31 ms`, `1.20 s`. */
export function formatNs(durationNs: number): string {
  const units = ['ns', 'µs', 'ms', 's'] as const;
  let value = durationNs;
  let index = 0;
  while (value >= 999.5 && index < units.length - 1) {
    value /= 1000;
    index += 1;
  }
  return `${index === 0 ? Math.round(value) : threeDigits(value)} ${units[index]}`;
}

/** `512 B`, `1.50 GiB`. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let index = 0;
  while (value >= 1023.5 && index < binaryUnits.length - 1) {
    value /= 1024;
    index += 1;
  }
  return `${index === 0 ? value : threeDigits(value)} ${binaryUnits[index]}`;
}

/** With three digits and a suffix: `950`, `18.4k`, `1.23M`. */
export function formatRate(value: number): string {
  const suffixes = ['', 'k', 'M', 'G'] as const;
  let rest = value;
  let index = 0;
  while (rest >= 999.5 && index < suffixes.length - 1) {
    rest /= 1000;
    index += 1;
  }
  return index === 0 ? String(Math.round(rest)) : `${threeDigits(rest)}${suffixes[index]}`;
}

/** A share from 0 to 1 as `71.2 %`. */
export function formatPercent(share: number, digits = 1): string {
  return `${(share * 100).toFixed(digits)} %`;
}

function threeDigits(value: number): string {
  if (value >= 99.95) return value.toFixed(0);
  return value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}
