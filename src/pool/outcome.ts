import { type ErrorReason, type FieldViolation, GnndError } from '../base/errors.ts';

/** What goes to a thread of the pool and what comes back. Errors lose their class on the way. */

export interface Call {
  /** URL of the module. */
  readonly module: string;
  /** Name of the function that the module exports. */
  readonly name: string;
  readonly input: unknown;
}

export type Outcome =
  | { readonly kind: 'DONE'; readonly value: unknown }
  | { readonly kind: 'FAILED'; readonly error: SentError };

interface SentError {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  /** Code of a native or a system failure; null for all others. */
  readonly code: string | null;
  readonly cause: SentError | null;
  /** Null where it is no GnndError. */
  readonly expected: {
    readonly reason: ErrorReason;
    readonly violations: readonly FieldViolation[];
    readonly resource: string | null;
    readonly metadata: Readonly<Record<string, string>>;
  } | null;
}

export function sent(thrown: unknown): SentError {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const { name, message, stack, cause } = error;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  const expected =
    error instanceof GnndError
      ? {
          reason: error.reason,
          violations: error.violations,
          resource: error.resource,
          metadata: error.metadata,
        }
      : null;
  return { name, message, stack, code, cause: cause === undefined ? null : sent(cause), expected };
}

/** What the task answered; throws what it threw. */
export function answerIn(outcome: Outcome): unknown {
  if (outcome.kind === 'DONE') return outcome.value;
  throw received(outcome.error);
}

function received({ name, message, stack, code, cause, expected }: SentError): Error {
  const because = cause === null ? {} : { cause: received(cause) };
  const error = errorOf(message, because, expected);
  error.name = name;
  if (stack !== undefined) error.stack = stack;
  return code === null ? error : Object.assign(error, { code });
}

function errorOf(
  message: string,
  because: { readonly cause?: Error },
  expected: SentError['expected'],
): Error {
  if (expected === null) return new Error(message, because);
  const { reason, resource, ...details } = expected;
  const named = resource === null ? {} : { resource };
  return new GnndError(reason, message, { ...details, ...named, ...because });
}
