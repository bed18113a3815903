import type { FieldViolation } from '../base/errors.ts';
import type { Range } from './limits.ts';

/** A half-open or open interval of real numbers. */
export interface Interval {
  readonly holds: (value: number) => boolean;
  /** As shown to people, for example `[0, 1)`. */
  readonly shown: string;
}

/** A share that leaves something over, also after rounding to the float32 that kernels use. */
export const share: Interval = {
  holds: (value) => value >= 0 && Math.fround(value) < 1,
  shown: '[0, 1)',
};
export const positive: Interval = { holds: (value) => value > 0, shown: 'above 0' };
export const decay: Interval = {
  holds: (value) => value > 0 && value <= 1,
  shown: 'in (0, 1]',
};
export const wholeShare: Interval = {
  holds: (value) => value >= 0 && value <= 1,
  shown: 'in [0, 1]',
};
export const notNegative: Interval = { holds: (value) => value >= 0, shown: '0 or more' };

/**
 * Collects everything that is wrong with a spec. Each method answers a usable value whatever it
 * was given, so that checking goes on after the first violation.
 */
export interface SpecChecker {
  readonly violations: readonly FieldViolation[];
  violate(path: string, description: string): void;
  /** True once `path` or a field below it was violated. */
  failed(path: string): boolean;
  integer(path: string, value: number | undefined, range: Range, fallback: number): number;
  real(path: string, value: number | undefined, interval: Interval, fallback: number): number;
  flag(path: string, value: boolean | undefined, fallback: boolean): boolean;
  choice<T extends string>(
    path: string,
    value: T | undefined,
    choices: readonly T[],
    fallback: T,
  ): T;
}

/** At most this many violations are kept: enough to mend a spec, bounded whatever was sent. */
const violationsMax = 100;

export function createSpecChecker(): SpecChecker {
  const violations: FieldViolation[] = [];
  const violate = (path: string, description: string) => {
    if (violations.length < violationsMax) violations.push({ path, description });
  };
  return {
    violations,
    violate,
    failed: (path) =>
      violations.some(
        (violation) =>
          violation.path === path ||
          violation.path.startsWith(`${path}.`) ||
          violation.path.startsWith(`${path}[`),
      ),
    integer(path, value, range, fallback) {
      if (value === undefined) return fallback;
      if (Number.isInteger(value) && value >= range.min && value <= range.max) return value;
      violate(path, `${show(value)}: expected an integer from ${range.min} to ${range.max}`);
      return fallback;
    },
    real(path, value, interval, fallback) {
      if (value === undefined) return fallback;
      if (Number.isFinite(value) && interval.holds(value)) return value;
      violate(path, `${show(value)}: expected a finite number ${interval.shown}`);
      return fallback;
    },
    flag(path, value, fallback) {
      if (value === undefined) return fallback;
      if (typeof value === 'boolean') return value;
      violate(path, `${show(value)}: expected true or false`);
      return fallback;
    },
    choice(path, value, choices, fallback) {
      if (value === undefined) return fallback;
      if (choices.includes(value)) return value;
      violate(path, `${show(value)}: expected one of ${choices.join(', ')}`);
      return fallback;
    },
  };
}

/** A field that only `owner` reads: unset, or `neutral` as a resolved spec says it. */
export function unusedField<T extends number>(
  check: SpecChecker,
  path: string,
  value: number | undefined,
  neutral: T,
  owner: string,
): T {
  if (value !== undefined && value !== neutral) {
    check.violate(path, `${show(value)}: only for ${owner}`);
  }
  return neutral;
}

/** A rejected value as people read it, cut where it would fill the screen. */
export function show(value: unknown): string {
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return text.length <= 80 ? text : `${text.slice(0, 77)}...`;
}
