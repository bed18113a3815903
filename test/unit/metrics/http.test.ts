import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { Client, credentials, type ServiceError, status } from '@grpc/grpc-js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { type HttpServer, serveHttp } from '../../../src/metrics/http.ts';
import type { MetricsFormat } from '../../../src/metrics/metrics.ts';

interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

/** Leaves its connection open and idle, as a scraper does. */
function ask(
  server: HttpServer,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  method = 'GET',
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const agent = new Agent({ keepAlive: true });
    const { host, port } = server;
    const sent = request({ host, port, path, headers, method, agent }, (got) => {
      const chunks: Buffer[] = [];
      got.on('data', (chunk: Buffer) => chunks.push(chunk));
      got.on('end', () =>
        resolve({ status: got.statusCode ?? 0, headers: got.headers, body: Buffer.concat(chunks) }),
      );
    });
    sent.on('error', reject);
    sent.end();
  });
}

async function serve(changes: Partial<Parameters<typeof serveHttp>[0]> = {}): Promise<HttpServer> {
  const server = await serveHttp({
    listen: '127.0.0.1:0',
    connectionsMax: 64,
    metrics: { render: async (format) => `in ${format} ${'x'.repeat(2000)}\n` },
    live: () => true,
    ready: () => true,
    page: async () => false,
    grpc: () => ['unix:/run/gnnd.sock', '127.0.0.1:7443'],
    log: createLog({ level: 'error', write: () => {} }),
    ...changes,
  });
  onTestFinished(() => server.close());
  return server;
}

describe('the HTTP server', () => {
  test('health follows what the daemon says', async () => {
    let ready = false;
    const server = await serve({ ready: () => ready });
    expect((await ask(server, '/livez')).status).toBe(200);
    expect((await ask(server, '/readyz')).status).toBe(503);
    ready = true;
    expect((await ask(server, '/readyz?verbose')).status).toBe(200);
    const dead = await serve({ live: () => false });
    expect((await ask(dead, '/livez')).status).toBe(503);
  });

  test('a client of gRPC hears where it is, and where gRPC is', async () => {
    const server = await serve();
    const client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
    const error = await new Promise<ServiceError | null>((resolve) => {
      const bytes = (value: Buffer) => value;
      client.makeUnaryRequest('/gnnd.v1.JobService/ListJobs', bytes, bytes, Buffer.of(), resolve);
    });
    client.close();
    expect(error?.code).toBe(status.UNIMPLEMENTED);
    const where = 'gRPC is served at unix:/run/gnnd.sock, 127.0.0.1:7443';
    expect(error?.details).toBe(`this is gnnd's metrics_listen, for HTTP; ${where}`);
    expect((await ask(server, '/livez')).status).toBe(200);
  });

  test('other paths and methods are refused', async () => {
    const server = await serve();
    expect((await ask(server, '/')).status).toBe(404);
    expect((await ask(server, '/metrics/x')).status).toBe(404);
    const posted = await ask(server, '/metrics', {}, 'POST');
    expect([posted.status, posted.headers['allow']]).toEqual([405, 'GET, HEAD']);
    expect((await ask(server, '/livez', {}, 'HEAD')).body.length).toBe(0);
  });

  test('the format follows Accept', async () => {
    const server = await serve();
    const plain = await ask(server, '/metrics');
    expect(plain.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(plain.body.toString()).toMatch(/^in PROMETHEUS/);
    const accept = 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5';
    const open = await ask(server, '/metrics', { accept });
    expect(open.headers['content-type']).toMatch(/^application\/openmetrics-text; version=1\.0\.0/);
    expect(open.body.toString()).toMatch(/^in OPENMETRICS/);
  });

  test('a client that takes gzip gets it', async () => {
    const server = await serve();
    const packed = await ask(server, '/metrics', { 'accept-encoding': 'gzip' });
    expect(packed.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(packed.body).toString()).toMatch(/^in PROMETHEUS/);
  });

  test('scrapes within half a second share one rendering, in each format', async () => {
    let nowMs = 0;
    const rendered: MetricsFormat[] = [];
    const server = await serve({
      clock: { wallMs: () => 0, monotonicMs: () => nowMs },
      metrics: {
        render: async (format) => {
          rendered.push(format);
          return 'x\n';
        },
      },
    });
    await Promise.all([ask(server, '/metrics'), ask(server, '/metrics')]);
    nowMs = 499;
    await ask(server, '/metrics');
    await ask(server, '/metrics', { accept: 'application/openmetrics-text' });
    expect(rendered).toEqual(['PROMETHEUS', 'OPENMETRICS']);
    nowMs = 500;
    await ask(server, '/metrics');
    expect(rendered).toEqual(['PROMETHEUS', 'OPENMETRICS', 'PROMETHEUS']);
  });

  test('a rendering that fails is a 500 without its cause, and the server goes on', async () => {
    const lines: string[] = [];
    const server = await serve({
      metrics: { render: () => Promise.reject(new Error('secret path')) },
      log: createLog({ level: 'error', write: (line) => lines.push(line) }),
    });
    const failed = await ask(server, '/metrics');
    expect([failed.status, failed.body.toString()]).toEqual([500, 'internal error\n']);
    expect(lines.join()).toContain('secret path');
    expect((await ask(server, '/livez')).status).toBe(200);
  });

  test('half-sent requests shut nobody out: the oldest of them give way', async () => {
    const server = await serve({ connectionsMax: 64 });
    const { host, port } = server;
    const halves = Array.from({ length: 80 }, () => {
      const socket = connect({ host, port });
      socket.on('error', () => {});
      socket.write('GET /livez HTTP/1.1\r\nhost: x\r\n');
      return socket;
    });
    onTestFinished(() => {
      for (const socket of halves) socket.destroy();
    });
    const ended = new Set<number>();
    halves.forEach((socket, i) => {
      socket.once('close', () => ended.add(i));
      socket.resume();
    });
    await Promise.all(halves.map((socket) => once(socket, 'connect')));
    for (const path of ['/livez', '/readyz', '/metrics']) {
      expect((await ask(server, path)).status).toBe(200);
    }
    // 64 may stay, two of those who asked were idle by then: 83 - 64 had to go, the oldest.
    expect([...ended].sort((a, b) => a - b)).toEqual([...Array(19).keys()]);
  });

  test('a request that is being answered gives way to nobody', async () => {
    let answer = (_: string) => {};
    const text = new Promise<string>((resolve) => {
      answer = resolve;
    });
    const server = await serve({ connectionsMax: 2, metrics: { render: () => text } });
    const first = ask(server, '/metrics');
    for (let i = 0; i < 5; i++) expect((await ask(server, '/livez')).status).toBe(200);
    answer('done\n');
    expect((await first).body.toString()).toBe('done\n');
  });

  test('an address that cannot be used is refused', async () => {
    for (const listen of ['9464', 'localhost', '127.0.0.1:99999', '::1:9464', '']) {
      await expect(serve({ listen })).rejects.toThrow(/expected host:port/);
    }
    const server = await serve();
    await expect(serve({ listen: `127.0.0.1:${server.port}` })).rejects.toThrow(/EADDRINUSE/);
  });

  test('closing ends idle connections and frees the port', async () => {
    const server = await serve();
    await ask(server, '/livez');
    await server.close();
    await server.close();
    await expect(ask(server, '/livez')).rejects.toThrow(/ECONNREFUSED/);
  });
});
