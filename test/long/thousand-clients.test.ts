import { setTimeout as later } from 'node:timers/promises';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Client, credentials } from '@grpc/grpc-js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { pair, type SpecInit } from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import { holdingsOf } from '../support/leftovers.ts';
import { hangMs, Patience } from '../support/until.ts';

/** Everybody watches the same job, each over a connection of their own. */

const clientsCount = 1000;
const { cancelJob, watchJob } = JobService.method;

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start({ datasets: ['cora'] });
});
afterAll(() => daemon.stop());

interface Watcher {
  readonly client: Client;
  /** Resolves with its first response; rejects when the stream breaks before. */
  readonly isOpen: Promise<void>;
  /** When it was told that the job is cancelled; rejects likewise. */
  readonly sawEnd: Promise<void>;
}

function watches(): Watcher {
  // Without this they would share a connection.
  const options = { 'grpc.use_local_subchannel_pool': 1 };
  const client = new Client(daemon.address, credentials.createInsecure(), options);
  const stream = client.makeServerStreamRequest(
    `/${watchJob.parent.typeName}/${watchJob.name}`,
    (bytes: Uint8Array) => Buffer.from(bytes),
    (bytes: Buffer) => fromBinary(watchJob.output, bytes),
    toBinary(watchJob.input, create(watchJob.input, { name: 'jobs/watched' })),
  );
  const isOpen = new Promise<void>((resolve, reject) => {
    stream.once('data', () => resolve());
    stream.once('error', reject);
  });
  const sawEnd = new Promise<void>((resolve, reject) => {
    // The stream stays open: the job may be retried.
    stream.on('data', ({ job }) => {
      if (job?.state === JobState.CANCELLED) resolve();
    });
    stream.on('error', reject);
  });
  return { client, isOpen, sawEnd };
}

test('a thousand clients that come at once watch a job to its end, and leave nothing', async () => {
  const spec: SpecInit = { dataset: 'cora', training: { epochs: 100_000 }, ...pair };
  await daemon.createJob('busy', spec);
  await daemon.until('busy', ({ state }) => state === JobState.RUNNING);
  // It waits for devices: what 1,000 clients can read of one that trains is not asked here.
  await daemon.createJob('watched', spec);
  const before = holdingsOf(daemon.pid);
  const watchers = Array.from({ length: clientsCount }, watches);
  const ends = Promise.all(watchers.map(({ sawEnd }) => sawEnd));
  await Promise.all(watchers.map(({ isOpen }) => isOpen));
  const among = holdingsOf(daemon.pid);
  expect(among.all - before.all).toBeGreaterThanOrEqual(clientsCount - 10);
  expect((among.residentBytes - before.residentBytes) / clientsCount).toBeLessThan(400 * 1024);
  // Somebody else is answered, and all of them hear of it.
  await daemon.call(cancelJob, { name: 'jobs/watched' });
  await ends;
  for (const { client } of watchers) client.close();
  const patience = new Patience(hangMs);
  const connections = () => holdingsOf(daemon.pid).all - before.all;
  while (connections() > 10 && !patience.isOver()) await later(20);
  expect(connections()).toBeLessThanOrEqual(10);
  await daemon.call(cancelJob, { name: 'jobs/busy' });
}, 300_000);
