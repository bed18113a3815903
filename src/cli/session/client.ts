import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { anyUnpack, durationMs } from '@bufbuild/protobuf/wkt';
import * as grpc from '@grpc/grpc-js';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from '../../api/gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../../api/gen/google/rpc/status_pb.ts';
import { systemClock } from '../../base/clock.ts';
import type { FieldViolation } from '../../base/errors.ts';

/**
 * Calls to any service that protobuf-es describes, over grpc-js:
 * `client.unary(JobService.method.getJob, { name })`.
 */
export interface ApiClient {
  readonly address: string;
  /** Rejects with an ApiError, or with the signal's reason. */
  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options?: CallOptions,
  ): Promise<MessageShape<O>>;
  /** Messages until the server ends the stream; throws as `unary` rejects. */
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    options?: CallOptions,
  ): AsyncGenerator<MessageShape<O>, void, void>;
  close(): void;
}

export interface CallOptions {
  /** Unset: no deadline. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** A call that did not end with OK, with the google.rpc details that came with it. */
export class ApiError extends Error {
  readonly code: grpc.status;
  /** Reason in the ErrorInfo, e.g. JOB_NOT_FOUND; empty when the answer was not gnnd's. */
  readonly reason: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly violations: readonly FieldViolation[];
  /** After which time the server wants to be asked again; null when it does not say. */
  readonly retryDelayMs: number | null;

  constructor(error: grpc.ServiceError) {
    super(error.details === '' ? error.message : error.details, { cause: error });
    this.name = 'ApiError';
    this.code = error.code;
    const details = detailsOf(error.metadata);
    this.reason = details.reason;
    this.metadata = details.metadata;
    this.violations = details.violations;
    this.retryDelayMs = details.retryDelayMs;
  }
}

interface ErrorDetails {
  reason: string;
  metadata: Readonly<Record<string, string>>;
  violations: readonly FieldViolation[];
  retryDelayMs: number | null;
}

function detailsOf(metadata: grpc.Metadata): ErrorDetails {
  const found: ErrorDetails = { reason: '', metadata: {}, violations: [], retryDelayMs: null };
  const [bytes] = metadata.get('grpc-status-details-bin');
  if (!Buffer.isBuffer(bytes)) return found;
  for (const detail of statusDetails(bytes)) {
    const info = anyUnpack(detail, ErrorInfoSchema);
    if (info !== undefined) {
      found.reason = info.reason;
      found.metadata = info.metadata;
    }
    const request = anyUnpack(detail, BadRequestSchema);
    if (request !== undefined) {
      found.violations = request.fieldViolations.map(({ field, description }) => ({
        path: field,
        description,
      }));
    }
    const retry = anyUnpack(detail, RetryInfoSchema);
    if (retry !== undefined) {
      found.retryDelayMs = retry.retryDelay === undefined ? 0 : durationMs(retry.retryDelay);
    }
  }
  return found;
}

/** Details are a courtesy: bytes that cannot be read leave the code and its message. */
function statusDetails(bytes: Buffer) {
  try {
    return fromBinary(StatusSchema, bytes).details;
  } catch {
    return [];
  }
}

const channelOptions: grpc.ChannelOptions = {
  // A daemon that restarts is back within seconds; grpc-js would wait up to two minutes.
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1000,
  // The daemon is on this host or beside it: never behind a proxy of the web.
  'grpc.enable_http_proxy': 0,
  'grpc.keepalive_time_ms': 30_000,
};

/** How a client says who it is, and knows who answers. */
export interface Identity {
  /** A bearer token; null: none. */
  readonly token: string | null;
  /** Null: no encryption. */
  readonly tls: ClientTls | null;
}

/** PEM; null: what the host trusts, and no certificate of one's own. */
export interface ClientTls {
  readonly ca: Buffer | null;
  readonly pair: { readonly cert: Buffer; readonly key: Buffer } | null;
}

const anonymous: Identity = { token: null, tls: null };

/** `address` is a gRPC target: unix:PATH or HOST:PORT. The first call connects. */
export function createApiClient(address: string, { token, tls } = anonymous): ApiClient {
  const credentials =
    tls === null
      ? grpc.credentials.createInsecure()
      : grpc.credentials.createSsl(tls.ca, tls.pair?.key ?? null, tls.pair?.cert ?? null);
  const client = new grpc.Client(address, credentials, channelOptions);
  const metadataOf = () => {
    const metadata = new grpc.Metadata();
    if (token !== null) metadata.set('authorization', `Bearer ${token}`);
    return metadata;
  };
  return {
    address,
    unary(method, init, options = {}) {
      return new Promise((resolve, reject) => {
        options.signal?.throwIfAborted();
        const cancel = () => call.cancel();
        const call = client.makeUnaryRequest(
          pathOf(method),
          serializerOf(method.input),
          deserializerOf(method.output),
          create(method.input, init),
          metadataOf(),
          optionsOf(options),
          (error, response) => {
            options.signal?.removeEventListener('abort', cancel);
            if (error !== null) reject(thrownBy(error, options.signal));
            else if (response === undefined) reject(new Error(`${method.name} answered nothing`));
            else resolve(response);
          },
        );
        options.signal?.addEventListener('abort', cancel, { once: true });
      });
    },
    async *stream(method, init, options = {}) {
      options.signal?.throwIfAborted();
      const call = client.makeServerStreamRequest(
        pathOf(method),
        serializerOf(method.input),
        deserializerOf(method.output),
        create(method.input, init),
        metadataOf(),
        optionsOf(options),
      );
      const cancel = () => call.cancel();
      options.signal?.addEventListener('abort', cancel, { once: true });
      try {
        yield* call;
      } catch (error) {
        throw thrownBy(error, options.signal);
      } finally {
        options.signal?.removeEventListener('abort', cancel);
        // The end of a stream that nobody reads any more is not an error.
        call.on('error', () => {});
        call.cancel();
      }
    },
    close: () => client.close(),
  };
}

/** grpc-js takes deadlines in the machine's own wall time. */
function optionsOf({ timeoutMs }: CallOptions): grpc.CallOptions {
  return timeoutMs === undefined ? {} : { deadline: systemClock.wallMs() + timeoutMs };
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function serializerOf<D extends DescMessage>(schema: D): (message: MessageShape<D>) => Buffer {
  return (message) => Buffer.from(toBinary(schema, message));
}

function deserializerOf<D extends DescMessage>(schema: D): (bytes: Buffer) => MessageShape<D> {
  return (bytes) => fromBinary(schema, bytes);
}

function thrownBy(error: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted === true) return signal.reason;
  return isServiceError(error) ? new ApiError(error) : error;
}

function isServiceError(error: unknown): error is grpc.ServiceError {
  return error instanceof Error && 'code' in error && 'metadata' in error && 'details' in error;
}
