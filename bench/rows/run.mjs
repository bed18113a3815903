#!/usr/bin/env node
// Test accuracies of models over propagated rows through the daemon, over random seeds.
//
//   node bench/rows/run.mjs [--datasets products-300k,products-60k] [--seeds 3]
//                           [--models sgc,sign,sign-2,hoga,hoga-dac24] [--chunks] [--epochs N]
//                           [--set path=value ...]
//
// As the reference, in plain PyTorch: two hops of the
// symmetric operator, every column standardised over all nodes before and after it, 256 wide,
// dropout 0.3, batches of 1,024, Adam 0.003, 20 epochs. The reference is a perceptron of two
// layers; `sign` is the model of the paper's release, of three with batch normalisation. `models`
// says what each has of its own. Training is on one CPU device with one thread.
//
// --chunks compares shuffling in chunks of rows with shuffling each, by the model `sign`: chunks of
// an eighth of a batch and of a batch. The negative control has the same chunks of rows that were
// never permuted, of the same graph with its nodes sorted by label: chunks there have one label.
//
// A row's accuracy is the test accuracy at the epoch of the best validation accuracy, mean and
// sample standard deviation over random seeds 1 to N. Fails when SIGN ends more than half a point
// below the reference's, when chunks lose more than half a point, or the control does not lose more
// than a point; with --set and --epochs it only tells.
//
// Graphs are those of bench/peers/graphs.py; the reference is known of two that have to be given.
// One JSON line per row in build/bench/rows.jsonl.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Daemon, output } from '../daemon.mjs';
import { datasetFolder } from '../datasets.mjs';
import { deviation, mean, record } from '../record.mjs';

const { values: options } = parseArgs({
  options: {
    datasets: { type: 'string', default: 'products-300k,products-60k' },
    models: { type: 'string', default: 'sgc,sign,sign-2,hoga,hoga-dac24' },
    seeds: { type: 'string', default: '3' },
    chunks: { type: 'boolean', default: false },
    epochs: { type: 'string', default: '20' },
    set: { type: 'string', multiple: true, default: [] },
  },
});
const seeds = Number(options.seeds);
const batch = 1024;

/** Test accuracies of SIGN (2 hops) and a perceptron in plain PyTorch, where they are known. */
const references = {
  'products-300k': {},
  'products-60k': {},
  'npm-deps-2016': { sign: 67.3, perceptron: 32.8 },
  'debian-bookworm': { sign: 74.1, perceptron: 55.5 },
};
const tolerance = 0.5;
const controlLoss = 1;

const models = {
  sgc: { type: 'SGC' },
  sign: { type: 'SIGN' },
  'sign-2': { type: 'SIGN', layers: 2 },
  'sign-concat': { type: 'SIGN', variant: 'CONCAT' },
  hoga: { type: 'HOGA', heads: 1, hop_layers: 2, hop_hidden_dim: 128, residual: true },
  'hoga-dac24': { type: 'HOGA', variant: 'DAC24', heads: 4 },
};

/** What is compared with single rows, by model `sign`; the loss is against the first. */
const shuffles = {
  rows: { row_chunk: 1 },
  'chunks of 128': { row_chunk: 128 },
  'chunks of 1024': { row_chunk: batch },
  control: { row_chunk: batch, sorted: true },
};

function specOf(dataset, model, { row_chunk = 1, sorted = false }, seed) {
  const isLinear = model.type === 'SGC';
  return {
    dataset: sorted ? `${dataset}-sorted` : dataset,
    model: isLinear ? model : { hidden_dim: 256, dropout: 0.3, ...model },
    propagation: { hops: 2, ...(sorted ? { permute: false } : {}) },
    features: { standardize: 'ON' },
    training: {
      epochs: Number(options.epochs),
      batch_size: batch,
      row_chunk,
      random_seed: seed,
      threads_per_trainer: 1,
      optimizer: { learning_rate: 0.003 },
    },
    resources: { devices: 1 },
  };
}

const folder = mkdtempSync(join(tmpdir(), 'gnnd-bench-rows-'));
const daemon = new Daemon();

function importOf(id, from) {
  daemon.gnnctl('dataset', 'import', '--id', id, '--quiet', resolve(from));
}

/** The same graph, its nodes sorted by label. */
function sortedSource(dataset) {
  const into = join(folder, `${dataset}-sorted`);
  const script = join(import.meta.dirname, 'sort_by_label.py');
  output(process.env.GNND_PYTHON ?? 'python3', [script, datasetFolder(dataset), into]);
  return into;
}

