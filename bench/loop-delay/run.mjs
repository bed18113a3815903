#!/usr/bin/env node
// How long the daemon's event loop is late while the daemon computes: CreateJobs from images of a
// gigabyte, the largest placement simulation of ten million rows, plans, and all of them at once.
//
//   node bench/loop-delay/run.mjs [--images 20] [--at-once 4] [--rows 10000000] [--plans 1000]
//
// The delay is perf_hooks' monitorEventLoopDelay (1 ms) in the daemon itself, loaded into it by
// NODE_OPTIONS. So many CreateJobs as `--at-once` says are open at a time, because a daemon may
// hold as many images in memory. The devices are drained: no job runs meanwhile. Needs 6 GB of disk
// in the folder for temporary files and 8 GB of memory. A JSON line a row in build/bench.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { DatasetService } from '../../dist/api/gen/gnnd/v1/dataset_service_pb.js';
import { HostService } from '../../dist/api/gen/gnnd/v1/host_service_pb.js';
import { JobState } from '../../dist/api/gen/gnnd/v1/job_pb.js';
import { JobService } from '../../dist/api/gen/gnnd/v1/job_service_pb.js';
import { createApiClient as connect } from '../../dist/cli/session/client.js';
import { Daemon } from '../daemon.mjs';

const { values: options } = parseArgs({
  options: {
    images: { type: 'string', default: '20' },
    'at-once': { type: 'string', default: '4' },
    rows: { type: 'string', default: '10000000' },
    plans: { type: 'string', default: '1000' },
  },
});
const [images, atOnce, rows, plans] = ['images', 'at-once', 'rows', 'plans'].map((name) =>
  Number(options[name]),
);
const pause = (ms) => new Promise((resume) => setTimeout(resume, ms));
const root = mkdtempSync(join(tmpdir(), 'gnnd-loop-delay-'));
const figuresFile = join(root, 'figures.json');
const devices = ['cpu:0', 'cpu:1'];

/** Loaded into the daemon: writes what was seen since the last signal, and begins anew. */
const monitor = `
import { renameSync, writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';
if (isMainThread && process.argv[2] === 'serve') {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  process.on('SIGUSR2', () => {
    const ms = (ns) => ns / 1e6;
    const [p50, p99] = [50, 99].map((share) => ms(delay.percentile(share)));
    const found = { p50, p99, max: ms(delay.max) };
    const path = ${JSON.stringify(figuresFile)};
    writeFileSync(path + '.part', JSON.stringify(found));
    renameSync(path + '.part', path);
    delay.reset();
  });
}
`;

