#!/usr/bin/env node
// A graph of the shape of ogbn-papers100M, from import to test accuracy, on a host whose memory may
// be smaller: what bounds it, beside what the disk gives, and what memory every process took.
//
//   node bench/huge/run.mjs [--scale 1.0] [--epochs 1] [--fanouts 15,10,5] [--train SHARE]
//                           [--batch 1024] [--memory GIB] [--copy] [--keep]
//                           [--folder build/bench/huge]
//
// The graph is that of graph.py; its files are linked into the dataset, not copied, unless --copy
// is given. One daemon on two CPU devices; GraphSAGE, hidden 256, sampled evaluation, all else by
// default. --train takes a share of the nodes of the splits. --memory puts the daemon into a
// control group (version 1, as root) with so many GiB, page cache included: a small graph is then
// larger than memory, as the whole one is on a host of 24 GiB. Lines go to build/bench/huge.jsonl,
// the transcript to build/bench/huge.txt. At scale 1 it needs 37 GB of disk (74 with --copy).
import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Daemon, MemoryGroup, output } from '../daemon.mjs';

const { values: options } = parseArgs({
  options: {
    scale: { type: 'string', default: '1.0' },
    epochs: { type: 'string', default: '1' },
    fanouts: { type: 'string', default: '15,10,5' },
    train: { type: 'string', default: '1' },
    batch: { type: 'string', default: '1024' },
    memory: { type: 'string' },
    folder: { type: 'string', default: 'build/bench/huge' },
    copy: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
  },
});
const python = process.env.GNND_PYTHON ?? '.venv/bin/python';
const lookEveryMs = 1_000;
const pageBytes = 4096;
const rowBytes = 256;
const probeBytes = 2 ** 31;
const transcript = [];
/** When the last command said what. */
const lineTimes = [];

function say(text) {
  transcript.push(text);
  process.stdout.write(`${text}\n`);
}

const gib = (bytes) => `${(bytes / 2 ** 30).toFixed(2)} GiB`;
const percent = (share) => `${(100 * share).toFixed(0)} %`;

/** Runs gnnctl as a user does, echoing the command and what it prints; seconds it took. */
async function type(daemon, ...args) {
  say(`\n$ gnnctl ${args.join(' ')}`);
  const startMs = performance.now();
  const child = spawn(process.execPath, daemon.command(...args), {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let last = '';
  lineTimes.length = 0;
  const take = (data) => {
    for (const line of data
      .toString()
      .split('\n')
      .filter((text) => text !== '')) {
      // Progress is told every second: only lines that differ by more than numbers are said.
      const kind = line.replace(/[\d.,]+/g, '#');
      lineTimes.push({ line, atMs: performance.now() });
      if (kind !== last) say(line);
      last = kind;
    }
  };
  child.stdout.on('data', take);
  child.stderr.on('data', take);
  const status = await new Promise((done) => child.on('close', done));
  if (status !== 0) throw new Error(`gnnctl ${args[0]} ${args[1]} ended with ${status}`);
  return (performance.now() - startMs) / 1000;
}

function fieldOf(path, name) {
  try {
    return Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(fs.readFileSync(path, 'utf8'))?.[1]);
  } catch {
    return 0;
  }
}

function childrenOf(pid) {
  return fs.readdirSync('/proc').filter((name) => {
    try {
      const stat = /^\d+$/.test(name) ? fs.readFileSync(`/proc/${name}/stat`, 'latin1') : '';
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === pid;
    } catch {
      return false;
    }
  });
}

/** Names of executors by process, from the daemon's own account of its jobs. */
function roleOf(pid) {
  try {
    const names = fs.readdirSync(`/proc/${pid}/task`).map((task) => {
      return fs.readFileSync(`/proc/${pid}/task/${task}/comm`, 'utf8').trim();
    });
    const maps = fs.readFileSync(`/proc/${pid}/maps`, 'utf8');
    if (maps.includes('libtorch_cpu')) return 'Trainer';
    return maps.includes('memfd:gnnd-segment') || names.length === 0 ? 'Sampler' : 'Preparer';
  } catch {
    return 'gone';
  }
}

/** High-water of each process's own memory (page cache left out), and what each read from disk. */
class Watch {
  peaks = new Map();
  read = new Map();
  samples = [];

  constructor(pid) {
    const look = () => {
      this.note('daemon', pid);
      for (const child of childrenOf(pid)) this.note(roleOf(child), child);
      const bytes = [...this.read.values()].reduce((sum, each) => sum + each, 0);
      this.samples.push({ atMs: performance.now(), bytes });
    };
    this.timer = setInterval(look, lookEveryMs);
  }

  note(role, pid) {
    // Anonymous and shared memory: what mapped files take is the page cache's.
    const status = `/proc/${pid}/status`;
    const bytes = 1024 * (fieldOf(status, 'RssAnon') + fieldOf(status, 'RssShmem'));
    this.peaks.set(role, Math.max(this.peaks.get(role) ?? 0, bytes || 0));
    const read = fieldOf(`/proc/${pid}/io`, 'read_bytes');
    if (read > 0) this.read.set(pid, read);
  }

  take() {
    const { peaks, samples } = this;
    this.peaks = new Map();
    this.samples = [];
    return { peaks: Object.fromEntries(peaks), samples };
  }

  end() {
    clearInterval(this.timer);
  }
}

/** Seconds of each stage so far, all executors of all jobs. */
async function stageSeconds(daemon) {
  const text = await (await fetch(`http://${daemon.metrics}/metrics`)).text();
  const stages = {};
  for (const [, stage, value] of text.matchAll(
    /^gnnd_stage_seconds_total\{[^}]*stage="(\w+)"[^}]*\} (\S+)/gm,
  )) {
    stages[stage] = (stages[stage] ?? 0) + Number(value);
  }
  return stages;
}

