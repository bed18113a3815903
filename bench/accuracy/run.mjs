#!/usr/bin/env node
// Test accuracies of models trained through the daemon beside the reference's, over random seeds.
//
//   node bench/accuracy/run.mjs [--datasets products-60k,cora,citeseer] [--seeds 3]
//                               [--models graphsage,graphsage-tuned,gcn,gat,gatv2,pinsage]
//                               [--delays 1:NONE,1:PREDICT] [--steps 2:SQRT,4:LINEAR:1]
//                               [--devices 2] [--results FILE] [--epochs N]
//                               [--set path=value ...]
//
// Sampled training on two CPU devices. What the reference fixes is as there: 2 layers of 128,
// fanouts 10 and 10, batches of 1,024, Adam 0.003, dropout 0.3, standardised features, its number
// of epochs. cora, citeseer and pubmed have 60 to 140 training nodes: batches of 20, so that a
// delay within an epoch shows at all, and their reference's settings otherwise. `models` below says
// what each model has of its own, chosen by validation accuracy. --epochs and --set (a field of the
// job spec, as in gnnctl job create) change all models, for trying things out.
//
// --delays are staleness S and its compensation. Each is measured against S = 0, which always runs:
// the difference of test accuracies after the same epochs (the rule of decision 0022: the default
// may lose half a point at most), and the time to accuracy, wall seconds until the validation
// accuracy first is within half a point of the best of S = 0 with the same random seed, as a ratio
// to that of S = 0 ("never" where a run did not get there). Accuracy does not depend on how busy
// the machine is, times do.
//
// --steps are batches a step G, what the learning rate is multiplied by for it (NONE: by 1, SQRT:
// by the root of G, LINEAR: by G, BOUNDED: by G, at most the root of 8) and epochs of warm-up. Each
// is measured in the same way against G = 1 (decision 0108). A model depends on G and not on who
// trains it: --devices 1 will do.
//
// --results keeps what each run came to in a file, and runs that are in it are not run again.
//
// A row's accuracy is the test accuracy at the epoch of the best validation accuracy, mean and
// sample standard deviation over random seeds 1 to N. The reference is GraphSAGE with the same
// samples and steps in plain PyTorch (3 seeds), where that is known. Fails when
// GraphSAGE is more than a point below it or no model reaches it; with --set and --epochs it only
// tells.
//
// Graphs are those of bench/peers/graphs.py, cora and citeseer of test/fixtures; the reference is
// known of two that have to be given.
// One JSON line per row in build/bench/accuracy.jsonl.
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { Daemon } from '../daemon.mjs';
import { datasetFolder } from '../datasets.mjs';
import { deviation, mean, record } from '../record.mjs';

const { values: options } = parseArgs({
  options: {
    datasets: { type: 'string', default: 'products-60k,cora,citeseer' },
    models: { type: 'string', default: 'graphsage,graphsage-tuned,gcn,gat,gatv2,pinsage' },
    seeds: { type: 'string', default: '3' },
    delays: { type: 'string' },
    steps: { type: 'string' },
    results: { type: 'string' },
    devices: { type: 'string', default: '2' },
    epochs: { type: 'string' },
    set: { type: 'string', multiple: true, default: [] },
  },
});
const seeds = Number(options.seeds);

/** Sampled GraphSAGE of the reference; epochs are its own, too. None is known for the others. */
const references = {
  'npm-deps-2016': { accuracy: 71.2, deviation: 0.3, epochs: 10 },
  'debian-bookworm': { accuracy: 75.8, deviation: 0.1, epochs: 8 },
  'citation-60k': { epochs: 8 },
  'products-60k': { epochs: 8 },
  pubmed: { epochs: 60, isSmall: true },
  cora: { epochs: 60, isSmall: true },
  citeseer: { epochs: 60, isSmall: true },
};
const tolerance = 1;
/** Points that a delay or batches a step may cost (decisions 0022 and 0108). */
const changeTolerance = 0.5;

