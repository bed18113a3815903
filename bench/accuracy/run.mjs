#!/usr/bin/env node
// Test accuracies of models trained through the daemon beside the reference's, over random seeds.
//
//   node bench/accuracy/run.mjs [--datasets npm-deps-2016,debian-bookworm,pubmed] [--seeds 3]
//                               [--models graphsage,graphsage-tuned,gcn,gat,gatv2,pinsage]
//                               [--delays 1:NONE,1:PREDICT] [--devices 2]
//                               [--epochs N] [--set path=value ...]
//
// Sampled training on two CPU devices. What the reference fixes is as there: 2 layers of 128,
// fanouts 10 and 10, batches of 1,024, Adam 0.003, dropout 0.3, standardised features, its number
// of epochs. pubmed has 60 training nodes: batches of 20, so that a delay within an epoch shows at
// all, and its reference's settings otherwise. `models` below says what each model has of its own,
// chosen by validation accuracy. --epochs and --set (a field of the job spec, as in gnnctl job
// create) change all models, for trying things out.
//
// --delays are staleness S and its compensation. Each is measured against S = 0, which always runs:
// the difference of test accuracies after the same epochs (the rule of decision 0022: the default
// may lose half a point at most), and the time to accuracy, wall seconds until the validation
// accuracy first is within half a point of the best of S = 0 with the same random seed, as a ratio
// to that of S = 0 ("never" where a run did not get there). Accuracy does not depend on how busy
// the machine is, times do.
//
// A row's accuracy is the test accuracy at the epoch of the best validation accuracy, mean and
// sample standard deviation over random seeds 1 to N. The reference is GraphSAGE with the same
// samples and steps in plain PyTorch (shared/data/README.md: reference.py, 3 seeds). Fails when
// GraphSAGE is more than a point below it or no model reaches it; with --set and --epochs it only
// tells.
//
// Needs the folder of the shared data sets: $GNND_SHARED, else ../shared beside the clone.
// One JSON line per row in build/bench/accuracy.jsonl.
import { spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { Daemon, output } from '../daemon.mjs';
import { datasetFolder } from '../datasets.mjs';

const { values: options } = parseArgs({
  options: {
    datasets: { type: 'string', default: 'npm-deps-2016,debian-bookworm,pubmed' },
    models: { type: 'string', default: 'graphsage,graphsage-tuned,gcn,gat,gatv2,pinsage' },
    seeds: { type: 'string', default: '3' },
    delays: { type: 'string', default: '0,1:NONE,1:PREDICT' },
    devices: { type: 'string', default: '2' },
    epochs: { type: 'string' },
    set: { type: 'string', multiple: true, default: [] },
  },
});
const seeds = Number(options.seeds);

/** Sampled GraphSAGE of the reference; epochs are its own, too. None is known for pubmed. */
const references = {
  'npm-deps-2016': { accuracy: 71.2, deviation: 0.3, epochs: 10 },
  'debian-bookworm': { accuracy: 75.8, deviation: 0.1, epochs: 8 },
  pubmed: { epochs: 60 },
};
const tolerance = 1;
/** Points that a delay may cost (decision 0022). */
const delayTolerance = 0.5;

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
};

/** "2:PREDICT" as fields of the spec. */
function delayOf(text) {
  const [staleness, compensation = 'NONE'] = text.split(':');
  if (!/^[0-8]$/.test(staleness) || !['NONE', 'PREDICT'].includes(compensation))
    throw new Error(`--delays ${text}: S from 0 to 8, then :NONE or :PREDICT`);
  return { staleness: Number(staleness), staleness_compensation: compensation };
}

