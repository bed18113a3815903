#!/usr/bin/env node
// Whole epochs through the daemon beside the training loops of DGL, GraphBolt and
// torch_geometric, in turns.
//
//   node bench/epoch/run.mjs [--graph products-300k | products-60k | products-part]
//                            [--rounds 3] [--epochs 6] [--fanouts 10,10] [--batch 1024]
//                            [--hidden 256] [--devices 2] [--staleness S]
//                            [--peers dgl,dgl-i32,graphbolt,graphbolt-i32,pyg,pyg-adj | none]
//
// GraphSAGE, dropout 0.5, Adam 0.003; every contestant has both cores. gnnd: a job
// on two CPU devices of a core each, or on as many as told, its default staleness unless given, in
// strict determinism, which is what is compared, relaxed, to see what strictness costs, and in
// bfloat16; peers promise none of these and have no staleness. Peers: two threads in one process,
// and one thread beside one worker process that samples. Every round each trains a new model for
// `epochs` epochs, every other round in reverse order; the first epoch of each is warm-up and is
// not counted. Accuracy is exact (full neighbourhoods) for all: if another's last validation
// accuracy is more than 3 points from strict gnnd's in the median, the run says so and fails.
//
// Two figures are compared: an epoch with its evaluation, and without. gnnd trains twice for that,
// as the end of one epoch and the beginning of the next overlap otherwise. It evaluates the
// validation nodes after an epoch, peers the test nodes, too, in one pass. And the time to 99 % of
// the best peer's last validation accuracy, first epoch and evaluations included: ask for epochs
// enough. products-part (16 batches of a graph as large as ogbn-products) is not evaluated: an
// exact evaluation by peers' blocks does not fit there (`evaluation` compares those); nor do peers
// run with a worker there.
// One JSON line per contestant in build/bench/epoch.jsonl.
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Daemon, output, peerLoop, peerPython } from '../daemon.mjs';
import { graphFolder } from '../datasets.mjs';
import { median } from '../record.mjs';

const { values: options } = parseArgs({
  options: {
    graph: { type: 'string', default: 'products-300k' },
    rounds: { type: 'string', default: '3' },
    epochs: { type: 'string', default: '6' },
    fanouts: { type: 'string', default: '10,10' },
    batch: { type: 'string', default: '1024' },
    hidden: { type: 'string', default: '256' },
    devices: { type: 'string', default: '2' },
    staleness: { type: 'string' },
    peers: { type: 'string', default: 'dgl,dgl-i32,graphbolt,graphbolt-i32,pyg,pyg-adj' },
  },
});
const epochs = Number(options.epochs);
const evaluates = options.graph !== 'products-part';
const accuracyTolerance = 3;
const folder = mkdtempSync(join(tmpdir(), 'gnnd-bench-epoch-'));

/** The daemon that all of gnnd's modes share. */
class WatchedDaemon extends Daemon {
  async start(dataset) {
    if (this.child !== undefined) return;
    await super.start(folder, Number(options.devices));
    this.gnnctl('dataset', 'import', '--id', 'graph', '--quiet', dataset);
  }

  /** Once, though every mode ends it: a second signal would cut its orderly end short. */
  end() {
    this.ended ??= super.end();
    return this.ended;
  }
}

/** Jobs on the daemon that all modes share. */
class Gnnd {
  constructor(daemon, name, training) {
    this.daemon = daemon;
    this.name = `gnnd, ${name}`;
    this.training = training;
  }

  start(dataset) {
    return this.daemon.start(dataset);
  }

  /** A job that evaluates at its end only, and one that evaluates after every epoch. */
  async run(round) {
    const atEnd = { every_epochs: 0, ...(evaluates ? {} : { method: 'SAMPLED' }) };
    const plain = await this.#job(`${round}-plain`, round, atEnd);
    const evaluated = evaluates ? await this.#job(`${round}-evaluated`, round, {}) : plain;
    const epoch = lapsOf(plain.job);
    const both = lapsOf(evaluated.job);
    const { epochs: reports, result } = evaluated.job;
    return {
      epoch_s: epoch,
      evaluation_s: both.map((seconds, index) => seconds - epoch[index]),
      cpu_s: evaluated.cpu,
      val: reports.map(({ valAccuracy }) => valAccuracy * 100),
      test: [result.testAccuracyLast * 100],
    };
  }

