import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { type Clock, systemClock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { isHttp2, onFirstBytes } from '../base/first-bytes.ts';
import type { Log } from '../base/log.ts';
import { contentTypes } from './exposition.ts';
import { createGuide } from './http-for-grpc.ts';
import type { Metrics, MetricsFormat } from './metrics-types.ts';

/**
 * What orchestrators and Prometheus ask over HTTP: `/metrics`, `/livez`, `/readyz`. These hold no
 * secret and change nothing; who may reach them is decided by the address it listens on. The page
 * for people, which is asked for the other paths, asks for a token itself.
 */
export interface HttpOptions {
  /** `host:port` or `[v6]:port`; port 0 takes a free one. */
  readonly listen: string;
  readonly metrics: Pick<Metrics, 'render'>;
  /** Whether the daemon should be left alone; must not depend on devices or disk space. */
  readonly live: () => boolean;
  /** Whether it takes jobs. */
  readonly ready: () => boolean;
  /** Answers another path; false: there is nothing. */
  readonly page: (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;
  /** Addresses of the API, for who asks for it here. */
  readonly grpc: () => readonly string[];
  /** Beyond it the connection that has been idle or half-sent for longest is ended. */
  readonly connectionsMax: number;
  readonly log: Log;
  readonly clock?: Clock;
}

export interface HttpServer {
  readonly host: string;
  readonly port: number;
  /** Ends open connections. Idempotent. */
  close(): Promise<void>;
}

const renderingMaxAgeMs = 500;
const headersTimeoutMs = 5_000;
const requestTimeoutMs = 10_000;
/** How often the two above are looked at; Node's default of 30 s would let nobody in until then. */
const checkPeriodMs = 1_000;
/** Below this, compressing costs more than it saves. */
const gzipMinBytes = 1024;
const gzipAsync = promisify(gzip);

/** Rejects with the cause when `listen` cannot be parsed or bound. */
export async function serveHttp(options: HttpOptions): Promise<HttpServer> {
  const { host, port } = parseListen(options.listen);
  const renderings = new SharedRenderings(options.metrics, options.clock ?? systemClock);
  const crowd = new Crowd(options.connectionsMax);
  const server = createServer(
    { connectionsCheckingInterval: checkPeriodMs },
    (request, response) => {
      crowd.answering(request.socket, response);
      answer(request, response, options, renderings).catch((error: unknown) => {
        options.log.error('http.failed', { path: pathOf(request), error: messageOf(error) });
        reply(response, 500, 'internal error\n');
      });
    },
  );
  server.headersTimeout = headersTimeoutMs;
  server.requestTimeout = requestTimeoutMs;
  guideOthers(server, options.grpc);
  server.on('connection', (socket) => crowd.add(socket));
  const address = await listening(server, host, port);
  return {
    host: address.address,
    port: address.port,
    close: () => closing(server),
  };
}

/** Clients of gRPC, of which HTTP/1 makes nothing, hear where they are and where they should be. */
function guideOthers(server: Server, grpc: HttpOptions['grpc']): void {
  const guide = createGuide(
    () => `this is gnnd's metrics_listen, for HTTP; gRPC is served at ${grpc().join(', ')}`,
  );
  const serveHttp1 = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    socket.on('error', () => {});
    socket.setTimeout(headersTimeoutMs, () => socket.destroy());
    onFirstBytes(socket, (start) => {
      socket.setTimeout(0);
      socket.removeAllListeners('timeout');
      if (isHttp2(start)) {
        guide.emit('connection', socket);
        return;
      }
      for (const listener of serveHttp1) listener.call(server, socket);
      socket.resume();
    });
  });
}

/** The open connections. Those without a whole request give way to new ones, oldest first. */
class Crowd {
  readonly #max: number;
  /** In the order of their last request, or of their coming. */
  readonly #idle = new Set<Socket>();
  #answering = 0;

  constructor(max: number) {
    this.#max = max;
  }

  add(socket: Socket): void {
    this.#idle.add(socket);
    socket.once('close', () => this.#idle.delete(socket));
    while (this.#idle.size + this.#answering > this.#max && this.#idle.size > 0) {
      const [oldest] = this.#idle;
      if (oldest === undefined) return;
      this.#idle.delete(oldest);
      oldest.destroy();
    }
  }

  answering(socket: Socket, response: ServerResponse): void {
    if (!this.#idle.delete(socket)) return;
    this.#answering += 1;
    response.once('close', () => {
      this.#answering -= 1;
      if (!socket.destroyed) this.#idle.add(socket);
    });
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  options: HttpOptions,
  renderings: SharedRenderings,
): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    reply(response, 405, 'method not allowed\n');
    return;
  }
  switch (pathOf(request)) {
    case '/metrics': {
      const accept = request.headers.accept ?? '';
      const format = accept.includes('application/openmetrics-text') ? 'OPENMETRICS' : 'PROMETHEUS';
      const text = await renderings.get(format);
      await replyMetrics(request, response, text, format);
      return;
    }
    case '/livez':
      replyHealth(response, options.live());
      return;
    case '/readyz':
      replyHealth(response, options.ready());
      return;
    default:
      if (await options.page(request, response)) return;
      reply(response, 404, 'not found; try /metrics, /livez or /readyz\n');
  }
}

/** Scrapes that come together, or soon after one another, get one rendering. */
class SharedRenderings {
  readonly #metrics: Pick<Metrics, 'render'>;
  readonly #clock: Clock;
  readonly #latest = new Map<MetricsFormat, { readonly text: Promise<string>; atMs: number }>();

  constructor(metrics: Pick<Metrics, 'render'>, clock: Clock) {
    this.#metrics = metrics;
    this.#clock = clock;
  }

  get(format: MetricsFormat): Promise<string> {
    const nowMs = this.#clock.monotonicMs();
    const latest = this.#latest.get(format);
    if (latest !== undefined && nowMs - latest.atMs < renderingMaxAgeMs) return latest.text;
    const text = this.#metrics.render(format);
    this.#latest.set(format, { text, atMs: nowMs });
    return text;
  }
}

async function replyMetrics(
  request: IncomingMessage,
  response: ServerResponse,
  text: string,
  format: MetricsFormat,
): Promise<void> {
  response.setHeader('content-type', contentTypes[format]);
  response.setHeader('vary', 'accept, accept-encoding');
  const takesGzip = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''));
  if (!takesGzip || text.length < gzipMinBytes) {
    response.writeHead(200).end(text);
    return;
  }
  const compressed = await gzipAsync(text);
  response.writeHead(200, { 'content-encoding': 'gzip' }).end(compressed);
}

function replyHealth(response: ServerResponse, good: boolean): void {
  if (good) reply(response, 200, 'ok\n');
  else reply(response, 503, 'not ok\n');
}

function reply(response: ServerResponse, status: number, text: string): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(text);
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '/').split('?', 1)[0] ?? '/';
}

function parseListen(listen: string): { readonly host: string; readonly port: number } {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(listen);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) {
    throw new Error(`cannot listen on "${listen}": expected host:port, for example 127.0.0.1:9464`);
  }
  return { host: match[1] ?? match[2] ?? '', port };
}

function listening(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.removeListener('error', reject);
      const address = server.address();
      if (address === null || typeof address === 'string') reject(new Error('no TCP address'));
      else resolve(address);
    });
  });
}

function closing(server: Server): Promise<void> {
  return new Promise((resolve) => {
    // An error here only says that it was closed already.
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
