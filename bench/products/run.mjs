#!/usr/bin/env node
// A job of the size of ogbn-products, from import to test accuracy, as a user would run it: the
// transcript of the commands, where their time went, and what memory they took.
//
//   node bench/products/run.mjs [--scale 1.0] [--epochs 3] [--jobs default,sampled]
//                               [--folder build/bench/products] [--state FOLDER]
//
// The graph is that of graph.py. One daemon with default settings; GraphSAGE,
// hidden 256, fanouts 15/10/5, batches of 1,024. Every spec field that is not of the model is left
// to its default, but for evaluation.method in the second job. The job `links` learns 10 million
// links (times --scale) in one epoch, GraphSAGE of two layers of 128 and a scalar product, fanouts
// 10/10; its graph has a folder of its own, folder-links. Needs some 4 GB of disk beside the
// graph, and 16 GB of memory at scale 1. The jobs' lines are kept in build/bench/products.jsonl,
// the transcript in
// build/bench/products.txt.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Daemon, output } from '../daemon.mjs';

const { values: options } = parseArgs({
  options: {
    scale: { type: 'string', default: '1.0' },
    epochs: { type: 'string', default: '3' },
    jobs: { type: 'string', default: 'default,sampled' },
    folder: { type: 'string', default: 'build/bench/products' },
    state: { type: 'string' },
  },
});
const memoryEveryMs = 2_000;
const python = process.env.GNND_PYTHON ?? '.venv/bin/python';
const transcript = [];

function say(text) {
  transcript.push(text);
  process.stdout.write(`${text}\n`);
}

/** Runs gnnctl as a user does, echoing the command and what it prints; seconds it took. */
async function type(daemon, ...args) {
  say(`\n$ gnnctl ${args.join(' ')}`);
  const startMs = performance.now();
  const child = spawn(process.execPath, daemon.command(...args), {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const take = (data) => {
    for (const line of data.toString().split('\n')) if (line !== '') say(line);
  };
  child.stdout.on('data', take);
  child.stderr.on('data', take);
  const status = await new Promise((done) => child.on('close', done));
  if (status !== 0) throw new Error(`gnnctl ${args[0]} ${args[1]} ended with ${status}`);
  return (performance.now() - startMs) / 1000;
}

/** Proportional bytes of a process by the kernel's account; 0 once it is gone. */
function proportionalBytes(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
    return 1024 * Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0);
  } catch {
    return 0;
  }
}

function childrenOf(pid) {
  return readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) && parentOf(name) === pid;
    } catch {
      return false;
    }
  });
}

function parentOf(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}

/** Watches what the daemon and its children hold together, mapped files included. */
class MemoryWatch {
  peakBytes = 0;
  daemonPeakBytes = 0;

  constructor(pid) {
    this.timer = setInterval(() => {
      const own = proportionalBytes(pid);
      const all = childrenOf(pid).reduce((sum, child) => sum + proportionalBytes(child), own);
      this.daemonPeakBytes = Math.max(this.daemonPeakBytes, own);
      this.peakBytes = Math.max(this.peakBytes, all);
    }, memoryEveryMs);
  }

  take() {
    const { peakBytes, daemonPeakBytes } = this;
    this.peakBytes = 0;
    this.daemonPeakBytes = 0;
    return { peakBytes, daemonPeakBytes };
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

const gigabytes = (bytes) => `${(bytes / 2 ** 30).toFixed(2)} GiB`;

const evaluations = {
  default: '',
  sampled: 'evaluation: { method: SAMPLED }\n',
  'one-gib': 'evaluation: { method: EXACT, max_bytes: 1073741824 }\n',
};
const linksSpec = `dataset: products
task: LINKS
model: { type: GRAPHSAGE, hidden_dim: 128 }
sampling: { fanouts: [10, 10] }
training: { epochs: 1, batch_size: 1024 }
`;

function specOf(name, epochs) {
  if (name === 'links') return linksSpec;
  return `dataset: products
model: { type: GRAPHSAGE, hidden_dim: 256, dropout: 0.5 }
sampling: { fanouts: [15, 10, 5] }
training: { epochs: ${epochs}, batch_size: 1024, optimizer: { learning_rate: 0.003 } }
${evaluations[name]}`;
}

async function runJob(daemon, memory, name, folder) {
  const spec = join(folder, `${name}.yaml`);
  writeFileSync(spec, specOf(name, options.epochs));
  say(`\n$ cat ${name}.yaml\n${specOf(name, options.epochs).trimEnd()}`);
  memory.take();
  let stages = {};
  const watch = setInterval(async () => {
    const now = await stageSeconds(daemon).catch(() => ({}));
    if (Object.keys(now).length > 0) stages = now;
  }, memoryEveryMs);
  const seconds = await type(daemon, 'job', 'create', '-f', spec, '--id', name, '--follow');
  clearInterval(watch);
  const job = daemon.succeeded(name);
  const { peakBytes, daemonPeakBytes } = memory.take();
  const text = Object.entries(stages)
    .map(([stage, value]) => `${stage} ${value.toFixed(1)}`)
    .join(', ');
  say(`\nwhole job ${seconds.toFixed(1)} s; busy seconds by stage, all executors: ${text}`);
  say(
    `memory, the daemon and its children: at most ${gigabytes(peakBytes)}, ` +
      `of it the daemon ${gigabytes(daemonPeakBytes)}`,
  );
  return { name, seconds, stages, peakBytes, daemonPeakBytes, result: job.result };
}

async function main() {
  const jobs = options.jobs.split(',');
  const hasLinks = jobs.includes('links');
  if (hasLinks && jobs.length > 1) throw new Error('--jobs links comes alone: its graph has links');
  const graph = resolve(hasLinks ? `${options.folder}-links` : options.folder);
  const links = hasLinks ? Math.round(1e7 * Number(options.scale)) : 0;
  const state = options.state ?? mkdtempSync(join(tmpdir(), 'gnnd-bench-products-'));
  const sizes = ['--scale', options.scale, '--links', String(links)];
  output(python, ['bench/products/graph.py', graph, ...sizes]);
  say(`${cpus()[0]?.model}, ${cpus().length} processors, ${gigabytes(totalmem())} of memory`);
  const daemon = new Daemon();
  const lines = [];
  let memory = null;
  try {
    await daemon.start(state);
    memory = new MemoryWatch(daemon.child.process.pid);
    const seconds = await type(daemon, 'dataset', 'import', graph, '--id', 'products');
    const { peakBytes } = memory.take();
    say(`\nimport ${seconds.toFixed(1)} s, at most ${gigabytes(peakBytes)}`);
    lines.push({ name: 'import', seconds, peakBytes });
    for (const name of jobs) {
      lines.push(await runJob(daemon, memory, name, state));
    }
  } finally {
    memory?.end();
    await daemon.end();
    if (options.state === undefined) rmSync(state, { recursive: true, force: true });
    mkdirSync('build/bench', { recursive: true });
    const json = lines.map((line) => JSON.stringify(line)).join('\n');
    writeFileSync('build/bench/products.jsonl', `${json}\n`);
    writeFileSync('build/bench/products.txt', `${transcript.join('\n')}\n`);
  }
}

main().catch((error) => {
  process.stderr.write(`${error.stack ?? error}\n`);
  process.exit(1);
});