/** What each model has of its own; `rounds` times the reference's epochs, once unless said. */
const models = {
  graphsage: { model: { type: 'GRAPHSAGE' } },
  'graphsage-tuned': {
    model: { type: 'GRAPHSAGE', normalization: 'LAYER', residual: true },
    rounds: 2,
  },
  gcn: { model: { type: 'GCN' } },
  gat: { model: { type: 'GAT', heads: 4 } },
  gatv2: { model: { type: 'GATV2', heads: 4 } },
  pinsage: {
    model: { type: 'PINSAGE', layers: 2 },
    sampling: {
      algorithm: 'RANDOM_WALK',
      walk: { walks: 20, length: 2, restart_prob: 0.5, neighbors: 10 },
    },
  },
  sign: {
    model: { type: 'SIGN', hidden_dim: 256 },
    sampling: undefined,
    propagation: { hops: 2 },
    rounds: 2,
  },
};

/** "2:PREDICT" as fields of the spec. */
function delayOf(text) {
  const [staleness, compensation = 'NONE'] = text.split(':');
  if (!/^[0-8]$/.test(staleness) || !['NONE', 'PREDICT'].includes(compensation))
    throw new Error(`--delays ${text}: S from 0 to 8, then :NONE or :PREDICT`);
  return { staleness: Number(staleness), staleness_compensation: compensation };
}

/** What `batches` a step multiply the learning rate by. */
const rates = {
  NONE: () => 1,
  SQRT: Math.sqrt,
  LINEAR: (batches) => batches,
  BOUNDED: (batches) => Math.min(batches, Math.sqrt(8)),
};

/** "2:SQRT:1" as fields of the spec, for a learning rate. */
function stepsOf(text, learningRate) {
  const [batches, rate = 'NONE', warmup = '0'] = text.split(':');
  if (!/^[1-9]\d?$/.test(batches) || rates[rate] === undefined || !/^\d+$/.test(warmup))
    throw new Error(`--steps ${text}: G, then :${Object.keys(rates).join(', :')}, then :WARMUP`);
  return {
    batches_per_step: Number(batches),
    optimizer: { learning_rate: learningRate * rates[rate](Number(batches)) },
    lr_schedule: { warmup_epochs: Number(warmup) },
  };
}

/** What is compared: the first is what the others are measured against. */
function variantsOf({ delays, steps }) {
  const usual = { delay: '0', steps: '1' };
  const others = [
    ...(delays ?? (steps === undefined ? '1:NONE,1:PREDICT' : ''))
      .split(',')
      .map((delay) => ({ ...usual, delay })),
    ...(steps ?? '').split(',').map((text) => ({ ...usual, steps: text })),
  ].filter(({ delay, steps: text }) => delay !== '' && text !== '');
  return [usual, ...others.filter((variant) => !isUsual(variant))];
}

const isUsual = ({ delay, steps }) => delay === '0' && steps === '1';

const nameOf = ({ delay, steps }) => (steps === '1' ? `S=${delay}` : `G=${steps}`);

function specOf(dataset, name, { delay, steps }, seed) {
  const own = { sampling: { fanouts: [10, 10] }, training: {}, rounds: 1, ...models[name] };
  const { model, sampling, propagation, training, rounds } = own;
  const { isSmall = false } = references[dataset];
  const { optimizer, ...grouping } = stepsOf(steps, isSmall ? 0.01 : 0.003);
  const small = { hidden_dim: model.heads === undefined ? 16 : 64, dropout: 0.5 };
  return {
    dataset,
    model: {
      ...(isSmall ? { ...small, input_dropout: 0.5 } : { hidden_dim: 128, dropout: 0.3 }),
      ...model,
      ...(isSmall && model.heads !== undefined ? { heads: 8 } : {}),
    },
    sampling,
    propagation,
    features: { standardize: isSmall ? 'OFF' : 'ON' },
    training: {
      epochs: Number(options.epochs ?? rounds * references[dataset].epochs),
      batch_size: isSmall ? 20 : 1024,
      ...delayOf(delay),
      random_seed: seed,
      ...grouping,
      threads_per_trainer: 1,
      optimizer: { ...optimizer, ...(isSmall ? { weight_decay: 5e-4 } : {}) },
      ...training,
    },
    resources: { devices: Number(options.devices) },
  };
}

