/**
 * The one error that crosses our boundaries: what went wrong, in a stable word for code and in a
 * sentence for people. Messages say what was attempted, with which value, and what was expected.
 */

/** Stable reasons of API errors; the same strings appear in `google.rpc.ErrorInfo.reason`. */
export const errorReasons = [
  'SPEC_INVALID',
  'FILTER_INVALID',
  'PAGE_TOKEN_INVALID',
  'FIELD_MASK_INVALID',
  'REQUEST_ID_INVALID',
  'JOB_NOT_FOUND',
  'DATASET_NOT_FOUND',
  'DEVICE_NOT_FOUND',
  'OPERATION_NOT_FOUND',
  'PROPAGATION_NOT_FOUND',
  'JOB_EXISTS',
  'DATASET_EXISTS',
  'REQUEST_ID_REUSED',
  'JOB_STATE_CONFLICT',
  'JOB_NOT_TERMINAL',
  'DATASET_NOT_READY',
  'DATASET_CHANGED',
  'DATASET_IN_USE',
  'PROPAGATION_IN_USE',
  'PLAN_INFEASIBLE',
  'REVISION_COMPACTED',
  'REVISION_IN_FUTURE',
  'LOG_CURSOR_EXPIRED',
  'JOB_QUEUE_FULL',
  'STATE_DISK_FULL',
  'DAEMON_STARTING',
  'DAEMON_STOPPING',
  'STORE_UNAVAILABLE',
  'STORE_CORRUPT',
  'DATASET_CORRUPT',
  'CHECKPOINT_CORRUPT',
  'OPERATION_CANCELLED',
  'UNAUTHENTICATED',
  'ACCESS_DENIED',
  'INTERNAL',
] as const;

export type ErrorReason = (typeof errorReasons)[number];

/** One thing wrong with a request: the path of the field as the user wrote it, and why. */
export interface FieldViolation {
  /** For example `spec.training.batch_size`. */
  readonly path: string;
  readonly description: string;
}

export interface GnndErrorDetails {
  /** All violations at once, never only the first. */
  readonly violations?: readonly FieldViolation[];
  /** The resource the error is about, for example `jobs/mine`. */
  readonly resource?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** An expected failure with a stable reason. Anything else that is thrown is a bug of ours. */
export class GnndError extends Error {
  readonly reason: ErrorReason;
  readonly violations: readonly FieldViolation[];
  readonly resource: string | null;
  readonly metadata: Readonly<Record<string, string>>;

  constructor(reason: ErrorReason, message: string, details: GnndErrorDetails = {}) {
    super(message, details.cause === undefined ? {} : { cause: details.cause });
    this.name = 'GnndError';
    this.reason = reason;
    this.violations = details.violations ?? [];
    this.resource = details.resource ?? null;
    this.metadata = details.metadata ?? {};
  }
}

const namedMax = 5;

/** The first few of many names, and how many more there are. */
export function someOf(names: readonly string[]): string {
  const shown = names.slice(0, namedMax).join(', ');
  return names.length > namedMax ? `${shown} and ${names.length - namedMax} more` : shown;
}

/** A sentence of any thrown value, for logs and wrapped messages. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Marks the impossible branch of an exhaustive switch. */
export function unreachable(value: never): never {
  throw new Error(`unreachable value: ${JSON.stringify(value)}`);
}
