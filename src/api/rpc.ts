import type { DescMessage, DescMethod, MessageShape } from '@bufbuild/protobuf';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import type { GenService, GenServiceMethods } from '@bufbuild/protobuf/codegenv2';
import * as grpc from '@grpc/grpc-js';
import type { Clock } from '../base/clock.ts';
import { type ErrorReason, GnndError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { GrpcCode } from '../metrics/labels.ts';
import { type Access, type Caller, type Door, roleFor, targetOf } from './access.ts';
import { longLists } from './bounds.ts';
import { codeName, type RpcStatus, statusOf } from './grpc-status.ts';
import { invalidRequest } from './requests.ts';

/**
 * Protobuf-es services on grpc-js. Handlers are plain functions of messages: unary ones answer a
 * message, streaming ones are async generators that are asked for the next message only when the
 * client has room for it, and may answer one that is encoded already. Whatever they throw leaves as
 * a google.rpc.Status.
 */

export interface CallContext {
  readonly caller: Caller;
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
      ? (request: MessageShape<I>, call: CallContext) => AsyncIterable<MessageShape<O> | Uint8Array>
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
      /** Reason in the ErrorInfo; null when there is none. */
      readonly reason: ErrorReason | null;
      readonly seconds: number;
    } & RpcMethod);

export interface RpcOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly observe: (event: RpcEvent) => void;
  readonly access: Access;
  /** Adds to what a handler threw what helps whoever called. */
  readonly explain: (error: unknown) => unknown;
}

/** A method for callers that come in another way than by gRPC. */
export interface ServedMethod {
  readonly rpc: RpcMethod;
  readonly method: DescMethod;
  /** Answers a message, or an iterable of messages, some of which may be encoded. */
  readonly handler: AnyHandler;
  /** As calls of gRPC are: asked who they are, counted, timed, ended with the server. */
  readonly run: (door: Door, ...call: Parameters<Run>) => Promise<void>;
}