/** Says every epoch's end; resolves with the moments of them, in ms, when the job has ended. */
async function follow(daemon, id, title) {
  const args = daemon.command('job', 'watch', id, '-o', 'jsonl', '--quiet');
  const watch = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const started = Date.now();
  const moments = [];
  for await (const line of createInterface({ input: watch.stdout })) {
    for (const { valAccuracy } of JSON.parse(line).epochs ?? []) {
      moments.push(Date.now());
      const seconds = ((Date.now() - started) / 1000).toFixed(0);
      process.stderr.write(
        `${title}: epoch ${moments.length}, val ${(100 * valAccuracy).toFixed(2)} %, ${seconds} s\n`,
      );
    }
  }
  return moments;
}

async function train(daemon, folder, dataset, name, variant, seed) {
  const id = `${dataset}-${name}-${nameOf(variant).replace(/[=:]/g, '-').toLowerCase()}-${seed}`;
  daemon.create(folder, id, specOf(dataset, name, variant, seed), options.set);
  const moments = await follow(daemon, id, `${dataset} ${name} ${nameOf(variant)} seed ${seed}`);
  const { result, epochs } = daemon.succeeded(id);
  // Set-up aside: from the first epoch's start on.
  const startMs = moments[0] - Number(epochs[0].durationMs);
  return {
    vals: epochs.map(({ valAccuracy }) => 100 * valAccuracy),
    seconds: moments.map((moment) => (moment - startMs) / 1000),
    val: 100 * result.bestValAccuracy,
    test: 100 * result.testAccuracyBest,
    epoch: result.bestEpoch,
    epoch_s:
      epochs.reduce((sum, { durationMs }) => sum + Number(durationMs), 0) / 1000 / epochs.length,
  };
}

/** Runs that were kept, by their specs. */
function keptRuns() {
  if (options.results === undefined || !existsSync(options.results)) return new Map();
  const lines = readFileSync(options.results, 'utf8').trim().split('\n');
  return new Map(lines.map((line) => JSON.parse(line)).map(({ key, run }) => [key, run]));
}

/** A run that was kept, or a new one, which is. */
async function runOf(kept, dataset, name, variant, seed, start) {
  const key = JSON.stringify([specOf(dataset, name, variant, seed), options.set]);
  const old = kept.get(key);
  if (old !== undefined) return old;
  const run = await start();
  if (options.results !== undefined) {
    appendFileSync(options.results, `${JSON.stringify({ key, run })}\n`);
  }
  return run;
}

/** Wall seconds until a run is as good as S = 0 ended, but for the tolerance; infinite if never. */
function secondsTo(run, goal) {
  const at = run.vals.findIndex((val) => val >= goal.val - changeTolerance);
  return at === -1 ? Number.POSITIVE_INFINITY : run.seconds[at];
}

/** Time to accuracy as a ratio to that of S = 0, mean over random seeds. */
function timeRatio(runs, plain) {
  const goals = plain.map((goal) => secondsTo(goal, goal));
  return mean(runs.map((run, index) => secondsTo(run, plain[index]) / goals[index]));
}

function rowOf(dataset, name, variant, runs, plain) {
  const tests = runs.map(({ test }) => test);
  const test = mean(tests);
  return record('accuracy', {
    dataset,
    model: name,
    seeds: runs.length,
    ...variant,
    spec: specOf(dataset, name, variant, 1),
    set: options.set,
    test,
    test_change: test - mean(plain.map((run) => run.test)),
    time_ratio: timeRatio(runs, plain),
    test_sd: deviation(tests),
    val: mean(runs.map(({ val }) => val)),
    runs,
    reference: references[dataset].accuracy,
  });
}

