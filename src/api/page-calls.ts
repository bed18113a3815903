import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  create,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
  type MessageShape,
  toBinary,
  toJson,
} from '@bufbuild/protobuf';
import { Metadata, status } from '@grpc/grpc-js';
import { GnndError, messageOf } from '../base/errors.ts';
import type { Door } from './access.ts';
import { ProtocolError, type RpcStatus } from './grpc-status.ts';
import type { RpcOptions, RpcServer, ServedMethod, SurfaceCall } from './rpc.ts';

/**
 * The API for the page, as JSON over HTTP: the handlers, roles, counts and ends of gRPC, of methods
 * that only look.
 *
 *   GET /api/gnnd.v1.JobService/GetJob?request={"name":"jobs/mine"}
 *     200 and the message, or another status and {"error":{"reason":…,"message":…}}
 *   GET /api/gnnd.v1.JobService/WatchJob?request=…
 *     200 and a line for each message, {"result":…}; {"error":…} last where it ended badly
 */

/** Whoever looks gets no further than these; a test compares them with the page's. */
export const pageMethods: ReadonlySet<string> = new Set([
  ...['GetHost', 'ListDevices', 'GetDataset'],
  ...['ListJobs', 'GetJob', 'ListEpochs', 'WatchJob', 'StreamLogs', 'GetJobPlan'],
  ...['GetJobTimeline', 'ExportCheckpoint'],
]);

export interface PageCallsOptions {
  readonly rpc: Pick<RpcServer, 'find'>;
  readonly door: Door;
  /** Streams at once: whoever scrapes metrics needs connections, too. */
  readonly streamsMax: number;
  readonly observe: RpcOptions['observe'];
}

/** A reader that takes nothing for so long is cut off; it may come back where it was. */
const stalledMs = 60_000;

const httpStatus: ReadonlyMap<number, number> = new Map([
  [status.INVALID_ARGUMENT, 400],
  [status.OUT_OF_RANGE, 400],
  [status.UNAUTHENTICATED, 401],
  [status.PERMISSION_DENIED, 403],
  [status.NOT_FOUND, 404],
  [status.FAILED_PRECONDITION, 409],
  [status.RESOURCE_EXHAUSTED, 429],
  [status.UNAVAILABLE, 503],
]);

/** Answers `/api/SERVICE/METHOD`; false: that is no method of the page's. */
export type PageCalls = (
  url: URL,
  request: IncomingMessage,
  response: ServerResponse,
) => Promise<boolean>;

export function createPageCalls(options: PageCallsOptions): PageCalls {
  let streams = 0;
  return async (url, request, response) => {
    const [, service = '', name = ''] = /^\/api\/([\w.]+)\/(\w+)$/.exec(url.pathname) ?? [];
    const served = pageMethods.has(name) ? options.rpc.find(service, name) : null;
    if (served === null) return false;
    const call = surfaceOf(request, response);
    const fail = (found: RpcStatus) => answerError(response, found);
    await served.run(
      options.door,
      call,
      async (context) => {
        const message = requestOf(served, url);
        context.note(message);
        options.observe({ kind: 'received', ...served.rpc });
        const answer = served.handler(message, context);
        if (served.rpc.type === 'unary') {
          answerJson(response, 200, jsonOf(served, await answer));
          options.observe({ kind: 'sent', ...served.rpc });
          return;
        }
        if (streams >= options.streamsMax) throw tooMany(options.streamsMax);
        streams += 1;
        try {
          await answerStream(response, served, answer as AsyncIterable<unknown>, options.observe);
        } finally {
          streams -= 1;
        }
      },
      fail,
    );
    return true;
  };
}

function tooMany(streamsMax: number): ProtocolError {
  const message = `${streamsMax} streams of pages are open; close a page and try again`;
  return new ProtocolError(status.RESOURCE_EXHAUSTED, message);
}

/** An HTTP request as the runner of calls sees one. */
function surfaceOf(request: IncomingMessage, response: ServerResponse): SurfaceCall {
  const metadata = new Metadata();
  const { authorization } = request.headers;
  if (authorization !== undefined) metadata.set('authorization', authorization);
  return {
    get cancelled() {
      return response.destroyed && !response.writableFinished;
    },
    metadata,
    getDeadline: () => Number.POSITIVE_INFINITY,
    on: (_event, listener) =>
      response.on('close', () => {
        if (!response.writableFinished) listener();
      }),
  };
}

/** Throws SPEC_INVALID where the text is not the method's message. */
function requestOf({ method }: ServedMethod, url: URL): MessageShape<DescMessage> {
  const text = url.searchParams.get('request') ?? '';
  if (text === '') return create(method.input);
  try {
    return fromJson(method.input, JSON.parse(text) as JsonValue);
  } catch (cause) {
    const what = `request is not the JSON of a ${method.input.typeName}: ${messageOf(cause)}`;
    throw new GnndError('SPEC_INVALID', what, { cause });
  }
}

/** Through bytes: handlers may answer parts, or all of it, encoded. */
function jsonOf({ method: { output } }: ServedMethod, answer: unknown): JsonValue {
  const isEncoded = answer instanceof Uint8Array;
  const bytes = isEncoded ? answer : toBinary(output, answer as MessageShape<DescMessage>);
  return toJson(output, fromBinary(output, bytes));
}

function answerJson(response: ServerResponse, code: number, value: JsonValue): void {
  response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

/** Asks for the next message only when the reader has room for it. */
async function answerStream(
  response: ServerResponse,
  served: ServedMethod,
  messages: AsyncIterable<unknown>,
  observe: RpcOptions['observe'],
): Promise<void> {
  for await (const message of messages) {
    if (response.destroyed) return;
    if (!response.headersSent) {
      response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    }
    const hasRoom = response.write(`${JSON.stringify({ result: jsonOf(served, message) })}\n`);
    observe({ kind: 'sent', ...served.rpc });
    if (!hasRoom) await drained(response);
  }
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  response.end();
}

/** Resolves when there is room again, or the reader is gone. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => response.destroy(), stalledMs);
    const done = () => {
      clearTimeout(timer);
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
  });
}

function answerError(response: ServerResponse, found: RpcStatus): void {
  const error = { reason: found.reason ?? '', message: found.details };
  if (!response.headersSent) {
    answerJson(response, httpStatus.get(found.code) ?? 500, { error });
    return;
  }
  response.end(`${JSON.stringify({ error })}\n`);
}
