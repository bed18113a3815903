import type { DescMessage, DescMethod, MessageShape } from '@bufbuild/protobuf';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import type { GenService, GenServiceMethods } from '@bufbuild/protobuf/codegenv2';
import * as grpc from '@grpc/grpc-js';
import type { Clock } from '../base/clock.ts';
import { type ErrorReason, GnndError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { GrpcCode } from '../metrics/labels.ts';
import { codeName, statusOf } from './grpc-status.ts';

/**
 * Protobuf-es services on grpc-js. Handlers are plain functions of messages: unary ones answer a
 * message, streaming ones are async generators that are asked for the next message only when the
 * client has room for it. Whatever they throw leaves as a google.rpc.Status.
 */

export interface CallContext {
  /** Aborted when the client is gone or the server stops; the reason is the error to end with. */
  readonly signal: AbortSignal;
}

type Handler<M> = M extends {
  readonly methodKind: infer Kind;
  readonly input: infer I extends DescMessage;
  readonly output: infer O extends DescMessage;
}
  ? Kind extends 'unary'
    ? (request: MessageShape<I>, call: CallContext) => MessageShape<O> | Promise<MessageShape<O>>
    : Kind extends 'server_streaming'
      ? (request: MessageShape<I>, call: CallContext) => AsyncIterable<MessageShape<O>>
      : Kind extends 'bidi_streaming'
        ? (
            requests: AsyncIterable<MessageShape<I>>,
            call: CallContext,
          ) => AsyncIterable<MessageShape<O>>
        : never
  : never;

/** One handler per method of a generated service. */
export type Handlers<S extends GenServiceMethods> = { readonly [K in keyof S]: Handler<S[K]> };

/** The methods of a generated service, as `Handlers` takes them. */
export type MethodsOf<D> = D extends GenService<infer S> ? S : never;

export type RpcType = 'unary' | 'server_stream' | 'bidi_stream';

export interface RpcMethod {
  /** For example `gnnd.v1.JobService`. */
  readonly service: string;
  readonly method: string;
  readonly type: RpcType;
}

/** What the metrics of calls are made of. */
export type RpcEvent =
  | ({ readonly kind: 'started' | 'received' | 'sent' } & RpcMethod)
  | ({
      readonly kind: 'handled';
      readonly code: GrpcCode;
      /** Of the ErrorInfo; null when there is none. */
      readonly reason: ErrorReason | null;
      readonly seconds: number;
    } & RpcMethod);

export interface RpcOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly observe: (event: RpcEvent) => void;
}

/** The calls in progress of one server, and how services are added to it. */
export interface RpcServer {
  /** `typeName` serves the same methods under another service's name. */
  add<S extends GenServiceMethods>(
    service: GenService<S>,
    handlers: Handlers<S>,
    typeName?: string,
  ): void;
  /** Calls of a method in progress. */
  count(method: string): number;
  /** Aborts all calls in progress, and those that still come, with `reason`. */
  abortAll(reason: GnndError): void;
}

/** A call's end, as the client was told. */
interface Outcome {
  readonly code: grpc.status;
  readonly reason: ErrorReason | null;
}

const outcomeOk: Outcome = { code: grpc.status.OK, reason: null };

type AnyHandler = (request: unknown, call: CallContext) => unknown;

/** What the calls of all kinds have in common. */
interface SurfaceCall {
  readonly cancelled: boolean;
  getDeadline(): grpc.Deadline;
  on(event: 'cancelled', listener: () => void): unknown;
}
type UnaryCall = grpc.ServerUnaryCall<Buffer, Uint8Array>;
type WritableCall = grpc.ServerWritableStream<Buffer, Uint8Array>;
type DuplexCall = grpc.ServerDuplexStream<Buffer, Uint8Array>;

