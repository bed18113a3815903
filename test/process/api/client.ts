import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import * as grpc from '@grpc/grpc-js';
import {
  type BadRequest,
  BadRequestSchema,
  type ErrorInfo,
  ErrorInfoSchema,
} from '../../../src/api/gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../../../src/api/gen/google/rpc/status_pb.ts';

/** A gRPC client of nothing but descriptors, for tests. */

type Method = DescMethod & { readonly input: DescMessage; readonly output: DescMessage };

/** What a call ended with when it did not end well. */
export class CallError extends Error {
  readonly code: grpc.status;
  readonly infos: readonly ErrorInfo[];
  readonly fields: BadRequest | undefined;

  constructor(error: grpc.ServiceError) {
    super(error.message);
    this.code = error.code;
    const [bytes] = error.metadata.get('grpc-status-details-bin');
    const details = bytes instanceof Buffer ? fromBinary(StatusSchema, bytes).details : [];
    this.infos = details.flatMap((detail) => anyUnpack(detail, ErrorInfoSchema) ?? []);
    this.fields = details.flatMap((detail) => anyUnpack(detail, BadRequestSchema) ?? [])[0];
  }

  get reason(): string | undefined {
    return this.infos[0]?.reason;
  }
}

export interface TestClient {
  call<M extends Method>(
    method: M,
    init: MessageInitShape<M['input']>,
    deadlineMs?: number,
  ): Promise<MessageShape<M['output']>>;
  /** Sends bytes as they are. */
  callRaw(method: Method, bytes: Uint8Array): Promise<Uint8Array>;
  stream<M extends Method>(method: M, init: MessageInitShape<M['input']>): TestStream<M>;
  /** All requests at once, then all responses. `service` calls another service's method. */
  exchange<M extends Method>(
    method: M,
    inits: readonly MessageInitShape<M['input']>[],
    service?: string,
  ): Promise<readonly MessageShape<M['output']>[]>;
  close(): void;
}

export interface TestStream<M extends Method> extends AsyncIterable<MessageShape<M['output']>> {
  cancel(): void;
  /** Stops reading from the connection. */
  pause(): void;
}

const asBytes = (bytes: Uint8Array) => Buffer.from(bytes);
const same = (bytes: Buffer) => bytes;

export function createTestClient(address: string): TestClient {
  const client = new grpc.Client(address, grpc.credentials.createInsecure(), {
    'grpc.max_receive_message_length': 64 * 1024 * 1024,
    'grpc.max_send_message_length': 64 * 1024 * 1024,
  });
  const pathOf = (method: Method, service = method.parent.typeName) => `/${service}/${method.name}`;
  const callRaw = (method: Method, bytes: Uint8Array, deadlineMs = 20_000) =>
    new Promise<Uint8Array>((resolve, reject) => {
      const options = { deadline: Date.now() + deadlineMs };
      const metadata = new grpc.Metadata();
      client.makeUnaryRequest(
        pathOf(method),
        asBytes,
        same,
        bytes,
        metadata,
        options,
        (error, answer) => {
          if (error !== null) reject(new CallError(error));
          else if (answer !== undefined) resolve(answer);
        },
      );
    });
  const encode = <M extends Method>(method: M, init: MessageInitShape<M['input']>) =>
    toBinary<DescMessage>(method.input, create<DescMessage>(method.input, init));
  const decode = <M extends Method>(method: M, bytes: Uint8Array) =>
    fromBinary<DescMessage>(method.output, bytes) as MessageShape<M['output']>;
  async function* decoded<M extends Method>(
    method: M,
    call: AsyncIterable<Buffer>,
  ): AsyncGenerator<MessageShape<M['output']>> {
    try {
      for await (const bytes of call) yield decode(method, bytes);
    } catch (error) {
      throw error instanceof Error && 'metadata' in error
        ? new CallError(error as grpc.ServiceError)
        : error;
    }
  }
  return {
    async call(method, init, deadlineMs) {
      return decode(method, await callRaw(method, encode(method, init), deadlineMs));
    },
    callRaw,
    stream(method, init) {
      const bytes = encode(method, init);
      const call = client.makeServerStreamRequest(pathOf(method), asBytes, same, bytes);
      call.on('error', () => {});
      return {
        [Symbol.asyncIterator]: () => decoded(method, call),
        cancel: () => call.cancel(),
        pause: () => void call.pause(),
      };
    },
    async exchange(method, inits, service) {
      const call = client.makeBidiStreamRequest(pathOf(method, service), asBytes, same);
      for (const init of inits) call.write(encode(method, init));
      call.end();
      const answers: MessageShape<(typeof method)['output']>[] = [];
      for await (const answer of decoded(method, call)) answers.push(answer);
      return answers;
    },
    close: () => client.close(),
  };
}

/** What a promise was rejected with; fails when it was not. */
export async function failureOf(promise: Promise<unknown>): Promise<CallError> {
  const outcome = await promise.then(
    () => null,
    (error: unknown) => error,
  );
  if (outcome instanceof CallError) return outcome;
  throw new Error(`expected a failed call, got ${String(outcome)}`);
}
