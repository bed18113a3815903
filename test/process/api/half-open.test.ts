import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { JobState } from '../../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService, type WatchJobResponse } from '../../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { settled } from '../../support/api-fakes.ts';
import { until } from '../../support/until.ts';
import { createTestClient, type TestClient } from './client.ts';
import { socketsAlone, startApi, type TestApi } from './server.ts';

/** Connections that are there for one side only, as a lost host, a full table of a router or a
 * pulled cable leaves them: nothing arrives, and nobody says so. */

/** The head of an HTTP/2 frame: eight bytes, a PING, its answer, of the connection itself. */
const pingAnswer = Buffer.from([0, 0, 8, 6, 1, 0, 0, 0, 0]);

type Direction = 'UP' | 'DOWN';

/** A proxy that forwards until it is told to swallow what comes in these directions, without an end
 * and without an error. */
class Swallower {
  readonly #server: Server;
  readonly #sockets: Socket[] = [];
  readonly #swallowed = new Set<Direction>();
  #bytes = 0;
  #answers = 0;

  constructor(path: string) {
    // Half open, so that no end goes through by itself.
    this.#server = createServer({ allowHalfOpen: true }, (client) => {
      const daemon = connect({ path, allowHalfOpen: true });
      this.#forward(client, daemon, 'UP');
      this.#forward(daemon, client, 'DOWN');
    });
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    return `127.0.0.1:${address.port}`;
  }

  swallow(...directions: readonly Direction[]): void {
    for (const direction of directions) this.#swallowed.add(direction);
  }

  /** Bytes that nobody got. */
  get swallowed(): number {
    return this.#bytes;
  }

  /** How often the client said that it is there. */
  get answers(): number {
    return this.#answers;
  }

  /** Ends one side; the other side hears of it and may go on. */
  endUp(): void {
    for (const socket of this.#sockets.filter((_, i) => i % 2 === 1)) socket.end();
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #forward(from: Socket, to: Socket, direction: Direction): void {
    this.#sockets.push(from);
    from.on('error', () => {});
    from.on('data', (bytes: Buffer) => {
      if (this.#swallowed.has(direction)) this.#bytes += bytes.length;
      else to.write(bytes);
      if (direction === 'UP' && bytes.includes(pingAnswer)) this.#answers += 1;
    });
    from.on('end', () => {
      if (!this.#swallowed.has(direction)) to.end();
    });
  }
}

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const job = JobService.method;
const mine = { name: 'jobs/mine' };

async function start(): Promise<{ api: TestApi; proxy: Swallower; far: TestClient }> {
  const path = (folder: string) => join(folder, 'gnnd.sock');
  const access = () => ({ ...socketsAlone, keepaliveMs: 300 });
  const api = await startApi({}, (folder) => `unix:${path(folder)}`, 20, access);
  const proxy = new Swallower(path(api.folder));
  ends.push(() => proxy.close());
  const far = createTestClient(await proxy.listen());
  ends.push(() => far.close());
  return { api, proxy, far };
}

interface Told {
  readonly revision: bigint;
  readonly state: string;
}

function told({ revision, job: now }: WatchJobResponse): Told {
  return { revision, state: JobState[now?.state ?? 0] ?? '' };
}

/** A watch through the proxy that has told its first event; what it tells, as it comes. */
async function watching(far: TestClient): Promise<Told[]> {
  const seen: Told[] = [];
  void (async () => {
    try {
      for await (const response of far.stream(job.watchJob, mine)) seen.push(told(response));
    } catch {
      // The stream ended with its connection or its client.
    }
  })();
  while (seen.length === 0) await settled();
  return seen;
}

describe.each([
  ['both directions', ['UP', 'DOWN']],
  ['what the client says', ['UP']],
  ['what the daemon says', ['DOWN']],
] as const)('where a network swallows %s', (_, directions) => {
  it('connection and watch are given up on, and the watch resumes without a gap', async () => {
    const { api, proxy, far } = await start();
    const seen = await watching(far);
    api.jobs.transition('RUNNING');
    while (seen.length < 2) await settled();
    expect(api.api.watchCount()).toBe(1);
    expect(api.api.connectionCount()).toBe(1);
    proxy.swallow(...directions);
    api.jobs.transition('SUCCEEDED');
    while (api.api.watchCount() > 0) await settled();
    while (api.api.connectionCount() > 0) await settled();
    while (api.jobs.listenerCount > 0) await settled();
    expect(proxy.swallowed).toBeGreaterThan(0);
    const last = seen.at(-1)?.revision ?? 0n;
    const resumed = { ...mine, startRevision: last, untilTerminal: true };
    for await (const response of api.client.stream(job.watchJob, resumed)) {
      if (response.revision > last) seen.push(told(response));
    }
    // Each once, whether the first watch still heard the last one or not.
    expect(seen.map(({ state }) => state)).toEqual(['PENDING', 'RUNNING', 'SUCCEEDED']);
  });
});

it('a peer that answers is left alone, however long it has nothing to say', async () => {
  const { api, proxy, far } = await start();
  const seen = await watching(far);
  // Three times asked and answered.
  await until(() => proxy.answers >= 3);
  expect(api.api.watchCount()).toBe(1);
  api.jobs.transition('RUNNING');
  while (seen.length < 2) await settled();
});

it('a client whose end arrives, while it still listens, is let go', async () => {
  const { api, proxy, far } = await start();
  await watching(far);
  proxy.endUp();
  while (api.api.connectionCount() > 0) await settled();
  while (api.jobs.listenerCount > 0) await settled();
  expect(api.api.watchCount()).toBe(0);
});