/** The calls in progress of all servers, and how services are added to them. */
export interface RpcServer {
  /** `typeName` serves the same methods under another service's name. */
  add<S extends GenServiceMethods>(
    service: GenService<S>,
    handlers: Handlers<S>,
    typeName?: string,
  ): void;
  /** Null: there is no such method. */
  find(service: string, method: string): ServedMethod | null;
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
export interface SurfaceCall {
  readonly cancelled: boolean;
  readonly metadata: grpc.Metadata;
  getDeadline(): grpc.Deadline;
  on(event: 'cancelled', listener: () => void): unknown;
}
type UnaryCall = grpc.ServerUnaryCall<Buffer, Uint8Array>;
type WritableCall = grpc.ServerWritableStream<Buffer, Uint8Array>;
type DuplexCall = grpc.ServerDuplexStream<Buffer, Uint8Array>;

/** `servers`: one for each door, since a call does not say how it came in. */
export function createRpcServer(
  servers: ReadonlyMap<Door, grpc.Server>,
  options: RpcOptions,
): RpcServer {
  const runner = createCallRunner(options);
  const served = new Map<string, ServedMethod>();
  return {
    add(service, handlers, typeName = service.typeName) {
      for (const method of service.methods) {
        const rpc = rpcMethod(method, typeName);
        const handler = handlers[method.localName] as AnyHandler;
        const run: ServedMethod['run'] = (door, ...call) => runner.run({ ...rpc, door }, ...call);
        served.set(`${typeName}/${method.name}`, { rpc, method, handler, run });
      }
      for (const [door, server] of servers) {
        const definition: Record<string, grpc.MethodDefinition<Uint8Array, Uint8Array>> = {};
        const implementation: Record<string, grpc.UntypedHandleCall> = {};
        for (const method of service.methods) {
          const rpc = rpcMethod(method, typeName);
          // Handlers<S> has exactly the methods of the service, under their local names.
          const handler = handlers[method.localName] as AnyHandler;
          const { observe } = options;
          definition[method.localName] = methodDefinition(rpc);
          implementation[method.localName] = serveBy[rpc.type]({
            rpc,
            method,
            handler,
            observe,
            run: (...call) => void runner.run({ ...rpc, door }, ...call),
          });
        }
        server.addService(definition, implementation);
      }
    },
    find: (service, method) => served.get(`${service}/${method}`) ?? null,
    count: runner.count,
    abortAll: runner.abortAll,
  };
}

/** A call's context, and where its reader notes what it is about. */
interface RunContext extends CallContext {
  readonly note: (request: unknown) => void;
}

/** Runs one call: asks who it is, counts it, times it, gives it a signal, maps what it throws. */
type Run = (
  call: SurfaceCall,
  work: (context: RunContext) => Promise<void>,
  fail: (status: RpcStatus) => void,
) => void;

interface Audited extends Outcome {
  readonly rpc: RpcMethod;
  readonly door: Door;
  readonly caller: Caller | null;
  readonly target: string;
}

interface CallRunner {
  run(rpc: RpcMethod & { readonly door: Door }, ...call: Parameters<Run>): Promise<void>;
  count(method: string): number;
  abortAll(reason: GnndError): void;
}

function createCallRunner({ log, clock, observe, access, explain }: RpcOptions): CallRunner {
  const active = new Map<AbortController, RpcMethod>();
  let stopReason: GnndError | null = null;

  /** Answers how the call ended, after telling the client if it ended badly. */
  const outcomeOf = async (
    rpc: RpcMethod,
    context: () => RunContext,
    [call, work, fail]: Parameters<Run>,
  ): Promise<Outcome> => {
    try {
      await work(context());
      if (!call.cancelled) return outcomeOk;
    } catch (error) {
      if (!call.cancelled) {
        const ofMethod = log.with({ method: `${rpc.service}/${rpc.method}` });
        const status = statusOf(explain(error), ofMethod);
        fail(status);
        return { code: status.code, reason: status.reason };
      }
    }
    return { code: goneCode(call, clock), reason: null };
  };

  /** A line for each change that was asked for, and for whoever was turned away. */
  const audit = ({ rpc, door, caller, target, code, reason }: Audited) => {
    const needed = roleFor(rpc.service, rpc.method);
    const isRefused = reason === 'UNAUTHENTICATED' || reason === 'ACCESS_DENIED';
    if (needed !== 'SUBMITTER' && needed !== 'ADMIN' && !isRefused) return;
    const who = caller?.name ?? '';
    const fields = { caller: who, door, method: rpc.method, target, code: codeName(code), reason };
    log[isRefused ? 'warn' : 'info']('api.audit', fields);
  };

  return {
    async run({ door, ...rpc }, ...parts) {
      const startMs = clock.monotonicMs();
      const controller = new AbortController();
      active.set(controller, rpc);
      if (stopReason !== null) controller.abort(stopReason);
      parts[0].on('cancelled', () => controller.abort(new ClientGone()));
      observe({ kind: 'started', ...rpc });
      const seen: { caller: Caller | null; target: string } = { caller: null, target: '' };
      const authorization = parts[0].metadata.get('authorization')[0]?.toString();
      const context = () => {
        const question = { door, authorization, ...rpc };
        const caller = access.identify(question);
        seen.caller = caller;
        access.authorize(caller, question);
        const note = (request: unknown) => {
          seen.target = targetOf(request);
        };
        return { caller, signal: controller.signal, note };
      };
      const { code, reason } = await outcomeOf(rpc, context, parts);
      active.delete(controller);
      const seconds = (clock.monotonicMs() - startMs) / 1000;
      observe({ kind: 'handled', ...rpc, code: codeName(code), reason, seconds });
      audit({ rpc, door, ...seen, code, reason });
    },
    count: (method) => [...active.values()].filter((rpc) => rpc.method === method).length,
    abortAll(reason) {
      stopReason = reason;
      for (const controller of active.keys()) controller.abort(reason);
    },
  };
}

/** One method of a service on grpc-js. */
interface Served {
  readonly rpc: RpcMethod;
  readonly method: DescMethod;
  readonly handler: AnyHandler;
  readonly observe: RpcOptions['observe'];
  readonly run: Run;
}

const serveBy = {
  unary: serveUnary,
  server_stream: serveServerStream,
  bidi_stream: serveBidiStream,
} as const;

function serveUnary({ rpc, method, handler, observe, run }: Served): grpc.UntypedHandleCall {
  return (call: UnaryCall, callback: grpc.sendUnaryData<Uint8Array>) =>
    run(
      call,
      async (context) => {
        const request = decode(method.input, call.request);
        context.note(request);
        observe({ kind: 'received', ...rpc });
        const bytes = encode(method.output, await handler(request, context));
        callback(null, bytes);
        observe({ kind: 'sent', ...rpc });
      },
      (status) => callback(status),
    );
}

function serveServerStream(served: Served): grpc.UntypedHandleCall {
  const { rpc, method, handler, observe, run } = served;
  return (call: WritableCall) =>
    run(
      call,
      async (context) => {
        const request = decode(method.input, call.request);
        context.note(request);
        observe({ kind: 'received', ...rpc });
        await sendAll(served, call, handler(request, context) as AsyncIterable<unknown>);
      },
      (status) => call.emit('error', status),
    );
}

function serveBidiStream(served: Served): grpc.UntypedHandleCall {
  const { rpc, method, handler, observe, run } = served;
  async function* requestsOf(call: DuplexCall) {
    // Without destroyOnReturn the end of the requests would cut off the responses.
    for await (const bytes of call.iterator({ destroyOnReturn: false })) {
      observe({ kind: 'received', ...rpc });
      yield decode(method.input, bytes);
    }
  }
  return (call: DuplexCall) =>
    run(
      call,
      (context) =>
        sendAll(served, call, handler(requestsOf(call), context) as AsyncIterable<unknown>),
      (status) => call.emit('error', status),
    );
}

/** Asks for the next response only when the client has room for it. */
async function sendAll(
  { rpc, method, observe }: Served,
  call: WritableCall | DuplexCall,
  responses: AsyncIterable<unknown>,
): Promise<void> {
  for await (const response of responses) {
    if (call.cancelled) return;
    const hasRoom = call.write(encode(method.output, response));
    observe({ kind: 'sent', ...rpc });
    if (!hasRoom) await drained(call);
  }
  call.end();
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
  const message = parsed(schema, bytes);
  const violations = longLists(schema, message);
  if (violations.length > 0) throw invalidRequest(violations);
  return message;
}

function parsed(schema: DescMessage, bytes: Uint8Array): MessageShape<DescMessage> {
  try {
    // Fields that nobody knows are not kept: each would cost more than its bytes.
    return fromBinary(schema, bytes, { readUnknownFields: false });
  } catch (cause) {
    throw new GnndError('SPEC_INVALID', `the request is not a ${schema.typeName} message`, {
      cause,
    });
  }
}

function encode(schema: DescMessage, message: unknown): Uint8Array {
  if (message instanceof Uint8Array) return message;
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

/**
 * A client counts its deadline from when it sent the call, the server from when it read it: the end
 * of a client that gives up at its deadline is heard of a little before the server's own.
 */
const deadlineToleranceMs = 50;

function goneCode(call: SurfaceCall, clock: Clock): grpc.status {
  const deadline = call.getDeadline();
  const deadlineMs = typeof deadline === 'number' ? deadline : deadline.getTime();
  const isOver = deadlineMs <= clock.wallMs() + deadlineToleranceMs;
  return isOver ? grpc.status.DEADLINE_EXCEEDED : grpc.status.CANCELLED;
}
