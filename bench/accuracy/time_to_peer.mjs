#!/usr/bin/env node
// How soon a job of defaults is as good as torch_geometric's full batches ended, beside these.
//
//   node bench/accuracy/time_to_peer.mjs [--models GRAPHSAGE,GCN] [--seeds 3] [--epochs 200]
//                                        [--hidden 256] [--input-dropout 0.5] [--decay 0.0005]
//                                        [--set path=value ...] FOLDER...
//
// The peer (bench/accuracy/full_batch.py) has the same layers, width, dropout between them, and
// features standardised or not as gnnd chose; Adam 0.01, one step an epoch over whole
// neighbourhoods, --epochs of them, with whatever --input-dropout and --decay it is to be best
// with. Both are evaluated after each epoch and run on one thread, a seed of the one after a seed
// of the other. The goal of a seed is the peer's best validation accuracy less half a point; times
// are seconds from the first epoch's start until validation first reaches it, evaluation included,
// set-up aside; gnnd's set-up and end are told beside it. Needs .cache/pyg (node deploy/setup.mjs
// --tests). One JSON line a row in build/bench/time-to-peer.jsonl.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Daemon, output } from '../daemon.mjs';
import { mean, record } from '../record.mjs';

const { values: options, positionals: folders } = parseArgs({
  allowPositionals: true,
  options: {
    models: { type: 'string', default: 'GRAPHSAGE,GCN' },
    seeds: { type: 'string', default: '3' },
    epochs: { type: 'string', default: '200' },
    hidden: { type: 'string', default: '256' },
    'input-dropout': { type: 'string', default: '0' },
    decay: { type: 'string', default: '0' },
    set: { type: 'string', multiple: true, default: [] },
  },
});
/** How far below the peer's best a validation accuracy counts as having reached it. */
const tolerance = 0.5;

/** The job's epochs as the peer tells its own, and what it took beside them. */
function ours(daemon, folder, { dataset, type, seed }) {
  const spec = {
    dataset,
    model: { type },
    training: { random_seed: seed },
    resources: { devices: 1, device_kind: 'CPU' },
  };
  const id = `${dataset}-${type}-${seed}`.toLowerCase();
  const job = daemon.train(folder, id, spec, options.set);
  let sum = 0;
  const seconds = job.epochs.map(({ durationMs }) => {
    sum += Number(durationMs) / 1000;
    return sum;
  });
  const whole = (Date.parse(job.endTime) - Date.parse(job.createTime)) / 1000;
  const vals = job.epochs.map(({ valAccuracy }) => 100 * valAccuracy);
  const test = 100 * job.result.testAccuracyBest;
  const isOn = job.standardizeChoice.startsWith('ON');
  return { val: Math.max(...vals), test, vals, seconds, aside: whole - sum, isOn };
}

/** A run of the peer with a random seed. */
function theirs(source, type, seed, isOn) {
  const text = output('.venv/bin/python', [
    resolve('bench/accuracy/full_batch.py'),
    resolve(source),
    ...['--model', type, '--first-seed', String(seed), '--seeds', '1'],
    ...['epochs', 'hidden', 'input-dropout', 'decay'].flatMap((key) => [`--${key}`, options[key]]),
    ...(isOn ? ['--standardize'] : []),
  ]);
  return JSON.parse(text);
}

/** Seconds until a run is as good as the goal; null if never. */
function secondsTo(run, goal) {
  const at = run.vals.findIndex((val) => val >= goal.val - tolerance);
  return at === -1 ? null : run.seconds[at];
}

const show = (seconds) =>
  seconds.map((each) => (each === null ? 'never' : each.toFixed(1))).join(' ');

function compare(daemon, folder, source) {
  const dataset = basename(source);
  daemon.gnnctl('dataset', 'import', '--id', dataset, '--quiet', resolve(source));
  for (const type of options.models.split(',')) {
    const runs = Array.from({ length: Number(options.seeds) }, (_, index) => {
      const seed = index + 1;
      const gnnd = ours(daemon, folder, { dataset, type, seed });
      return { gnnd, peer: theirs(source, type, seed, gnnd.isOn) };
    });
    const row = record('time-to-peer', {
      ...{ dataset, type, epochs: Number(options.epochs), decay: Number(options.decay) },
      input_dropout: Number(options['input-dropout']),
      gnnd_test: mean(runs.map(({ gnnd }) => gnnd.test)),
      peer_test: mean(runs.map(({ peer }) => peer.test)),
      gnnd_s: runs.map(({ gnnd, peer }) => secondsTo(gnnd, peer)),
      peer_s: runs.map(({ peer }) => secondsTo(peer, peer)),
      gnnd_all_s: runs.map(({ gnnd }) => gnnd.seconds.at(-1)),
      peer_all_s: runs.map(({ peer }) => peer.seconds.at(-1)),
      aside_s: runs.map(({ gnnd }) => gnnd.aside),
    });
    process.stdout.write(
      `${dataset} ${type}: ` +
        `test gnnd ${row.gnnd_test.toFixed(1)}, peer ${row.peer_test.toFixed(1)}; ` +
        `seconds to the goal gnnd ${show(row.gnnd_s)}, peer ${show(row.peer_s)}; ` +
        `to the end gnnd ${show(row.gnnd_all_s)}, peer ${show(row.peer_all_s)}; ` +
        `gnnd's set-up and end ${show(row.aside_s)}\n`,
    );
  }
}

const folder = mkdtempSync(join(tmpdir(), 'gnnd-bench-time-to-peer-'));
const daemon = new Daemon();
process.env.PYTHONPATH = resolve('.cache/pyg');
try {
  await daemon.start(folder);
  for (const source of folders) compare(daemon, folder, source);
} finally {
  await daemon.end();
  rmSync(folder, { recursive: true, force: true });
}
