import type { FieldViolation } from '../base/errors.ts';

/** Collects everything that is wrong with a spec. */
export interface SpecChecker {
  readonly violations: readonly FieldViolation[];
  violate(path: string, description: string): void;
  /** True once `path` or a field below it was violated. */
  failed(path: string): boolean;
}

/** At most this many violations are kept: enough to mend a spec, bounded whatever was sent. */
const violationsMax = 100;

export function createSpecChecker(): SpecChecker {
  const violations: FieldViolation[] = [];
  return {
    violations,
    violate(path, description) {
      if (violations.length < violationsMax) violations.push({ path, description });
    },
    failed: (path) =>
      violations.some(
        (violation) =>
          violation.path === path ||
          violation.path.startsWith(`${path}.`) ||
          violation.path.startsWith(`${path}[`),
      ),
  };
}

/** Paths are those of the daemon's host, which is no Windows. */
export const isAbsolute = (path: string): boolean => path.startsWith('/');

/** A rejected value as people read it, cut where it would fill the screen. */
export function show(value: unknown): string {
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return text.length <= 80 ? text : `${text.slice(0, 77)}...`;
}
