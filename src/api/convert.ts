import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';

/** What the conversions between messages and the nouns of `spec/` share. */

/** 64-bit fields are bigints in messages; measured values may carry fractions. */
export function int64(value: number): bigint {
  return Number.isFinite(value) ? BigInt(Math.round(value)) : 0n;
}

export function timestamp(atMs: number): Timestamp {
  return timestampFromMs(Math.floor(atMs));
}

/** Absent where there is no time. */
export function optionalTimestamp(atMs: number | null): Timestamp | undefined {
  return atMs === null ? undefined : timestamp(atMs);
}

/**
 * The name of an enum's number; undefined for 0, which is "not set". A number that this version
 * does not know becomes its decimal digits, a name that no check accepts: proto enums are open, and
 * the check that lists every violation is the one to refuse it.
 */
export function enumName<N extends string>(
  names: Readonly<Record<number, string>>,
  value: number,
): N | undefined {
  if (value === 0) return undefined;
  return (names[value] ?? String(value)) as N;
}