function specOf(dataset, name, delay, seed) {
  const { model, sampling = { fanouts: [10, 10] }, training = {}, rounds = 1 } = models[name];
  const isSmall = dataset === 'pubmed';
  const small = { hidden_dim: model.heads === undefined ? 16 : 64, dropout: 0.5 };
  return {
    dataset,
    model: {
      ...(isSmall ? { ...small, input_dropout: 0.5 } : { hidden_dim: 128, dropout: 0.3 }),
      ...model,
      ...(isSmall && model.heads !== undefined ? { heads: 8 } : {}),
    },
    sampling,
    features: { standardize: !isSmall },
    training: {
      epochs: Number(options.epochs ?? rounds * references[dataset].epochs),
      batch_size: isSmall ? 20 : 1024,
      ...delayOf(delay),
      random_seed: seed,
      threads_per_trainer: 1,
      optimizer: isSmall ? { learning_rate: 0.01, weight_decay: 5e-4 } : { learning_rate: 0.003 },
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

async function train(daemon, folder, dataset, name, delay, seed) {
  const id = `${dataset}-${name}-${delay.replace(':', '-').toLowerCase()}-${seed}`;
  const file = join(folder, `${id}.json`);
  const spec = specOf(dataset, name, delay, seed);
  writeFileSync(
    file,
    JSON.stringify({ api_version: 'gnnd/v1', kind: 'Job', metadata: { name: id }, spec }),
  );
  const set = options.set.flatMap((assignment) => ['--set', assignment]);
  daemon.gnnctl('job', 'create', '-f', file, '--quiet', ...set);
  const moments = await follow(daemon, id, `${dataset} ${name} S=${delay} seed ${seed}`);
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

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

function deviation(values) {
  if (values.length < 2) return 0;
  const middle = mean(values);
  const squares = values.reduce((sum, value) => sum + (value - middle) ** 2, 0);
  return Math.sqrt(squares / (values.length - 1));
}

/** Wall seconds until a run is as good as S = 0 ended, but for the tolerance; infinite if never. */
function secondsTo(run, goal) {
  const at = run.vals.findIndex((val) => val >= goal.val - delayTolerance);
  return at === -1 ? Number.POSITIVE_INFINITY : run.seconds[at];
}

/** Time to accuracy as a ratio to that of S = 0, mean over random seeds. */
function timeRatio(runs, plain) {
  const goals = plain.map((goal) => secondsTo(goal, goal));
  return mean(runs.map((run, index) => secondsTo(run, plain[index]) / goals[index]));
}

function rowOf(dataset, name, delay, runs, plain) {
  const tests = runs.map(({ test }) => test);
  const test = mean(tests);
  const row = {
    bench: 'accuracy',
    dataset,
    model: name,
    seeds: runs.length,
    delay,
    spec: specOf(dataset, name, delay, 1),
    set: options.set,
    test,
    test_change: test - mean(plain.map((run) => run.test)),
    time_ratio: timeRatio(runs, plain),
    test_sd: deviation(tests),
    val: mean(runs.map(({ val }) => val)),
    runs,
    reference: references[dataset].accuracy,
    machine: `${cpus()[0]?.model ?? 'unknown processor'}, ${cpus().length} cores`,
    commit: output('git', ['rev-parse', '--short', 'HEAD']),
    load: Number(loadavg()[0]?.toFixed(1)),
  };
  mkdirSync('build/bench', { recursive: true });
  appendFileSync('build/bench/accuracy.jsonl', `${JSON.stringify(row)}\n`);
  return row;
}

function print(rows) {
  const line = (cells) => {
    const [first, second, third, ...numbers] = cells;
    const right = numbers.map((cell) => cell.padStart(15)).join('');
    process.stdout.write(`${first.padEnd(17)}${second.padEnd(16)}${third.padEnd(10)}${right}\n`);
  };
  line(['', '', 'S', 'test %', 'to S = 0', 'time to it', 'val %', 'reference %']);
  for (const row of rows) {
    const { accuracy, deviation: spread } = references[row.dataset];
    const isPlain = row.delay === '0';
    line([
      row.dataset,
      row.model,
      row.delay,
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
    const mine = rows.filter((row) => row.dataset === dataset && row.delay === '0');
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
  const delays = ['0', ...options.delays.split(',').filter((delay) => delay !== '0')];
  for (const delay of delays) delayOf(delay);
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
  try {
    await daemon.start(folder, Number(options.devices));
    for (const dataset of datasets) {
      const source = resolve(datasetFolder(dataset));
      daemon.gnnctl('dataset', 'import', '--id', dataset, '--quiet', source);
      for (const name of names) {
        let plain;
        for (const delay of delays) {
          const runs = [];
          for (let seed = 1; seed <= seeds; seed += 1) {
            runs.push(await train(daemon, folder, dataset, name, delay, seed));
          }
          plain ??= runs;
          rows.push(rowOf(dataset, name, delay, runs, plain));
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
