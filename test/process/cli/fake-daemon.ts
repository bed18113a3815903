import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  create,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import * as grpc from '@grpc/grpc-js';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from '../../../src/api/gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../../../src/api/gen/google/rpc/status_pb.ts';

/** Ends a call of the fake daemon as gnnd ends it. */
export class FakeError extends Error {
  readonly code: grpc.status;
  readonly details: string;
  readonly metadata = new grpc.Metadata();

  constructor(
    code: grpc.status,
    message: string,
    options: {
      readonly reason?: string;
      readonly violations?: readonly (readonly [field: string, description: string])[];
      readonly isRetryable?: boolean;
    } = {},
  ) {
    super(message);
    this.code = code;
    this.details = message;
    if (options.reason === undefined) return;
    const info = create(ErrorInfoSchema, { reason: options.reason, domain: 'gnnd' });
    const details = [anyPack(ErrorInfoSchema, info)];
    if (options.violations !== undefined) {
      const fieldViolations = options.violations.map(([field, description]) => ({
        field,
        description,
      }));
      details.push(anyPack(BadRequestSchema, create(BadRequestSchema, { fieldViolations })));
    }
    if (options.isRetryable === true) {
      const retry = create(RetryInfoSchema, { retryDelay: { nanos: 1_000_000 } });
      details.push(anyPack(RetryInfoSchema, retry));
    }
    const bytes = toBinary(StatusSchema, create(StatusSchema, { code, message, details }));
    this.metadata.set('grpc-status-details-bin', Buffer.from(bytes));
  }
}

/** A stream of the fake daemon: what it sends, and whether the client is gone. */
export interface FakeStream<O extends DescMessage> {
  send(message: MessageInitShape<O>): void;
  readonly cancelled: Promise<void>;
}

/** grpc-js on a unix socket of its own, with the methods that a test gives it. */
export class FakeDaemon {
  readonly address: string;
  readonly #folder: string;
  #server = new grpc.Server();

  constructor() {
    this.#folder = mkdtempSync(join(tmpdir(), 'gnnctl-test-'));
    this.address = `unix:${join(this.#folder, 'gnnd.sock')}`;
  }

  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    answer: (request: MessageShape<I>) => MessageInitShape<O>,
  ): this {
    this.#server.register<MessageShape<I>, MessageShape<O>>(
      pathOf(method),
      (
        call: grpc.ServerUnaryCall<MessageShape<I>, MessageShape<O>>,
        callback: grpc.sendUnaryData<MessageShape<O>>,
      ) => {
        try {
          callback(null, create(method.output, answer(call.request)));
        } catch (error) {
          callback(error as FakeError);
        }
      },
      (message) => Buffer.from(toBinary(method.output, message)),
      (bytes) => fromBinary(method.input, bytes),
      'unary',
    );
    return this;
  }

  /** `answer` ends the stream by returning, with an error by throwing. */
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    answer: (request: MessageShape<I>, stream: FakeStream<O>) => Promise<void>,
  ): this {
    this.#server.register<MessageShape<I>, MessageShape<O>>(
      pathOf(method),
      (call: grpc.ServerWritableStream<MessageShape<I>, MessageShape<O>>) => {
        const cancelled = new Promise<void>((resolve) => call.on('cancelled', () => resolve()));
        const send = (message: MessageInitShape<O>) => {
          call.write(create(method.output, message));
        };
        answer(call.request, { send, cancelled }).then(
          () => call.end(),
          (error: unknown) => void call.emit('error', error),
        );
      },
      (message) => Buffer.from(toBinary(method.output, message)),
      (bytes) => fromBinary(method.input, bytes),
      'serverStream',
    );
    return this;
  }

  listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      const credentials = grpc.ServerCredentials.createInsecure();
      this.#server.bindAsync(this.address, credentials, (error) =>
        error === null ? resolve() : reject(error),
      );
    });
  }

  /** Breaks every connection, as a crash does, and forgets all methods. */
  crash(): void {
    this.#server.forceShutdown();
    rmSync(this.address.slice('unix:'.length), { force: true });
    this.#server = new grpc.Server();
  }

  close(): void {
    this.#server.forceShutdown();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function pathOf(method: DescMethodUnary | DescMethodServerStreaming): string {
  return `/${method.parent.typeName}/${method.name}`;
}
