#!/usr/bin/env node
// Whole epochs through the daemon beside the training loops of DGL and GraphBolt, in turns.
//
//   node bench/epoch/run.mjs [--rounds 3] [--epochs 6] [--fanouts 10,10] [--batch 1024]
//                            [--hidden 256] [--staleness S]
//                            [--peers dgl,dgl-i32,graphbolt,graphbolt-i32]
//
// npm-deps-2016, GraphSAGE, dropout 0.5, Adam 0.003; every contestant has both cores. gnnd: a job
// on two CPU devices, strict determinism (its only mode), its default staleness unless given;
// peers have none. Peers: two threads in one process, and one thread beside one worker process that
// samples. Every round each trains a new model for `epochs` epochs; the first epoch of each is
// warm-up and is not counted. Accuracy is exact (full neighbourhoods) for all: if a peer's last
// validation accuracy is more than 3 points from gnnd's in the median, the run says so and fails.
//
// gnnd evaluates after every epoch and no batch of the next is trained meanwhile, so two figures
// are compared: an epoch with its evaluation, and without (less the evaluation's own time).
// One JSON line per contestant in build/bench/epoch.jsonl.
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Daemon, LineChild, output } from '../daemon.mjs';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    epochs: { type: 'string', default: '6' },
    fanouts: { type: 'string', default: '10,10' },
    batch: { type: 'string', default: '1024' },
    hidden: { type: 'string', default: '256' },
    staleness: { type: 'string' },
    peers: { type: 'string', default: 'dgl,dgl-i32,graphbolt,graphbolt-i32' },
  },
});
const epochs = Number(options.epochs);
const accuracyTolerance = 3;
const folder = mkdtempSync(join(tmpdir(), 'gnnd-bench-epoch-'));

class Gnnd {
  name = 'gnnd';
  daemon = new Daemon();

  async start(dataset) {
    await this.daemon.start(folder);
    this.daemon.gnnctl('dataset', 'import', '--id', 'npm', '--quiet', dataset);
  }

  /** Seconds of evaluation so far, all Trainers; the series go with the job. */
  async evaluationSeconds() {
    const text = await (await fetch(`http://${this.daemon.metrics}/metrics`)).text();
    const series = text.matchAll(/^gnnd_stage_seconds_total\{[^}]*stage="V"[^}]*\} (\S+)/gm);
    return [...series].reduce((sum, [, value]) => sum + Number(value), 0);
  }

  async run(round) {
    const id = `epoch-${round}`;
    const spec = {
      dataset: 'npm',
      model: { type: 'GRAPHSAGE', hidden_dim: Number(options.hidden), dropout: 0.5 },
      sampling: { fanouts: options.fanouts.split(',').map(Number) },
      training: { epochs, batch_size: Number(options.batch), random_seed: round },
      resources: { devices: 2 },
    };
    if (options.staleness !== undefined) spec.training.staleness = Number(options.staleness);
    const file = join(folder, `${id}.json`);
    const job = { api_version: 'gnnd/v1', kind: 'Job', metadata: { name: id }, spec };
    writeFileSync(file, JSON.stringify(job));
    this.daemon.gnnctl('job', 'create', '-f', file, '--quiet');
    const wait = this.daemon.command('job', 'wait', id, '--quiet');
    const waiting = spawn(process.execPath, wait, { stdio: 'ignore' });
    let ended = false;
    const end = new Promise((done) => waiting.once('exit', done)).then(() => (ended = true));
    let evaluationSeconds = 0;
    while (!ended) {
      evaluationSeconds = Math.max(evaluationSeconds, await this.evaluationSeconds());
      await Promise.race([end, new Promise((done) => setTimeout(done, 100))]);
    }
    return this.#answerOf(id, evaluationSeconds);
  }

  #answerOf(id, evaluationSeconds) {
    const job = this.daemon.succeeded(id);
    // An epoch lasts from its first claim, which is at the end of the epoch before, to its last
    // commit: from the second on it holds the evaluation of the one before.
    const seconds = job.epochs.map(({ durationMs }) => Number(durationMs) / 1000);
    const evaluation = evaluationSeconds / epochs;
    return {
      epoch_s: seconds.map((value) => value - evaluation),
      evaluation_s: seconds.map(() => evaluation),
      val: job.epochs.map(({ valAccuracy }) => valAccuracy * 100),
      test: job.epochs.map(({ testAccuracy }) => testAccuracy * 100),
    };
  }

  async end() {
    await this.daemon.end();
  }
}

class Peer {
  constructor(peer, dataset, threads, workers) {
    this.name = `${peer}, ${workers === 0 ? `${threads} threads` : `1 thread + ${workers} worker`}`;
    const script = ['-W', 'ignore', 'bench/peers/epoch.py', peer, dataset, options.fanouts];
    const sizes = [options.batch, options.hidden, String(threads), String(workers)];
    const tuned = output('python3', [
      '-c',
      'import sys,json;sys.path.insert(0,"bench/peers");import served;print(json.dumps(served.TUNED))',
    ]);
    this.child = new LineChild('.cache/peers/dgl/bin/python', [...script, ...sizes], {
      ...JSON.parse(tuned),
      OMP_NUM_THREADS: String(threads),
      MKL_NUM_THREADS: String(threads),
      DGLBACKEND: 'pytorch',
      DGLDEFAULTDIR: resolve('.cache/dgl'),
    });
  }