function writeArray(folder, name, descr, shape, data) {
  const head = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape.join(', ')},), }`;
  const header = Buffer.alloc(128, ' ');
  header.write('\x93NUMPY\x01\x00', 'latin1');
  header.writeUInt16LE(118, 8);
  header.write(head, 10);
  header.write('\n', 127);
  writeFileSync(join(folder, `${name}.npy`), Buffer.concat([header, Buffer.from(data.buffer)]));
}

/** Each node has two in-neighbours, the first of which are few: some rows are much hotter. */
function writeGraph(folder, nodes) {
  mkdirSync(folder);
  const indices = new Uint32Array(2 * nodes);
  for (let i = 0; i < nodes; i += 1) {
    const share = ((i * 7919) % nodes) / nodes;
    indices[2 * i] = Math.floor(share ** 3 * nodes);
    indices[2 * i + 1] = (i + 1) % nodes;
  }
  const indptr = BigInt64Array.from({ length: nodes + 1 }, (_, i) => BigInt(2 * i));
  const labels = Int32Array.from({ length: nodes }, (_, i) => i % 2);
  const features = Float32Array.from({ length: nodes }, (_, i) => i % 2);
  const tenth = Math.floor(nodes / 10);
  const split = (from) => Int32Array.from({ length: tenth }, (_, i) => from + i);
  writeArray(folder, 'indptr', '<i8', [nodes + 1], indptr);
  writeArray(folder, 'indices', '<u4', [2 * nodes], indices);
  writeArray(folder, 'features', '<f4', [nodes, 1], features);
  writeArray(folder, 'labels', '<i4', [nodes], labels);
  writeArray(folder, 'train', '<i4', [tenth], split(0));
  writeArray(folder, 'val', '<i4', [tenth], split(tenth));
  writeArray(folder, 'test', '<i4', [tenth], split(2 * tenth));
}

function importGraph(daemon, id, nodes) {
  const folder = join(root, id);
  writeGraph(folder, nodes);
  daemon.gnnctl('dataset', 'import', folder, '--id', id, '--quiet');
  rmSync(folder, { recursive: true });
}

/** 67 million parameters, which with Adam's moments and the best ones are an image of 1.07 GB. */
const large = {
  dataset: 'small',
  model: { layers: 4, hiddenDim: 4096 },
  sampling: { fanouts: [1, 1, 1, 1] },
  training: { epochs: 100_000, batchSize: 20, threadsPerTrainer: 1, batchesPerStep: 1 },
  checkpoint: { everyEpochs: 1 },
};

const { createJob, getJob, suspendJob, getJobPlan } = JobService.method;

async function until(client, name, isSo) {
  for (;;) {
    const job = await client.unary(getJob, { name });
    if (isSo(job)) return;
    if (job.endTime !== undefined) throw new Error(`${name}: ${job.message}`);
    await pause(200);
  }
}

async function leaveImage(client) {
  await client.unary(createJob, { jobId: 'large', spec: large });
  await until(client, 'jobs/large', ({ numEpochs }) => numEpochs >= 2);
  await client.unary(suspendJob, { name: 'jobs/large' });
  await until(client, 'jobs/large', ({ state }) => state === JobState.SUSPENDED);
}

/** A suspended job that leaves its image where one is wanted, and devices that nothing uses. */
async function prepare(daemon, client) {
  importGraph(daemon, 'small', 200);
  importGraph(daemon, 'wide', rows);
  if (images > 0) await leaveImage(client);
  for (const device of devices) {
    await client.unary(HostService.method.drainDevice, { name: `devices/${device}` });
  }
  await client.unary(createJob, { jobId: 'queued', spec: { ...large, checkpoint: {} } });
}

let made = 0;
async function createFromImages(client) {
  let left = images;
  const spec = { ...large, training: { ...large.training, startFrom: 'large@last' } };
  const one = async () => {
    while (left > 0) {
      left -= 1;
      made += 1;
      await client.unary(createJob, { jobId: `begun-${made}`, spec }, { timeoutMs: 600_000 });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
}

async function simulate(client) {
  const ratios = Array.from({ length: 20 }, (_, i) => (i + 1) / 21);
  await client.unary(
    DatasetService.method.simulatePlacement,
    {
      name: 'datasets/wide',
      ...{ sampling: { fanouts: [2] }, batchSize: 8192, epochs: 1 },
      ...{ deviceCounts: [1, 2, 4, 8], ratios },
    },
    { timeoutMs: 600_000 },
  );
}

async function plan(client) {
  const name = 'jobs/queued';
  await Promise.all(Array.from({ length: plans }, () => client.unary(getJobPlan, { name })));
}

async function figures(daemon) {
  rmSync(figuresFile, { force: true });
  daemon.child.process.kill('SIGUSR2');
  for (;;) {
    try {
      return JSON.parse(readFileSync(figuresFile, 'utf8'));
    } catch {
      await pause(5);
    }
  }
}

const lines = [];
async function measure(daemon, what, work) {
  await pause(1000);
  await figures(daemon);
  const startMs = performance.now();
  await work();
  const seconds = (performance.now() - startMs) / 1000;
  const found = await figures(daemon);
  lines.push(JSON.stringify({ bench: 'loop-delay', what, ...found, seconds }));
  const cells = [found.p50, found.p99, found.max].map((ms) => ms.toFixed(ms < 10 ? 2 : 0));
  process.stdout.write(
    `${what.padEnd(44)} p50 ${cells[0]}, p99 ${cells[1]}, most ${cells[2]} ms; ` +
      `answered after ${seconds.toFixed(2)} s\n`,
  );
}

const load = loadavg()[0].toFixed(1);
process.stdout.write(`${cpus()[0]?.model}, ${cpus().length} cores, load ${load}\n`);
const daemon = new Daemon();
try {
  const preload = join(root, 'monitor.mjs');
  writeFileSync(preload, monitor);
  await daemon.start(root, devices.length, null, { env: { NODE_OPTIONS: `--import ${preload}` } });
  const client = connect(daemon.address);
  await prepare(daemon, client);
  await measure(daemon, 'nothing, for 5 s', () => pause(5000));
  await measure(daemon, `${plans} plans`, () => plan(client));
  await measure(daemon, `simulation of ${rows} rows`, () => simulate(client));
  await measure(daemon, `${images} CreateJobs from images`, () => createFromImages(client));
  await measure(daemon, 'all of them at once', () =>
    Promise.all([createFromImages(client), simulate(client), plan(client)]),
  );
  client.close();
} finally {
  await daemon.end();
  rmSync(root, { recursive: true, force: true });
  mkdirSync('build/bench', { recursive: true });
  writeFileSync('build/bench/loop-delay.jsonl', `${lines.join('\n')}\n`);
}
