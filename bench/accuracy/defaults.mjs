#!/usr/bin/env node
// Test accuracies of jobs with different defaults side by side, over graphs, models and seeds, and
// what is chosen for each graph with its reason.
//
//   node bench/accuracy/defaults.mjs [--models GRAPHSAGE,GCN,...] [--seeds 3] [--first-seed 1]
//                                    [--results FILE] [--jobs 1]
//                                    [--try 'NAME: path=value path=value'] ... FOLDER...
//
// Each folder (or .npz file) is a graph, each --try the fields of a job spec that differ from the
// defaults; 'NAME:' alone are the defaults. Unless told, the defaults stand beside those before
// decisions 0115 and 0120, with all models. All jobs run on the CPU with one device, so many --jobs
// at a time. What a run came to is added to FILE, and runs that are in it are not run again, so
// that a search goes on where it was stopped.
//
// Prints test accuracies in percent at the epoch of the best validation accuracy, means over seeds
// with sample standard deviations; for each seed the epoch at which a run first was within half a
// point of the best validation accuracy of the first --try; seconds of all epochs, evaluation
// among them (of a busy machine); and below each graph what was chosen for the first --try, and for
// which models. One JSON line per row in build/bench/defaults.jsonl.
import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { JobState } from '../../dist/api/gen/gnnd/v1/job_pb.js';
import { JobService } from '../../dist/api/gen/gnnd/v1/job_service_pb.js';
import { ModelTypeSchema } from '../../dist/api/gen/gnnd/v1/model_pb.js';
import { readSpec } from '../../dist/cli/read/spec-file.js';
import { createApiClient } from '../../dist/cli/session/client.js';
import { shortNames } from '../../dist/spec/enum-names.js';
import { Daemon } from '../daemon.mjs';
import { deviation, mean, record } from '../record.mjs';

/** A TORCHSCRIPT is the user's. */
const allModels = shortNames(ModelTypeSchema).filter((type) => type !== 'TORCHSCRIPT');
const before =
  'before: training.epochs=10 training.optimizer.learning_rate=0.003 features.standardize=OFF';

const { values: options, positionals: sources } = parseArgs({
  allowPositionals: true,
  options: {
    models: { type: 'string', default: allModels.join(',') },
    seeds: { type: 'string', default: '3' },
    'first-seed': { type: 'string', default: '1' },
    results: { type: 'string' },
    jobs: { type: 'string', default: '1' },
    try: { type: 'string', multiple: true, default: ['defaults:', before] },
  },
});
/** How far below the first variant's best a validation accuracy counts as having reached it. */
const tolerance = 0.5;
const pollMs = 200;

/** "NAME: path=value path=value" */
function variantOf(text) {
  const [name, fields = ''] = text.split(/:(.*)/s);
  return { name, sets: fields.split(/\s+/).filter((set) => set !== '') };
}

/** Walks are what PinSAGE samples by; all others have the defaults. */
function specOf(dataset, type, seed, sets) {
  const walks = type === 'PINSAGE' ? ['sampling.algorithm=RANDOM_WALK', 'model.layers=2'] : [];
  const all = [
    ...[`dataset=${dataset}`, `model.type=${type}`, `training.random_seed=${seed}`],
    ...['resources.device_kind=CPU', 'resources.devices=1', ...walks, ...sets],
  ];
  const reading = readSpec(null, all);
  if (!('ok' in reading)) throw new Error(JSON.stringify(reading.violations));
  return reading.ok.spec;
}

async function train(client, spec) {
  const { createJob, getJob } = JobService.method;
  const { name } = await client.unary(createJob, { spec, requestId: randomUUID() });
  for (;;) {
    const job = await client.unary(getJob, { name });
    if (job.state === JobState.SUCCEEDED) {
      const { effectiveSpec, result, epochs } = job;
      const { batchSize, optimizer } = effectiveSpec.training;
      return {
        test: 100 * result.testAccuracyBest,
        val: 100 * result.bestValAccuracy,
        best_epoch: result.bestEpoch,
        vals: epochs.map(({ valAccuracy }) => 100 * valAccuracy),
        seconds: epochs.reduce((sum, { durationMs }) => sum + Number(durationMs), 0) / 1000,
        batch_size: batchSize,
        learning_rate: optimizer.learningRate,
        standardize: job.standardizeChoice,
        schedule: job.scheduleChoice,
        precision: job.precisionChoice,
      };
    }
    if ([JobState.FAILED, JobState.CANCELLED].includes(job.state)) throw new Error(job.message);
    await sleep(pollMs);
  }
}