  async start() {
    await this.child.next();
  }

  run(round) {
    return this.child.ask(`run ${epochs} ${round}`);
  }

  end() {
    return this.child.end();
  }
}

function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function lineOf(name, answers) {
  const counted = (key) => answers.flatMap((answer) => answer[key].slice(1));
  const withEvaluation = answers.flatMap(({ epoch_s: epoch, evaluation_s: evaluation }) =>
    epoch.map((seconds, index) => seconds + evaluation[index]).slice(1),
  );
  return {
    bench: 'epoch',
    graph: 'npm-deps-2016',
    name,
    ...options,
    epochs_counted: withEvaluation.length,
    epoch_s: median(counted('epoch_s')),
    evaluation_s: median(counted('evaluation_s')),
    epoch_with_evaluation_s: median(withEvaluation),
    val_accuracy: median(answers.map(({ val }) => val.at(-1))),
    test_accuracy: median(answers.map(({ test }) => test.at(-1))),
    machine: `${cpus()[0]?.model ?? 'unknown processor'}, ${cpus().length} cores`,
    commit: output('git', ['rev-parse', '--short', 'HEAD']),
    load: Number(loadavg()[0]?.toFixed(1)),
  };
}

function report(lines) {
  const [gnnd, ...peers] = lines;
  const best = (key) => Math.min(...peers.map((line) => line[key]));
  gnnd.speed_up = best('epoch_s') / gnnd.epoch_s;
  gnnd.speed_up_with_evaluation = best('epoch_with_evaluation_s') / gnnd.epoch_with_evaluation_s;
  const print = (cells) =>
    process.stdout.write(
      `${cells[0].padEnd(36)}${cells
        .slice(1)
        .map((c) => c.padStart(12))
        .join('')}\n`,
    );
  print(['', 'epoch s', 'evaluation', 'both', 'val %', 'test %']);
  for (const line of lines) {
    const numbers = [line.epoch_s, line.evaluation_s, line.epoch_with_evaluation_s];
    const accuracies = [line.val_accuracy, line.test_accuracy].map((value) => value.toFixed(1));
    print([line.name, ...numbers.map((value) => value.toFixed(3)), ...accuracies]);
  }
  process.stdout.write(
    `gnnd against the best peer: ${gnnd.speed_up.toFixed(2)} x, with evaluation ` +
      `${gnnd.speed_up_with_evaluation.toFixed(2)} x; ${gnnd.epochs_counted} epochs each, strict ` +
      `determinism; ${gnnd.machine}, commit ${gnnd.commit}, load ${gnnd.load}\n`,
  );
  mkdirSync('build/bench', { recursive: true });
  appendFileSync(
    'build/bench/epoch.jsonl',
    lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
  );
  const apart = peers.filter(
    (line) => Math.abs(line.val_accuracy - gnnd.val_accuracy) > accuracyTolerance,
  );
  for (const line of apart) process.stdout.write(`${line.name} does not learn the same\n`);
  return apart.length === 0;
}

async function main() {
  for (const needed of ['dist/main.js', '.cache/peers/dgl/bin/python']) {
    if (existsSync(needed)) continue;
    throw new Error(`${needed} is missing: node deploy/setup.mjs --bench; bench/peers/setup.sh`);
  }
  const dataset = output('python3', ['bench/peers/graphs.py', 'npm-deps-2016']);
  const names = options.peers.split(',');
  const contestants = [
    new Gnnd(),
    ...names.map((name) => new Peer(name, dataset, 2, 0)),
    ...names.map((name) => new Peer(name, dataset, 1, 1)),
  ];
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, async () => {
      await Promise.all(contestants.map((contestant) => contestant.end()));
      rmSync(folder, { recursive: true, force: true });
      process.exit(1);
    });
  }
  const answers = new Map();
  try {
    for (const contestant of contestants) {
      await contestant.start(dataset).then(
        () => answers.set(contestant, []),
        (error) => process.stderr.write(`left out: ${contestant.name}: ${error.message}\n`),
      );
    }
    for (let round = 1; round <= Number(options.rounds); round++) {
      for (const [contestant, found] of answers) {
        try {
          found.push(await contestant.run(round));
        } catch (error) {
          process.stderr.write(`left out: ${contestant.name}: ${error.message}\n`);
          answers.delete(contestant);
        }
      }
    }
  } finally {
    await Promise.all(contestants.map((contestant) => contestant.end()));
    rmSync(folder, { recursive: true, force: true });
  }
  const lines = [...answers].map(([{ name }, found]) => lineOf(name, found));
  if (!report(lines)) process.exitCode = 1;
}

await main();