  async #job(suffix, round, evaluation) {
    const { daemon } = this;
    const id = `${this.name.replace(/\W+/g, '-')}-${suffix}`;
    const spec = {
      dataset: 'graph',
      model: { type: 'GRAPHSAGE', hidden_dim: Number(options.hidden), dropout: 0.5 },
      sampling: { fanouts: options.fanouts.split(',').map(Number) },
      training: { epochs, batch_size: Number(options.batch), random_seed: round, ...this.training },
      evaluation,
      resources: { devices: Number(options.devices) },
    };
    if (options.staleness !== undefined) spec.training.staleness = Number(options.staleness);
    const { job, looks } = await daemon.watched(folder, id, spec);
    return { job, cpu: processorSeconds(looks) };
  }

  end() {
    return this.daemon.end();
  }
}

/** Processor seconds of an epoch; null where all passed between two looks at them. */
function processorSeconds(looks) {
  const [first, last] = [looks[0], looks.at(-1)];
  const passed = (last?.finished ?? 0) - (first?.finished ?? 0);
  const seconds = (last?.cpu ?? 0) - (first?.cpu ?? 0);
  return passed === 0 || seconds === 0 ? null : seconds / passed;
}

/** The median of what was seen; null where nothing was. */
function medianSeen(values) {
  const seen = values.filter((value) => typeof value === 'number');
  return seen.length === 0 ? null : median(seen);
}

/** Seconds from the end of one epoch to the end of the next, with the evaluation between them. */
function lapsOf(job) {
  return job.epochs.map(({ executorTimes, durationMs }) => {
    const seconds = executorTimes.map(({ durationNs }) => Number(durationNs) / 1e9);
    // Nobody has told the times of epochs that are over before the daemon looks.
    return seconds.length === 0 ? Number(durationMs) / 1000 : Math.max(...seconds);
  });
}

