import { randomUUID } from 'node:crypto';
import { create, type DescMessage, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type Any, anyPack } from '@bufbuild/protobuf/wkt';
import { Metadata, type StatusObject, status } from '@grpc/grpc-js';
import { type ErrorReason, errorReasons, GnndError, messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { type GrpcCode, grpcCodes } from '../metrics/labels.ts';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from './gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from './gen/google/rpc/status_pb.ts';

/**
 * Errors as clients see them: a google.rpc.Status in `grpc-status-details-bin` with exactly one
 * ErrorInfo of the domain `gnnd` and, by code, one further detail (docs/api.md).
 */

/** The extra detail of a reason; `resource` names the type of resource it is about. */
type Detail =
  | { readonly kind: 'fields' }
  | { readonly kind: 'resource'; readonly type: string }
  | { readonly kind: 'precondition' }
  | { readonly kind: 'retry'; readonly delaySeconds: number }
  | { readonly kind: 'none' };

interface ReasonStatus {
  readonly code: status;
  readonly detail: Detail;
}

const fields: Detail = { kind: 'fields' };
const precondition: Detail = { kind: 'precondition' };
const none: Detail = { kind: 'none' };
const resource = (type: string): Detail => ({ kind: 'resource', type });
const retryAfter = (delaySeconds: number): Detail => ({ kind: 'retry', delaySeconds });

/** Every reason, its code and its detail. */
export const reasonStatuses: Readonly<Record<ErrorReason, ReasonStatus>> = {
  SPEC_INVALID: { code: status.INVALID_ARGUMENT, detail: fields },
  FILTER_INVALID: { code: status.INVALID_ARGUMENT, detail: fields },
  PAGE_TOKEN_INVALID: { code: status.INVALID_ARGUMENT, detail: fields },
  FIELD_MASK_INVALID: { code: status.INVALID_ARGUMENT, detail: fields },
  REQUEST_ID_INVALID: { code: status.INVALID_ARGUMENT, detail: fields },
  JOB_NOT_FOUND: { code: status.NOT_FOUND, detail: resource('gnnd.v1.Job') },
  DATASET_NOT_FOUND: { code: status.NOT_FOUND, detail: resource('gnnd.v1.Dataset') },
  DEVICE_NOT_FOUND: { code: status.NOT_FOUND, detail: resource('gnnd.v1.Device') },
  OPERATION_NOT_FOUND: { code: status.NOT_FOUND, detail: resource('gnnd.v1.Operation') },
  PROPAGATION_NOT_FOUND: { code: status.NOT_FOUND, detail: resource('gnnd.v1.Propagation') },
  JOB_EXISTS: { code: status.ALREADY_EXISTS, detail: resource('gnnd.v1.Job') },
  DATASET_EXISTS: { code: status.ALREADY_EXISTS, detail: resource('gnnd.v1.Dataset') },
  REQUEST_ID_REUSED: { code: status.ALREADY_EXISTS, detail: none },
  JOB_STATE_CONFLICT: { code: status.FAILED_PRECONDITION, detail: precondition },
  JOB_NOT_TERMINAL: { code: status.FAILED_PRECONDITION, detail: precondition },
  DATASET_NOT_READY: { code: status.FAILED_PRECONDITION, detail: precondition },
  DATASET_CHANGED: { code: status.FAILED_PRECONDITION, detail: precondition },
  DATASET_IN_USE: { code: status.FAILED_PRECONDITION, detail: precondition },
  PROPAGATION_IN_USE: { code: status.FAILED_PRECONDITION, detail: precondition },
  PLAN_INFEASIBLE: { code: status.FAILED_PRECONDITION, detail: precondition },
  REVISION_COMPACTED: { code: status.OUT_OF_RANGE, detail: none },
  REVISION_IN_FUTURE: { code: status.OUT_OF_RANGE, detail: none },
  LOG_CURSOR_EXPIRED: { code: status.OUT_OF_RANGE, detail: none },
  JOB_QUEUE_FULL: { code: status.RESOURCE_EXHAUSTED, detail: retryAfter(30) },
  STATE_DISK_FULL: { code: status.RESOURCE_EXHAUSTED, detail: retryAfter(60) },
  DAEMON_STARTING: { code: status.UNAVAILABLE, detail: retryAfter(1) },
  DAEMON_STOPPING: { code: status.UNAVAILABLE, detail: retryAfter(5) },
  STORE_UNAVAILABLE: { code: status.UNAVAILABLE, detail: retryAfter(5) },
  STORE_CORRUPT: { code: status.INTERNAL, detail: none },
  DATASET_CORRUPT: { code: status.DATA_LOSS, detail: resource('gnnd.v1.Dataset') },
  CHECKPOINT_CORRUPT: { code: status.DATA_LOSS, detail: resource('gnnd.v1.Job') },
  OPERATION_CANCELLED: { code: status.CANCELLED, detail: none },
  UNAUTHENTICATED: { code: status.UNAUTHENTICATED, detail: none },
  ACCESS_DENIED: { code: status.PERMISSION_DENIED, detail: none },
  INTERNAL: { code: status.INTERNAL, detail: none },
};

/** The code of a reason that may come from outside the table, such as a stored one. */
export function codeOfReason(reason: string): status {
  const known = errorReasons.find((candidate) => candidate === reason);
  return known === undefined ? status.INTERNAL : reasonStatuses[known].code;
}

export interface RpcStatus extends StatusObject {
  readonly reason: ErrorReason | null;
}

/** An error of a protocol that has its own rules, such as grpc.health.v1: code and text only. */
export class ProtocolError extends Error {
  readonly code: status;

  constructor(code: status, message: string) {
    super(message);
    this.name = 'ProtocolError';
    this.code = code;
  }
}

/**
 * What the client is told of anything that was thrown. Expected failures say what they are;
 * everything else says an incident id only, and the log says the rest.
 */
export function statusOf(error: unknown, log: Log): RpcStatus {
  if (error instanceof ProtocolError) {
    const metadata = new Metadata();
    return { code: error.code, details: error.message, metadata, reason: null };
  }
  if (error instanceof GnndError && error.reason !== 'INTERNAL') return expected(error);
  const incidentId = randomUUID();
  log.error('api.internal_error', {
    incidentId,
    error: messageOf(error),
    stack: error instanceof Error ? error.stack : undefined,
    cause: error instanceof Error && error.cause !== undefined ? messageOf(error.cause) : undefined,
  });
  return expected(
    new GnndError('INTERNAL', `internal error; the daemon's log has it as incident ${incidentId}`, {
      metadata: { incidentId },
    }),
  );
}

/** Header lists of HTTP/2 are limited: a larger trailer becomes an opaque RESOURCE_EXHAUSTED. */
const detailBytesMax = 4096;
const violationsMax = 20;
const textMax = 1024;
const descriptionMax = 300;

function expected(error: GnndError): RpcStatus {
  const { code, detail } = reasonStatuses[error.reason];
  const message = cut(error.message, textMax);
  let violations = detail.kind === 'fields' ? error.violations.slice(0, violationsMax) : [];
  for (;;) {
    const truncated = violations.length < error.violations.length && detail.kind === 'fields';
    const info = pack(ErrorInfoSchema, {
      reason: error.reason,
      domain: 'gnnd',
      metadata: {
        ...shortened(error.metadata),
        ...(truncated ? { truncated: 'true', violations: String(error.violations.length) } : {}),
      },
    });
    const further = furtherDetail(error, message, detail, violations);
    const details = further === null ? [info] : [info, further];
    const bytes = toBinary(StatusSchema, create(StatusSchema, { code, message, details }));
    if (bytes.length <= detailBytesMax || violations.length === 0) {
      const metadata = new Metadata();
      metadata.set('grpc-status-details-bin', Buffer.from(bytes));
      return { code, details: message, metadata, reason: error.reason };
    }
    violations = violations.slice(0, -1);
  }
}

function furtherDetail(
  error: GnndError,
  message: string,
  detail: Detail,
  violations: GnndError['violations'],
): Any | null {
  switch (detail.kind) {
    case 'fields':
      return pack(BadRequestSchema, {
        fieldViolations: violations.map((violation) => ({
          field: cut(violation.path, descriptionMax),
          description: cut(violation.description, descriptionMax),
        })),
      });
    case 'resource':
      return pack(ResourceInfoSchema, {
        resourceType: detail.type,
        resourceName: cut(error.resource ?? '', descriptionMax),
        description: cut(message, descriptionMax),
      });
    case 'precondition': {
      const subject = cut(error.resource ?? '', descriptionMax);
      const description = cut(message, descriptionMax);
      return pack(PreconditionFailureSchema, {
        violations: [{ type: 'STATE', subject, description }],
      });
    }
    case 'retry':
      return pack(RetryInfoSchema, { retryDelay: { seconds: BigInt(detail.delaySeconds) } });
    case 'none':
      return null;
  }
}

function pack<D extends DescMessage>(schema: D, init: MessageInitShape<D>): Any {
  return anyPack(schema, create(schema, init));
}

function shortened(metadata: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(metadata).map(([key, value]) => [key, cut(value, descriptionMax)]),
  );
}

/** Also mends half characters, which neither a trailer nor protobuf can carry. */
function cut(text: string, lengthMax: number): string {
  const short = text.length <= lengthMax ? text : `${text.slice(0, lengthMax - 3)}...`;
  return Buffer.from(short).toString();
}

/** A status code as metrics spell it. */
export function codeName(code: status): GrpcCode {
  return grpcCodes[code] ?? 'Unknown';
}