/** Forgets a file's pages, so that what is read comes from the disk. */
function dropPages(folder) {
  const code =
    'import os, sys\nfor name in sys.argv[1:]:\n fd = os.open(name, os.O_RDONLY)\n os.fsync(fd)\n' +
    ' os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)\n';
  const files = fs.readdirSync(folder).filter((name) => name.endsWith('.npy'));
  output(python, ['-c', code, ...files.map((name) => join(folder, name))]);
}

/** Bytes a second of copying (to the disk) and then hashing, or of hashing alone, from the disk. */
function plainRate(graph, state) {
  const part = join(state, 'part');
  const bytes = Math.min(probeBytes, fs.statSync(join(graph, 'features.npy')).size);
  dropPages(graph);
  const startMs = performance.now();
  const head = `head -c ${bytes} ${join(graph, 'features.npy')}`;
  if (options.copy) {
    output('sh', ['-c', `${head} > ${part} && sync ${part}`]);
    output('sha256sum', [part]);
  } else {
    output('sh', ['-c', `${head} | sha256sum`]);
  }
  const rate = (1000 * bytes) / (performance.now() - startMs);
  fs.rmSync(part, { force: true });
  dropPages(graph);
  return rate;
}

/** Random rows a second past the page cache, many at once. */
function diskRate(file) {
  const line = output('build/native/disk_bench', ['rate', file, String(rowBytes)]);
  return JSON.parse(line).rows_per_s;
}

/** The same by GraphBolt, where it is installed (bench/peers/setup.sh); null elsewhere. */
function graphBoltRate(file) {
  const peer = '.cache/peers/dgl/bin/python';
  if (!fs.existsSync(peer)) return null;
  const { version, rows_per_s } = JSON.parse(output(peer, ['bench/huge/graphbolt_rows.py', file]));
  say(`GraphBolt ${version}, mapped: ${(rows_per_s / 1e3).toFixed(1)} k random rows/s`);
  return rows_per_s;
}

const specOf = () => `dataset: huge
model: { type: GRAPHSAGE, hidden_dim: 256, dropout: 0.5 }
sampling: { fanouts: [${options.fanouts}] }
training: { epochs: ${options.epochs}, batch_size: ${options.batch} }
evaluation: { method: SAMPLED }
resources: { devices: 2 }
`;

/** Pages a second that were read while batches were trained: loading and checking read in order. */
function pagesWhileTraining(samples, lineTimes) {
  const startMs = lineTimes.find(({ line }) => line.includes('RUNNING, training'))?.atMs;
  const endMs = lineTimes.find(({ line }) => / (evaluating|epoch \d)/.test(line))?.atMs;
  const during = samples.filter(({ atMs }) => atMs > startMs && atMs < endMs);
  const [from, to] = [during[0], during.at(-1)];
  if (from === undefined || from === to) return 0;
  return (to.bytes - from.bytes) / pageBytes / ((to.atMs - from.atMs) / 1000);
}

/** What the job waited for, of its time. */
function boundOf({ seconds, stages, diskShare }) {
  const shares = {
    disk: diskShare,
    sampling: (stages.S ?? 0) / seconds,
    training: (stages.T ?? 0) / seconds,
  };
  const [name] = Object.entries(shares).sort((a, b) => b[1] - a[1])[0];
  return { name, shares };
}

async function runImport(daemon, watch, graph, state) {
  const plain = plainRate(graph, state);
  watch.take();
  const link = options.copy ? [] : ['--link'];
  const seconds = await type(daemon, 'dataset', 'import', graph, '--id', 'huge', ...link);
  const files = fs.readdirSync(graph).map((name) => fs.statSync(join(graph, name)).size);
  const bytes = files.reduce((sum, size) => sum + size, 0);
  const { peaks } = watch.take();
  const share = bytes / seconds / plain;
  const done = options.copy ? 'copied, hashed and checked' : 'hashed and checked, not copied';
  const beside = options.copy ? 'cp, sync and sha256sum' : 'sha256sum';
  say(
    `\nimport: ${gib(bytes)} ${done} in ${seconds.toFixed(1)} s, ${percent(share)} of the rate of`,
  );
  say(`${beside} (${(plain / 1e6).toFixed(0)} MB/s); memory ${memoryText(peaks)}`);
  return { name: 'import', bytes, seconds, plainBytesPerS: plain, share, peaks };
}