class Peer {
  constructor(peer, dataset, threads, workers) {
    this.name = `${peer}, ${workers === 0 ? `${threads} threads` : `1 thread + ${workers} worker`}`;
    const sizes = [options.fanouts, options.batch, options.hidden, threads, workers];
    if (!evaluates) sizes.push('--no-evaluation');
    this.child = peerLoop(peer, ['bench/peers/epoch.py', peer, dataset, ...sizes], threads);
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

function lineOf(name, answers) {
  const counted = (key) => answers.flatMap((answer) => answer[key].slice(1));
  const withEvaluation = answers.flatMap(({ epoch_s: epoch, evaluation_s: evaluation }) =>
    epoch.map((seconds, index) => seconds + evaluation[index]).slice(1),
  );
  return {
    bench: 'epoch',
    name,
    ...options,
    epochs_counted: withEvaluation.length,
    epoch_s: median(counted('epoch_s')),
    evaluation_s: median(counted('evaluation_s')),
    epoch_with_evaluation_s: median(withEvaluation),
    // Peers do not tell, and the shortest epochs are not seen.
    cpu_s: medianSeen(answers.map(({ cpu_s: cpu }) => cpu)),
    val_accuracy: median(answers.map(({ val }) => val.at(-1))),
    test_accuracy: median(answers.map(({ test }) => test.at(-1))),
    machine: `${cpus()[0]?.model ?? 'unknown processor'}, ${cpus().length} cores`,
    curves: answers.map(curveOf),
    commit: output('git', ['rev-parse', '--short', 'HEAD']),
    load: Number(loadavg()[0]?.toFixed(1)),
  };
}

/** Validation accuracy by the seconds since the first epoch began, evaluations included. */
function curveOf({ epoch_s: epoch, evaluation_s: evaluation, val }) {
  let seconds = 0;
  return epoch.map((each, index) => {
    seconds += each + evaluation[index];
    return [seconds, val[index]];
  });
}

/** Median seconds until so much is reached; null where a run does not. */
function secondsTo(accuracy, { curves }) {
  const times = curves.map((curve) => curve.find(([, val]) => val >= accuracy)?.[0]);
  return times.includes(undefined) ? null : median(times);
}

function report(lines) {
  const [gnnd, relaxed, narrow, ...peers] = lines;
  gnnd.bfloat16_speed_up = gnnd.epoch_s / narrow.epoch_s;
  gnnd.bfloat16_speed_up_with_evaluation =
    gnnd.epoch_with_evaluation_s / narrow.epoch_with_evaluation_s;
  gnnd.strict_cost = gnnd.epoch_s / relaxed.epoch_s - 1;
  gnnd.strict_cost_with_evaluation =
    gnnd.epoch_with_evaluation_s / relaxed.epoch_with_evaluation_s - 1;
  const isSeen = gnnd.cpu_s !== null && relaxed.cpu_s !== null;
  gnnd.strict_cost_cpu = isSeen ? gnnd.cpu_s / relaxed.cpu_s - 1 : null;
  const print = (cells) =>
    process.stdout.write(
      `${cells[0].padEnd(36)}${cells
        .slice(1)
        .map((c) => c.padStart(12))
        .join('')}\n`,
    );
  print(['', 'epoch s', 'evaluation', 'both', 'CPU s', 'val %', 'test %']);
  for (const line of lines) {
    const numbers = [line.epoch_s, line.evaluation_s, line.epoch_with_evaluation_s, line.cpu_s];
    const accuracies = [line.val_accuracy, line.test_accuracy].map((value) => value.toFixed(1));
    print([line.name, ...numbers.map((value) => value?.toFixed(3) ?? '-'), ...accuracies]);
  }
  const percent = (share) => (share === null ? 'unknown' : `${(100 * share).toFixed(1)} %`);
  process.stdout.write(
    `strictness costs ${percent(gnnd.strict_cost)} of a relaxed epoch, with evaluation ` +
      `${percent(gnnd.strict_cost_with_evaluation)}, in processor time ` +
      `${percent(gnnd.strict_cost_cpu)} (goal: at most 5 %); ` +
      `${gnnd.epochs_counted} epochs each; ${gnnd.machine}, commit ${gnnd.commit}, ` +
      `load ${gnnd.load}\n` +
      `bfloat16: ${gnnd.bfloat16_speed_up.toFixed(2)} x, with evaluation ` +
      `${gnnd.bfloat16_speed_up_with_evaluation.toFixed(2)} x\n`,
  );
  if (peers.length > 0) reportPeers(lines, peers);
  mkdirSync('build/bench', { recursive: true });
  appendFileSync(
    'build/bench/epoch.jsonl',
    lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
  );
  const apart = [relaxed, narrow, ...peers].filter(
    (line) => Math.abs(line.val_accuracy - gnnd.val_accuracy) > accuracyTolerance,
  );
  for (const line of apart) process.stdout.write(`${line.name} does not learn the same\n`);
  return apart.length === 0;
}

function reportPeers(lines, peers) {
  const [gnnd] = lines;
  const best = (key) => Math.min(...peers.map((line) => line[key]));
  gnnd.speed_up = best('epoch_s') / gnnd.epoch_s;
  gnnd.speed_up_with_evaluation = best('epoch_with_evaluation_s') / gnnd.epoch_with_evaluation_s;
  process.stdout.write(
    `gnnd, strict, against the best peer: ${gnnd.speed_up.toFixed(2)} x, with evaluation ` +
      `${gnnd.speed_up_with_evaluation.toFixed(2)} x\n`,
  );
  if (evaluates) reportTimesTo(lines, peers);
}

function reportTimesTo(lines, peers) {
  const target = 0.99 * Math.max(...peers.map(({ val_accuracy: accuracy }) => accuracy));
  for (const line of lines) line.to_accuracy_s = secondsTo(target, line);
  const times = lines.map(({ name, to_accuracy_s: s }) => `${name} ${s?.toFixed(1) ?? 'never'}`);
  const best = Math.min(...peers.map(({ to_accuracy_s: seconds }) => seconds ?? Infinity));
  const share = best / (lines[0].to_accuracy_s ?? Number.NaN);
  process.stdout.write(
    `seconds to ${target.toFixed(1)} %, 99 % of the best peer's last validation accuracy: ` +
      `${times.join('; ')}` +
      `${Number.isFinite(share) ? `: ${share.toFixed(2)} x` : ''}\n`,
  );
}

async function main() {
  if (!existsSync('dist/main.js')) throw new Error('dist/main.js is missing: npm run setup');
  const asked = options.peers === 'none' ? [] : options.peers.split(',');
  const names = asked.filter((name) => existsSync(peerPython(name)));
  for (const name of asked.filter((each) => !names.includes(each))) {
    process.stderr.write(`left out: ${name}: no ${peerPython(name)} (bench/peers/setup.sh)\n`);
  }
  const dataset = graphFolder(options.graph);
  const daemon = new WatchedDaemon();
  const contestants = [
    new Gnnd(daemon, 'strict', {}),
    new Gnnd(daemon, 'relaxed', { determinism: 'RELAXED' }),
    new Gnnd(daemon, 'bfloat16', { precision: 'BFLOAT16' }),
    ...names.map((name) => new Peer(name, dataset, 2, 0)),
    ...(evaluates ? names : []).map((name) => new Peer(name, dataset, 1, 1)),
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
        (error) => {
          if (contestant instanceof Gnnd) throw error;
          process.stderr.write(`left out: ${contestant.name}: ${error.message}\n`);
        },
      );
    }
    for (let round = 1; round <= Number(options.rounds); round++) {
      const turns = [...answers];
      for (const [contestant, found] of round % 2 === 1 ? turns : turns.reverse()) {
        try {
          found.push(await contestant.run(round));
        } catch (error) {
          if (contestant instanceof Gnnd) throw error;
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