function print(rows) {
  const line = (cells) => {
    const [first, second, third, ...numbers] = cells;
    const right = numbers.map((cell) => cell.padStart(15)).join('');
    process.stdout.write(`${first.padEnd(17)}${second.padEnd(16)}${third.padEnd(14)}${right}\n`);
  };
  line(['', '', '', 'test %', 'to the first', 'time to it', 'val %', 'reference %']);
  for (const row of rows) {
    const { accuracy, deviation: spread } = references[row.dataset];
    const isPlain = isUsual(row);
    line([
      row.dataset,
      row.model,
      isPlain ? 'S=0, G=1' : nameOf(row),
      `${row.test.toFixed(2)} ± ${row.test_sd.toFixed(2)}`,
      isPlain ? '' : `${row.test_change >= 0 ? '+' : ''}${row.test_change.toFixed(2)}`,
      isPlain ? '' : Number.isFinite(row.time_ratio) ? `${row.time_ratio.toFixed(2)} x` : 'never',
      row.val.toFixed(2),
      isPlain && row.model === 'graphsage' && accuracy ? `${accuracy} ± ${spread}` : '',
    ]);
  }
}

/** What falls short of the reference, as sentences. */
function shortfalls(rows) {
  return [...new Set(rows.map(({ dataset }) => dataset))].flatMap((dataset) => {
    const { accuracy } = references[dataset];
    if (accuracy === undefined) return [];
    const mine = rows.filter((row) => row.dataset === dataset && isUsual(row));
    const sage = mine.find(({ model }) => model === 'graphsage');
    const best = Math.max(...mine.map(({ test }) => test));
    return [
      ...(sage !== undefined && sage.test < accuracy - tolerance
        ? [`${dataset}: GraphSAGE is more than ${tolerance} point below the reference`]
        : []),
      ...(best < accuracy ? [`${dataset}: no model reaches the reference`] : []),
    ];
  });
}

function checkNames(given, known, what) {
  const wrong = given.filter((name) => known[name] === undefined);
  if (wrong.length === 0) return;
  throw new Error(`no ${what} ${wrong.join(', ')}: there are ${Object.keys(known).join(', ')}`);
}

async function main() {
  const datasets = options.datasets.split(',');
  const names = options.models.split(',');
  const variants = variantsOf(options);
  for (const { delay, steps } of variants) {
    delayOf(delay);
    stepsOf(steps, 1);
  }
  checkNames(datasets, references, 'dataset');
  checkNames(names, models, 'model');
  if (!Number.isInteger(seeds) || seeds < 1)
    throw new Error(`--seeds ${options.seeds}: at least 1`);
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-bench-accuracy-'));
  const daemon = new Daemon();
  const clean = async () => {
    await daemon.end();
    rmSync(folder, { recursive: true, force: true });
  };
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.once(signal, () => clean().then(() => process.exit(1)));
  const rows = [];
  const kept = keptRuns();
  try {
    await daemon.start(folder, Number(options.devices));
    for (const dataset of datasets) {
      const source = resolve(datasetFolder(dataset));
      daemon.gnnctl('dataset', 'import', '--id', dataset, '--quiet', source);
      for (const name of names) {
        let plain;
        for (const variant of variants) {
          const runs = [];
          for (let seed = 1; seed <= seeds; seed += 1) {
            const start = () => train(daemon, folder, dataset, name, variant, seed);
            runs.push(await runOf(kept, dataset, name, variant, seed, start));
          }
          plain ??= runs;
          rows.push(rowOf(dataset, name, variant, runs, plain));
        }
      }
    }
  } finally {
    await clean();
  }
  print(rows);
  const short = shortfalls(rows);
  for (const sentence of short) process.stdout.write(`${sentence}\n`);
  const isTrial = options.set.length > 0 || options.epochs !== undefined;
  if (short.length > 0 && !isTrial) process.exitCode = 1;
}

await main().catch(({ message }) => {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
});