/** Runs that were kept, by what they are of. */
function keptRuns() {
  if (options.results === undefined || !existsSync(options.results)) return new Map();
  const lines = readFileSync(options.results, 'utf8').trim().split('\n');
  return new Map(lines.map((line) => JSON.parse(line)).map(({ key, run }) => [key, run]));
}

/** Epochs until a run is as good as another ended, but for the tolerance; null if never. */
function epochsTo(run, goal) {
  const at = run.vals.findIndex((val) => val >= goal.val - tolerance);
  return at === -1 ? null : at + 1;
}

/** Rows of one graph and model. */
function print(dataset, type, rows) {
  for (const { name, tests, reached, epochs, learning_rate, seconds } of rows) {
    const cells = [
      dataset.padEnd(16),
      type.padEnd(12),
      name.padEnd(16),
      `${mean(tests).toFixed(1)} ± ${deviation(tests).toFixed(1)}`.padStart(11),
      `${reached.map((at) => at ?? '-').join(' ')} of ${epochs}`.padStart(18),
      `${learning_rate}`.padStart(6),
      `${seconds.toFixed(0)} s`.padStart(7),
    ];
    process.stdout.write(`${cells.join('  ')}\n`);
  }
}

/** What was chosen on a graph, each text once, with the models that it is of. */
function printChoices(choices) {
  const types = new Map();
  for (const { type, texts } of choices) {
    for (const text of texts) types.set(text, [...(types.get(text) ?? []), type]);
  }
  for (const [text, of] of types) {
    const whose = of.length === choices.length ? 'all models' : of.join(', ');
    process.stdout.write(`  ${whose}: ${text}\n`);
  }
}

/** Does all of them, so many at a time. */
async function inParallel(tasks) {
  const left = [...tasks];
  const workers = Array.from({ length: Number(options.jobs) }, async () => {
    for (let task = left.shift(); task !== undefined; task = left.shift()) await task();
  });
  await Promise.all(workers);
}

/** Runs of one graph and model, by variant and seed: those that were kept, and new ones. */
async function runsOf({ client, kept, variants, seeds }, dataset, type) {
  const keyOf = ({ name, sets }, seed) => JSON.stringify([dataset, type, name, sets, seed]);
  const cells = variants.flatMap((variant) => seeds.map((seed) => ({ variant, seed })));
  const missing = cells.filter(({ variant, seed }) => !kept.has(keyOf(variant, seed)));
  const tasks = missing.map(({ variant, seed }) => async () => {
    const key = keyOf(variant, seed);
    const run = await train(client, specOf(dataset, type, seed, variant.sets));
    kept.set(key, run);
    const line = `${JSON.stringify({ key, run })}\n`;
    if (options.results !== undefined) appendFileSync(options.results, line);
  });
  await inParallel(tasks);
  return variants.map((variant) => seeds.map((seed) => kept.get(keyOf(variant, seed))));
}

/** Rows of one graph and model, one for each variant. */
async function rowsOf(asked, dataset, type) {
  const runs = await runsOf(asked, dataset, type);
  return asked.variants.map((variant, place) => {
    const [{ vals, learning_rate, standardize, schedule, precision }] = runs[place];
    const tests = runs[place].map(({ test }) => test);
    const reached = runs[place].map((run, index) => epochsTo(run, runs[0][index]));
    const facts = { epochs: vals.length, learning_rate, standardize, schedule, precision };
    const seconds = mean(runs[place].map((run) => run.seconds));
    return record('defaults', { dataset, type, ...variant, tests, reached, seconds, ...facts });
  });
}

async function search(daemon) {
  const client = createApiClient(daemon.address);
  const variants = options.try.map(variantOf);
  const first = Number(options['first-seed']);
  const seeds = Array.from({ length: Number(options.seeds) }, (_, index) => first + index);
  const asked = { client, kept: keptRuns(), variants, seeds };
  for (const source of sources) {
    const dataset = basename(source, '.npz');
    daemon.gnnctl('dataset', 'import', '--id', dataset, '--quiet', resolve(source));
    const choices = [];
    for (const type of options.models.split(',')) {
      const rows = await rowsOf(asked, dataset, type);
      print(dataset, type, rows);
      const [{ standardize, schedule, precision }] = rows;
      choices.push({ type, texts: [`standardize ${standardize}`, schedule, precision] });
    }
    printChoices(choices);
  }
}

const folder = mkdtempSync(join(tmpdir(), 'gnnd-bench-defaults-'));
const daemon = new Daemon();
try {
  await daemon.start(folder);
  await search(daemon);
} finally {
  await daemon.end();
  rmSync(folder, { recursive: true, force: true });
}
