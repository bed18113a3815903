import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { beforeAll, expect, test } from 'vitest';
import { CheckpointService } from '../../src/api/gen/gnnd/v1/checkpoint_service_pb.ts';
import { DatasetService } from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { HostService } from '../../src/api/gen/gnnd/v1/host_service_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { TestDaemon } from '../support/daemon.ts';
import { type Random, randomOf } from '../support/random.ts';
import { randomRequest } from '../support/random-message.ts';
import { until } from '../support/until.ts';

/**
 * Requests and bytes that nobody means, at random (GNND_SEED; GNND_CASES says how many requests). A
 * real daemon answers each with a status of its own, and serves on: the same process, the same
 * number of connections, no line about a bug of ours.
 */

const cases = Number(process.env['GNND_CASES'] ?? 1500);
const seed = Number(process.env['GNND_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const services = [JobService, CheckpointService, DatasetService, HostService];
const methods = services.flatMap((service) => service.methods);

let daemon: TestDaemon;

beforeAll(async () => {
  // Nothing of the host's is imported: a source of chance could be all of it.
  daemon = await TestDaemon.start({ datasets: ['cora'], flags: ['--sources-dir', '/nowhere'] });
});
/** The status that a request of a method's ended with; CANCELLED and DEADLINE_EXCEEDED are ours. */
function codeOf(random: Random): Promise<status> {
  const method = random.pick(methods);
  const path = `/${method.parent.typeName}/${method.name}`;
  const bytes = Buffer.from(randomRequest(random, method.input));
  const pass = (value: Buffer) => value;
  const options = { deadline: Date.now() + 3000 };
  return new Promise((resolve) => {
    if (method.methodKind === 'unary') {
      const done = (error: ServiceError | null) => resolve(error?.code ?? status.OK);
      daemon.client.makeUnaryRequest(path, pass, pass, bytes, new Metadata(), options, done);
      return;
    }
    const call = daemon.client.makeServerStreamRequest(path, pass, pass, bytes, options);
    let seen = 0;
    call.on('data', () => {
      seen += 1;
      if (seen === 3) call.cancel();
    });
    call.on('error', (error: ServiceError) => resolve(error.code));
    call.on('end', () => resolve(status.OK));
  });
}

async function serves(): Promise<void> {
  expect(daemon.process.exitCode, `GNND_SEED=${seed}`).toBe(null);
  const { pid } = await daemon.call(HostService.method.getHost, {});
  expect(pid).toBe(daemon.pid);
  const bugs = daemon.logs.split('\n').filter((line) => /internal_error|daemon\.bug/.test(line));
  expect(bugs.slice(0, 3), `GNND_SEED=${seed}`).toEqual([]);
}

test(`${cases} requests of chance are answered, each by a status`, async () => {
  const random = randomOf(seed);
  const counts = new Map<string, number>();
  const atOnce = 16;
  for (let first = 0; first < cases; first += atOnce) {
    const many = Array.from({ length: Math.min(atOnce, cases - first) }, () => codeOf(random));
    for (const code of await Promise.all(many)) {
      counts.set(status[code], (counts.get(status[code]) ?? 0) + 1);
    }
  }
  process.stdout.write(`fuzz ${seed}: ${JSON.stringify(Object.fromEntries(counts))}\n`);
  for (const bug of ['INTERNAL', 'UNKNOWN', 'UNAVAILABLE']) {
    expect(counts.get(bug) ?? 0, `GNND_SEED=${seed}: ${bug}`).toBe(0);
  }
  // Not all calls were refused before their methods looked at them.
  expect(counts.get('OK') ?? 0).toBeGreaterThan(cases / 50);
  expect(counts.get('INVALID_ARGUMENT') ?? 0).toBeGreaterThan(cases / 50);
  await serves();
}, 1_200_000);

test('bytes that are no HTTP/2, or only begin as such, end their connection alone', async () => {
  const random = randomOf(seed);
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
  const path = daemon.address.slice('unix:'.length);
  for (let i = 0; i < Math.min(cases, 1000); i += 1) {
    const socket = await until(() => connected(path));
    const length = random.integer(1, 400);
    const noise = Buffer.from(Uint8Array.from({ length }, () => random.integer(0, 255)));
    const parts = [[], [preface], [preface, settings], [preface, settings, frameOf(random)]];
    socket.write(Buffer.concat([...random.pick(parts), ...(random.chance(0.8) ? [noise] : [])]));
    if (random.chance(0.5)) socket.destroy();
    else socket.end();
  }
  await serves();
}, 600_000);

/** A connection; null where so many wait for the daemon that the host takes no more for now. */
async function connected(path: string): Promise<Socket | null> {
  const socket = connect({ path });
  socket.on('error', () => {});
  socket.resume();
  const refusal = await once(socket, 'connect').catch((error: NodeJS.ErrnoException) => error);
  if (Array.isArray(refusal)) return socket;
  if (refusal.code !== 'EAGAIN') throw refusal;
  return null;
}

/** A header of a frame that may promise more than follows, of any type, for any stream. */
function frameOf(random: Random): Buffer {
  const type = random.integer(0, 12);
  const flags = random.integer(0, 255);
  const payload = Buffer.alloc(random.integer(0, 60), random.integer(0, 255));
  const told = random.chance(0.7) ? payload.length : random.integer(0, 0xffff);
  const stream = random.pick([0, 1, 2, 3, 0x7fffffff]);
  const head = Buffer.alloc(9);
  head.writeUIntBE(told, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}