const memoryText = (peaks) =>
  Object.entries(peaks)
    .filter(([role, bytes]) => role !== 'gone' && bytes > 0)
    .map(([role, bytes]) => `${role} ${gib(bytes)}`)
    .join(', ');

async function runJob(daemon, watch, state) {
  const spec = join(state, 'huge.yaml');
  fs.writeFileSync(spec, specOf());
  say(`\n$ cat huge.yaml\n${specOf().trimEnd()}`);
  // The spec goes to its output, which others show.
  await type(daemon, 'job', 'create', '-f', spec, '--dry-run', '-o', 'name').catch(() => 0);
  const files = join(state, 'state/datasets/huge');
  dropPages(files);
  const disk = diskRate(join(files, 'features.npy'));
  const graphBolt = graphBoltRate(join(files, 'features.npy'));
  dropPages(files);
  watch.take();
  let stages = {};
  const timer = setInterval(async () => {
    const now = await stageSeconds(daemon).catch(() => ({}));
    if (Object.keys(now).length > 0) stages = now;
  }, lookEveryMs);
  const seconds = await type(daemon, 'job', 'create', '-f', spec, '--id', 'huge', '--follow');
  clearInterval(timer);
  const job = daemon.succeeded('huge');
  const { peaks, samples } = watch.take();
  const pages = pagesWhileTraining(samples, lineTimes);
  const epochSeconds = job.epochs.reduce((sum, each) => sum + Number(each.durationMs) / 1000, 0);
  const diskShare = pages / disk;
  const bound = boundOf({ seconds: epochSeconds, stages, diskShare });
  const read = (samples.at(-1)?.bytes ?? 0) - (samples[0]?.bytes ?? 0);
  say(`\nepochs ${epochSeconds.toFixed(1)} s; busy seconds by stage: ${JSON.stringify(stages)}`);
  say(`read from disk ${gib(read)}; while training ${(pages / 1e3).toFixed(1)} k pages/s`);
  say(`the disk gives ${(disk / 1e3).toFixed(1)} k random rows/s of ${rowBytes} B (O_DIRECT)`);
  const shares = Object.entries(bound.shares).map(([name, share]) => `${name} ${percent(share)}`);
  say(`bound by ${bound.name}: ${shares.join(', ')}`);
  say(`memory: ${memoryText(peaks)}`);
  const result = {
    name: 'job',
    seconds,
    epochSeconds,
    stages,
    read,
    pages,
    disk,
    diskShare,
    graphBolt,
  };
  return { ...result, bound: bound.name, peaks, accuracy: job.result?.testAccuracyBest };
}

function limitMemory(pid) {
  if (options.memory === undefined) return () => {};
  const bytes = Number(options.memory) * 2 ** 30;
  const group = new MemoryGroup('huge', bytes);
  group.add(pid);
  say(`the daemon's control group has ${gib(bytes)}`);
  return () => group.release();
}

async function main() {
  const graph = resolve(options.folder, 'graph');
  // On the same file system: files are linked.
  fs.mkdirSync(resolve(options.folder), { recursive: true });
  const state = fs.mkdtempSync(join(options.copy ? tmpdir() : resolve(options.folder), 'state-'));
  say(`${cpus()[0]?.model}, ${cpus().length} processors, ${gib(totalmem())} of memory`);
  const lines = [];
  const daemon = new Daemon();
  let watch = null;
  let release = () => {};
  try {
    const arguments_ = ['bench/huge/graph.py', graph, '--scale', options.scale];
    output(python, [...arguments_, '--train', options.train]);
    await daemon.start(state);
    const { pid } = daemon.child.process;
    release = limitMemory(pid);
    watch = new Watch(pid);
    lines.push(await runImport(daemon, watch, graph, state));
    lines.push(await runJob(daemon, watch, state));
  } finally {
    watch?.end();
    await daemon.end();
    release();
    fs.rmSync(state, { recursive: true, force: true });
    if (!options.keep) fs.rmSync(graph, { recursive: true, force: true });
    fs.mkdirSync('build/bench', { recursive: true });
    const json = lines.map((line) => JSON.stringify({ scale: options.scale, ...line })).join('\n');
    fs.writeFileSync('build/bench/huge.jsonl', `${json}\n`);
    fs.writeFileSync('build/bench/huge.txt', `${transcript.join('\n')}\n`);
  }
}

main().catch((error) => {
  process.stderr.write(`${error.stack ?? error}\n`);
  process.exit(1);
});
