#!/usr/bin/env node
// One daemon with its real store, at size: a long queue, a restart, submissions, watches.
//
//   node bench/control/run.mjs [--queued 10000] [--epochs 100000] [--submissions 1000]
//                              [--only queue|disk|submissions|watches|real|executors]
//
// Each row is printed beside its goal, and as a line of JSON in build/bench/control.jsonl. Nothing
// fails for a row that misses its goal. What is a stand-in: the queued and ended jobs are put into
// the store before the daemon starts, and in the rows of watches epochs come from a writer at the
// border of store and runner (100 a transaction), served by the daemon's own API in a process of
// its own; a real job of `--real` tiny epochs is watched besides.
import { execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { serve } from '../../dist/api/api.js';
import { JobState } from '../../dist/api/gen/gnnd/v1/job_pb.js';
import { JobService } from '../../dist/api/gen/gnnd/v1/job_service_pb.js';
import { systemClock } from '../../dist/base/clock.js';
import { createLog } from '../../dist/base/log.js';
import { createApiClient as connect } from '../../dist/cli/session/client.js';
import { assertTransition } from '../../dist/jobs/job-state.js';
import { createJobs } from '../../dist/jobs/jobs.js';
import { jobRequestOf } from '../../dist/scheduler/request.js';
import { freshTally } from '../../dist/scheduler/restart.js';
import { decide, initialState, nextWakeMs } from '../../dist/scheduler/scheduler.js';
import { resolveJobSpec } from '../../dist/spec/resolve-job-spec.js';
import { openStore } from '../../dist/store/store.js';
import { Daemon, LineChild, output } from '../daemon.mjs';

const { values: options } = parseArgs({
  options: {
    queued: { type: 'string', default: '10000' },
    epochs: { type: 'string', default: '100000' },
    submissions: { type: 'string', default: '1000' },
    real: { type: 'string', default: '3000' },
    watch: { type: 'string' },
    streams: { type: 'string', default: '1' },
    only: { type: 'string' },
  },
});
const { cancelJob, createJob, getJob, listJobs, watchJob } = JobService.method;
const log = createLog({ level: 'error' });
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');
const lines = [];

function report(what, figure, goal, isMet) {
  lines.push(JSON.stringify({ bench: 'control', what, figure, goal, met: isMet }));
  const mark = isMet === null ? '' : isMet ? 'met' : 'MISSED';
  process.stdout.write(`${what.padEnd(58)} ${figure.padEnd(26)} ${goal.padEnd(22)} ${mark}\n`);
}

const ms = (value) => `${value.toFixed(value < 10 ? 2 : 0)} ms`;
const quantile = (values, q) => [...values].sort((a, b) => a - b)[Math.floor(values.length * q)];
async function timed(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** A graph so small that an epoch is nothing: 40 nodes in a ring, two classes. */
function writeGraph(folder) {
  mkdirSync(folder, { recursive: true });
  const split = ['train', 'val', 'test', 'train'];
  const nodes = Array.from({ length: 40 }, (_, i) => `n${i},${i % 2},${split[i % 4]},${i % 2},1`);
  const edges = Array.from({ length: 40 }, (_, i) => `n${i},n${(i + 1) % 40}`);
  writeFileSync(join(folder, 'nodes.csv'), `id,label,split,a,b\n${nodes.join('\n')}\n`);
  writeFileSync(join(folder, 'edges.csv'), `source,target\n${edges.join('\n')}\n`);
}

const tiny = (epochs) => ({
  dataset: 'ring',
  model: { layers: 1, hiddenDim: 4 },
  sampling: { fanouts: [2] },
  training: { epochs, batchSize: 20, threadsPerTrainer: 1 },
});

function resolved(spec) {
  const resolution = resolveJobSpec(spec, {
    ...{ deviceNames: ['cpu:0', 'cpu:1'], smallestDeviceCores: 1, pluginFile: () => null },
    ...{ numNodes: 40, trainNodes: 20, valNodes: 10, hasEdgeWeights: false },
  });
  if ('ok' in resolution) return resolution.ok;
  throw new Error(JSON.stringify(resolution.violations));
}

const storePath = (folder) => join(folder, 'state', 'store', 'gnnd.db');
function openAt(path) {
  return openStore(path, { clock: systemClock, log, assertTransition });
}

async function freshDaemon(root, name, devices = 2) {
  const folder = join(root, name);
  mkdirSync(folder, { recursive: true });
  const daemon = new Daemon();
  await daemon.start(folder, devices);
  writeGraph(join(folder, 'ring'));
  daemon.gnnctl('dataset', 'import', join(folder, 'ring'), '--id', 'ring', '--quiet');
  return { daemon, folder };
}

async function untilState(client, name, state) {
  for (;;) {
    const job = await client.unary(getJob, { name });
    if (job.state === state) return;
    if (job.endTime !== undefined) throw new Error(`${name}: ${job.message}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Epochs of about a second on two cores: 98,000 nodes, 5 million entries. */
const normal = {
  dataset: 'normal',
  model: { hiddenDim: 128 },
  sampling: { fanouts: [10, 10] },
  training: { epochs: 100_000 },
};

function importNormalGraph(root, daemon) {
  const graph = join(root, 'normal');
  output('.venv/bin/python', ['bench/products/graph.py', graph, '--scale', '0.04']);
  daemon.gnnctl('dataset', 'import', graph, '--id', 'normal', '--quiet');
}

/** What answers take while the daemon has work to do, in ms. */
async function latencies(client, count) {
  const gets = [];
  for (let i = 0; i < 1000; i += 1) {
    const name = `jobs/queued-${(i * 7919) % count}`;
    gets.push(await timed(() => client.unary(getJob, { name })));
  }
  const lists = [];
  let pageToken = '';
  for (let i = 0; i < 200; i += 1) {
    lists.push(
      await timed(async () => {
        const page = await client.unary(listJobs, { pageSize: 100, pageToken });
        pageToken = page.nextPageToken;
      }),
    );
  }
  return { get: quantile(gets, 0.99), list: quantile(lists, 0.99) };
}

async function longQueue(root) {
  const count = Number(options.queued);
  const { daemon, folder } = await freshDaemon(root, 'queue', 1);
  importNormalGraph(root, daemon);
  const first = connect(daemon.address);
  await first.unary(createJob, { jobId: 'long', spec: normal });
  await first.unary(createJob, { jobId: 'tiny', spec: tiny(1_000_000) });
  first.close();
  await daemon.end();
  const store = openAt(storePath(folder));
  const { effectiveSpec, spec, datasetDigest } = store.getJob('long');
  const add = (id) =>
    store.insertJob({ id, uid: randomUUID(), spec, effectiveSpec, datasetDigest });
  for (let at = 0; at < count; at += 500) {
    store.atomically(() => {
      for (let i = at; i < Math.min(count, at + 500); i += 1) {
        add(`queued-${i}`);
        add(`ended-${i}`);
        store.transition(`ended-${i}`, { state: 'CANCELLED', reason: 'USER_CANCELLED' });
      }
    });
  }
  store.close();
  const empty = join(root, 'empty');
  mkdirSync(empty);
  const nothing = new Daemon();
  const bareMs = await timed(() => nothing.start(empty));
  await nothing.end();
  const startMs = await timed(() => daemon.start(folder, 1));
  report(
    `restart, ${count} queued and ${count} ended, process to ready`,
    `${ms(startMs)} (empty ${ms(bareMs)})`,
    'ready within 2 s',
    startMs <= 2000,
  );
  const client = connect(daemon.address);
  for (const [job, name] of [
    ['long', 'one running'],
    ['tiny', 'one of tiny epochs running'],
  ]) {
    await untilState(client, `jobs/${job}`, JobState.RUNNING);
    const { get, list } = await latencies(client, count);
    report(`GetJob of queued jobs, ${name}, p99`, ms(get), '10 ms', get <= 10);
    report(`ListJobs, 100 a page, ${name}, p99`, ms(list), '50 ms', list <= 50);
    await client.unary(cancelJob, { name: `jobs/${job}` });
  }
  client.close();
  await daemon.end();
  eventOfRunning(count, effectiveSpec);
}

/**
 * The store commits and syncs on the daemon's one thread: what a call waits for while a job of tiny
 * epochs commits all the time, and another process writes and syncs the same disk as fast as it
 * can.
 */
async function busyDisk(root) {
  const { daemon, folder } = await freshDaemon(root, 'disk', 1);
  const client = connect(daemon.address);
  await client.unary(createJob, { jobId: 'tiny', spec: tiny(1_000_000) });
  await untilState(client, 'jobs/tiny', JobState.RUNNING);
  const gets = async () => {
    const times = [];
    for (let i = 0; i < 3000; i += 1) {
      times.push(await timed(() => client.unary(getJob, { name: 'jobs/tiny' })));
    }
    return [0.5, 0.99, 0.9999].map((share) => quantile(times, share));
  };
  const quiet = await gets();
  const write = 'while :; do dd if=/dev/zero of="$0" bs=1M count=256 conv=fsync 2>/dev/null; done';
  const writer = spawn('sh', ['-c', write, join(folder, 'filler')], { stdio: 'ignore' });
  try {
    const busy = await gets();
    const cell = (values) => values.map(ms).join(' / ');
    report(
      'GetJob while a job commits and its disk is written and synced, p50 / p99 / most',
      `${cell(busy)} (else ${cell(quiet)})`,
      'a commit of the disk',
      null,
    );
  } finally {
    writer.kill();
  }
  await client.unary(cancelJob, { name: 'jobs/tiny' });
  client.close();
  await daemon.end();
}

/** What `progress` costs the loop: the decision and the next wake, as the runner asks for both. */
function eventOfRunning(count, spec) {
  const jobs = Array.from({ length: count + 1 }, (_, i) =>
    jobRequestOf({ jobId: `j${i}`, spec, createdAtMs: i, tally: freshTally, delayMs: 0 }),
  );
  const head = { jobId: 'j0', attempt: 1, nowMs: 1 };
  const timings = { samplerBatchNs: 100, trainerBatchNs: 200, standbyBatchNs: 300 };
  let state = decide(initialState, {
    kind: 'devicesFound',
    nowMs: 0,
    names: ['cpu:0', 'cpu:1'],
  }).state;
  state = decide(state, { kind: 'submitted', nowMs: 0, jobs }).state;
  state = decide(state, { kind: 'prepared', ...head }).state;
  state = decide(state, { kind: 'calibrated', ...head, timings, standbyRoom: [] }).state;
  for (const { executor } of state.running[0].stage.executors) {
    state = decide(state, { kind: 'executorReady', ...head, executor }).state;
  }
  const times = [];
  for (let i = 1; i <= 10_000; i += 1) {
    const start = performance.now();
    state = decide(state, { kind: 'progress', ...head, committedBatches: i }).state;
    nextWakeMs(state);
    times.push(performance.now() - start);
  }
  const p99 = quantile(times, 0.99);
  report('an event of the running job, p99', ms(p99), '1 ms of the loop', p99 <= 1);
}

async function submissions(root) {
  const count = Number(options.submissions);
  const { daemon, folder } = await freshDaemon(root, 'submissions');
  const clients = Array.from({ length: 10 }, () => connect(daemon.address));
  const requests = Array.from({ length: count }, () => ({
    spec: tiny(1_000_000),
    requestId: randomUUID(),
  }));
  const send = () =>
    Promise.all(requests.map((request, i) => clients[i % 10].unary(createJob, request)));
  let made = [];
  const took = await timed(async () => {
    made = await send();
  });
  daemon.child.process.kill('SIGKILL');
  await new Promise((resolve) => daemon.child.process.once('exit', resolve));
  for (const client of clients) client.close();
  await daemon.start(folder);
  for (let i = 0; i < clients.length; i += 1) clients[i] = connect(daemon.address);
  const again = await send();
  const names = new Set(made.map(({ name }) => name));
  const same = again.filter(({ name }) => names.has(name)).length;
  let kept = 0;
  let pageToken = '';
  do {
    const page = await clients[0].unary(listJobs, { pageSize: 500, pageToken });
    kept += page.jobs.length;
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  for (const client of clients) client.close();
  await daemon.end();
  report(
    `${count} submissions at once, until all are acknowledged`,
    ms(took),
    '10 s',
    took <= 10_000,
  );
  const isExact = names.size === count && same === count && kept === count;
  const figure = `${kept} kept, ${same} replayed`;
  report('  after SIGKILL and all of them again', figure, 'none lost, none twice', isExact);
}

const report0 = {
  ...{ batches: 2, steps: 2, retries: 0, loss: 0.5, trainAccuracy: 1, valAccuracy: 1 },
  ...{ testAccuracy: 1, durationMs: 1, parametersSha256: 'a'.repeat(64) },
  ...{ ledgerDigest: 'b'.repeat(64), batchesByDevice: { 'cpu:0': 1, 'cpu:1': 1 } },
  executorTimes: [],
};

/** A process has one connection to an address, and a connection that many streams. */
const streamsPerProcess = 100;

/** Streams of one process, each of which must see every epoch once and in order. */
async function watchAll() {
  const client = connect(options.watch);
  const count = Number(options.streams);
  const streams = Array.from({ length: count }, async (_, i) => {
    const request = { name: 'jobs/long', untilTerminal: true };
    let next = 0;
    let bytes = 0;
    for await (const { epochs } of client.stream(watchJob, request)) {
      bytes = Math.max(bytes, epochs.length);
      for (const { epoch } of epochs) {
        if (epoch !== next)
          throw new Error(`stream ${i}: epoch ${epoch} came when ${next} was due`);
        next += 1;
      }
    }
    return { next, bytes };
  });
  const ends = await Promise.all(streams);
  const seen = Math.min(...ends.map(({ next }) => next));
  const largest = Math.max(...ends.map(({ bytes }) => bytes));
  process.stdout.write(`${JSON.stringify({ seen, largest })}\n`);
  process.exit(0);
}

/** Bytes of this process's live objects and buffers; garbage is collected first. */
function liveBytes() {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function watches(root, count, epochs, pauseMs) {
  const folder = join(root, `watches-${count}`);
  const store = openAt(storePath(folder));
  const spec = tiny(epochs);
  const effectiveSpec = resolved(spec);
  store.insertJob({ id: 'long', uid: randomUUID(), spec, effectiveSpec, datasetDigest: 'none' });
  store.atomically(() => {
    store.openAttempt('long');
    store.transition('long', { state: 'PREPARING' });
    store.transition('long', { state: 'RUNNING' });
  });
  const runner = { state: initialState, attempts: new Map(), onQueueChange: () => () => {} };
  const jobs = createJobs({
    store,
    runner,
    native: {},
    clock: systemClock,
    host: {},
    maxQueued: 1,
  });
  const address = `unix:${join(folder, 'gnnd.sock')}`;
  const api = await serve(
    { jobs },
    { listen: [address], connectionsMax: 1000, log, clock: systemClock, version: 'bench' },
  );
  api.setReady(true);
  const watchers = Array.from({ length: count / streamsPerProcess }, () => {
    const streams = ['--watch', address, '--streams', String(streamsPerProcess)];
    return new LineChild(process.execPath, [import.meta.filename, ...streams]);
  });
  const answers = watchers.map((watcher) => watcher.next());
  while (api.watchCount() < count) await new Promise((resolve) => setTimeout(resolve, 20));
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  const memory = [];
  const startMs = performance.now();
  for (let at = 0; at < epochs; at += Math.min(100, epochs - at)) {
    const reports = Array.from({ length: Math.min(100, epochs - at) }, (_, i) => ({
      ...report0,
      epoch: at + i,
      version: 2 * (at + i + 1),
    }));
    store.recordEpochs('long', 1, reports);
    if (at % Math.ceil(epochs / 20) < 100) memory.push(liveBytes());
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  store.transition('long', { state: 'SUCCEEDED', reason: 'COMPLETED' });
  const ends = await Promise.all(answers);
  delay.disable();
  const seconds = (performance.now() - startMs) / 1000;
  const seen = Math.min(...ends.map((end) => end.seen));
  const largest = Math.max(...ends.map((end) => end.largest));
  await api.close(1000);
  store.close();
  memory.push(liveBytes());
  const what = `${count} watches of ${epochs} epochs (${seconds.toFixed(1)} s)`;
  const p99 = delay.percentile(99) / 1e6 - 10;
  report(`${what}: loop delay p99`, ms(Math.max(0, p99)), '50 ms', p99 <= 50);
  report('  epochs that every watch saw', String(seen), String(epochs), seen === epochs);
  report('  epochs in the largest response', String(largest), '100', largest <= 100);
  if (memory.length < 20) return; // too short to be flat
  const quarter = memory[Math.floor(memory.length / 4)];
  const mb = (bytes) => `${Math.round(bytes / 1e6)} MB`;
  const grown = memory.at(-1) - quarter;
  report(
    '  memory in use at a quarter and after the end, resident',
    `${mb(quarter)}, ${mb(memory.at(-1))}, ${mb(process.memoryUsage().rss)}`,
    'flat',
    grown <= 16e6,
  );
}

async function realJob(root) {
  const epochs = Number(options.real);
  const { daemon } = await freshDaemon(root, 'real');
  const client = connect(daemon.address);
  await client.unary(createJob, { jobId: 'tiny', spec: tiny(epochs) });
  const seen = [];
  for await (const event of client.stream(watchJob, { name: 'jobs/tiny', untilTerminal: true })) {
    seen.push(...event.epochs.map(({ epoch }) => epoch));
  }
  const { state } = await client.unary(getJob, { name: 'jobs/tiny' });
  client.close();
  await daemon.end();
  const inOrder = seen.every((epoch, index) => epoch === index);
  const figure = `${seen.length} of ${epochs}, ${JobState[state]}`;
  report(
    'a real job of tiny epochs, watched',
    figure,
    'every epoch',
    inOrder && seen.length === epochs && state === JobState.SUCCEEDED,
  );
}

/** The native part: executors whose work is a stand-in of 1 ms. */
function executors() {
  const binary = join('build', 'native', 'control_bench');
  const title = '64 executors, control of the time';
  if (!existsSync(binary)) {
    report(title, `${binary} is not built: node deploy/setup.mjs --bench`, '5 %', null);
    return;
  }
  const answer = execFileSync(binary, { encoding: 'utf8' });
  const line = answer.split('\n').find((each) => each.startsWith('{')) ?? '{}';
  for (const [work, found] of Object.entries(JSON.parse(line))) {
    const share = found?.control_share;
    if (typeof share !== 'number') continue;
    report(`${title}, work ${work}`, `${(100 * share).toFixed(1)} %`, '5 %', share <= 0.05);
  }
}

if (options.watch !== undefined) await watchAll();
else {
  const root = mkdtempSync(join(tmpdir(), 'gnnd-control-'));
  const load = loadavg()[0].toFixed(1);
  process.stdout.write(`${cpus()[0]?.model}, ${cpus().length} cores, load ${load}\n`);
  try {
    const rows = {
      queue: () => longQueue(root),
      disk: () => busyDisk(root),
      submissions: () => submissions(root),
      watches: async () => {
        await watches(root, 100, Number(options.epochs), 5);
        await watches(root, 500, 400, 250);
      },
      real: () => realJob(root),
      executors,
    };
    for (const [name, row] of Object.entries(rows)) {
      if (options.only === undefined || options.only === name) await row();
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
    mkdirSync('build/bench', { recursive: true });
    writeFileSync('build/bench/control.jsonl', `${lines.join('\n')}\n`);
  }
}