function train(dataset, name, model, shuffle, seed) {
  const id = `${dataset}-${name.replaceAll(' ', '-')}-${seed}`;
  const spec = specOf(dataset, model, shuffle, seed);
  const { result, epochs } = daemon.train(folder, id, spec, options.set);
  const [val, test] = [100 * result.bestValAccuracy, 100 * result.testAccuracyBest];
  const durations = epochs.map(({ durationMs }) => Number(durationMs) / 1000);
  process.stderr.write(`${id}: val ${val.toFixed(2)} test ${test.toFixed(2)}\n`);
  return { val, test, epoch: result.bestEpoch, epochSeconds: mean(durations) };
}

function measure(dataset, name, model, shuffle) {
  const runs = Array.from({ length: seeds }, (_, at) =>
    train(dataset, name, model, shuffle, at + 1),
  );
  const tests = runs.map(({ test }) => test);
  return record('rows', {
    ...{ dataset, name, seeds, spec: specOf(dataset, model, shuffle, 1) },
    ...{ set: options.set, test: mean(tests), testDeviation: deviation(tests) },
    val: mean(runs.map(({ val }) => val)),
    epochSeconds: mean(runs.map(({ epochSeconds }) => epochSeconds)),
    runs,
  });
}

function print(title, rows, changeFrom) {
  process.stdout.write(`\n${title}\n`);
  const line = (cells) => {
    const [first, second, ...others] = cells;
    const right = others.map((cell) => cell.padStart(16)).join('');
    process.stdout.write(`${first.padEnd(17)}${second.padEnd(18)}${right}\n`);
  };
  line(['', '', 'test %', changeFrom, 'val %', 's an epoch']);
  for (const { dataset, name, test, testDeviation, val, epochSeconds, change } of rows) {
    const spread = `${test.toFixed(2)} ± ${testDeviation.toFixed(2)}`;
    const changed = `${change >= 0 ? '+' : ''}${change.toFixed(2)}`;
    line([dataset, name, spread, changed, val.toFixed(2), epochSeconds.toFixed(2)]);
  }
}

function measureModels(dataset) {
  const measured = options.models
    .split(',')
    .map((name) => measure(dataset, name, models[name], {}));
  const { sign } = references[dataset];
  const base = sign ?? measured[0].test;
  const rows = measured.map((row) => ({ ...row, change: row.test - base }));
  const beside = sign === undefined ? 'the first' : "the reference's SIGN";
  print(`Models beside ${beside}, ${base.toFixed(1)} % (one thread)`, rows, 'to that');
  if (sign === undefined) return [];
  const fallen = rows.filter(({ name, change }) => name.startsWith('sign') && change < -tolerance);
  return fallen.map(({ name }) => `${dataset}: ${name} is more than ${tolerance} below it`);
}

function measureShuffles(dataset) {
  importOf(`${dataset}-sorted`, sortedSource(dataset));
  let first;
  const rows = Object.entries(shuffles).map(([name, shuffle]) => {
    const row = measure(dataset, name, models.sign, shuffle);
    first ??= row;
    return { ...row, change: row.test - first.test };
  });
  print('SIGN by how rows are shuffled', rows, 'to single rows');
  const wrong = rows.filter(({ name, change }) =>
    name === 'control' ? change > -controlLoss : change < -tolerance,
  );
  return wrong.map(({ name, change }) => `${dataset}: ${name} ${change.toFixed(2)}`);
}

function checkNames(given, known, what) {
  const wrong = given.filter((name) => known[name] === undefined);
  if (wrong.length === 0) return;
  throw new Error(`no ${what} ${wrong.join(', ')}: there are ${Object.keys(known).join(', ')}`);
}

async function main() {
  const datasets = options.datasets.split(',');
  checkNames(datasets, references, 'dataset');
  checkNames(options.models.split(','), models, 'model');
  const clean = async () => {
    await daemon.end();
    rmSync(folder, { recursive: true, force: true });
  };
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => clean().then(() => process.exit(1)));
  }
  const wrong = [];
  try {
    await daemon.start(folder, 1);
    for (const dataset of datasets) {
      importOf(dataset, datasetFolder(dataset));
      wrong.push(...(options.chunks ? measureShuffles(dataset) : measureModels(dataset)));
    }
  } finally {
    await clean();
  }
  for (const sentence of wrong) process.stdout.write(`${sentence}\n`);
  const isTrial = options.set.length > 0 || options.epochs !== '20';
  if (wrong.length > 0 && !isTrial) process.exitCode = 1;
}

await main().catch(({ message }) => {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
});