export function createRpcServer(server: grpc.Server, options: RpcOptions): RpcServer {
  const active = new Map<AbortController, RpcMethod>();
  let stopReason: GnndError | null = null;

  /** Runs one call: counts it, times it, gives it a signal, maps what it throws. */
  const run = async (
    rpc: RpcMethod,
    call: SurfaceCall,
    work: (context: CallContext) => Promise<void>,
    fail: (status: grpc.StatusObject) => void,
  ): Promise<void> => {
    const startMs = options.clock.monotonicMs();
    const controller = new AbortController();
    active.set(controller, rpc);
    if (stopReason !== null) controller.abort(stopReason);
    call.on('cancelled', () => controller.abort(new ClientGone()));
    options.observe({ kind: 'started', ...rpc });
    let outcome = outcomeOk;
    try {
      await work({ signal: controller.signal });
      if (call.cancelled) outcome = { code: goneCode(call, options.clock), reason: null };
    } catch (error) {
      if (call.cancelled) outcome = { code: goneCode(call, options.clock), reason: null };
      else {
        const status = statusOf(
          error,
          options.log.with({ method: `${rpc.service}/${rpc.method}` }),
        );
        outcome = { code: status.code, reason: status.reason };
        fail(status);
      }
    } finally {
      active.delete(controller);
      const seconds = (options.clock.monotonicMs() - startMs) / 1000;
      options.observe({
        kind: 'handled',
        ...rpc,
        code: codeName(outcome.code),
        reason: outcome.reason,
        seconds,
      });
    }
  };

  const serveUnary =
    (rpc: RpcMethod, method: DescMethod, handler: AnyHandler) =>
    (call: UnaryCall, callback: grpc.sendUnaryData<Uint8Array>) =>
      void run(
        rpc,
        call,
        async (context) => {
          const request = decode(method.input, call.request);
          options.observe({ kind: 'received', ...rpc });
          const response = await handler(request, context);
          const bytes = encode(method.output, response);
          callback(null, bytes);
          options.observe({ kind: 'sent', ...rpc });
        },
        (status) => callback(status),
      );

  const sendAll = async (
    rpc: RpcMethod,
    method: DescMethod,
    call: WritableCall | DuplexCall,
    responses: AsyncIterable<unknown>,
  ): Promise<void> => {
    for await (const response of responses) {
      if (call.cancelled) return;
      const hasRoom = call.write(encode(method.output, response));
      options.observe({ kind: 'sent', ...rpc });
      if (!hasRoom) await drained(call);
    }
    call.end();
  };

  const serveServerStream =
    (rpc: RpcMethod, method: DescMethod, handler: AnyHandler) => (call: WritableCall) =>
      void run(
        rpc,
        call,
        (context) => {
          const request = decode(method.input, call.request);
          options.observe({ kind: 'received', ...rpc });
          return sendAll(rpc, method, call, handler(request, context) as AsyncIterable<unknown>);
        },
        (status) => call.emit('error', status),
      );

  const serveBidiStream =
    (rpc: RpcMethod, method: DescMethod, handler: AnyHandler) => (call: DuplexCall) => {
      async function* requests() {
        // Without destroyOnReturn the end of the requests would cut off the responses.
        for await (const bytes of call.iterator({ destroyOnReturn: false })) {
          options.observe({ kind: 'received', ...rpc });
          yield decode(method.input, bytes);
        }
      }
      void run(
        rpc,
        call,
        (context) =>
          sendAll(rpc, method, call, handler(requests(), context) as AsyncIterable<unknown>),
        (status) => call.emit('error', status),
      );
    };

  return {
    add(service, handlers, typeName = service.typeName) {
      const definition: Record<string, grpc.MethodDefinition<Uint8Array, Uint8Array>> = {};
      const implementation: Record<string, grpc.UntypedHandleCall> = {};
      for (const method of service.methods) {
        const rpc = rpcMethod(method, typeName);
        // Handlers<S> has exactly the methods of the service, under their local names.
        const handler = handlers[method.localName] as AnyHandler;
        definition[method.localName] = methodDefinition(rpc);
        const serve = {
          unary: serveUnary,
          server_stream: serveServerStream,
          bidi_stream: serveBidiStream,
        };
        implementation[method.localName] = serve[rpc.type](rpc, method, handler);
      }
      server.addService(definition, implementation);
    },
    count: (method) => [...active.values()].filter((rpc) => rpc.method === method).length,
    abortAll(reason) {
      stopReason = reason;
      for (const controller of active.keys()) controller.abort(reason);
    },
  };
}

/** The reason of a call's signal when its client cancelled, vanished or ran out of time. */
export class ClientGone extends Error {
  constructor() {
    super('the client is gone');
    this.name = 'ClientGone';
  }
}

export function rpcMethod(method: DescMethod, service: string): RpcMethod {
  return { service, method: method.name, type: rpcType(method) };
}

function rpcType(method: DescMethod): RpcType {
  switch (method.methodKind) {
    case 'unary':
      return 'unary';
    case 'server_streaming':
      return 'server_stream';
    case 'bidi_streaming':
      return 'bidi_stream';
    case 'client_streaming':
      throw new Error(`${method.toString()}: client streaming is not served`);
  }
}

/**
 * grpc-js passes bytes through: messages are read and written in `run`, where an error of either
 * becomes a status with details.
 */
function methodDefinition(rpc: RpcMethod): grpc.MethodDefinition<Uint8Array, Uint8Array> {
  const asBuffer = (bytes: Uint8Array) =>
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return {
    path: `/${rpc.service}/${rpc.method}`,
    requestStream: rpc.type === 'bidi_stream',
    responseStream: rpc.type !== 'unary',
    requestSerialize: asBuffer,
    requestDeserialize: (bytes) => bytes,
    responseSerialize: asBuffer,
    responseDeserialize: (bytes) => bytes,
  };
}

function decode(schema: DescMessage, bytes: Uint8Array): unknown {
  try {
    return fromBinary(schema, bytes);
  } catch (cause) {
    throw new GnndError('SPEC_INVALID', `the request is not a ${schema.typeName} message`, {
      cause,
    });
  }
}

function encode(schema: DescMessage, message: unknown): Uint8Array {
  return toBinary(schema, message as MessageShape<DescMessage>);
}

/** Resolves when the stream has room again, or will never have. */
function drained(call: WritableCall | DuplexCall): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      call.off('drain', done);
      call.off('cancelled', done);
      call.off('close', done);
      resolve();
    };
    call.on('drain', done);
    call.on('cancelled', done);
    call.on('close', done);
  });
}

function goneCode(call: SurfaceCall, clock: Clock): grpc.status {
  const deadline = call.getDeadline();
  const deadlineMs = typeof deadline === 'number' ? deadline : deadline.getTime();
  return deadlineMs <= clock.wallMs() ? grpc.status.DEADLINE_EXCEEDED : grpc.status.CANCELLED;
}
