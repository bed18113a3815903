#!/usr/bin/env node
// What locality-aware sampling saves of feature I/O and costs in accuracy, through the daemon, over
// random seeds.
//
//   node bench/locality/run.mjs [--datasets products-300k,products-60k] [--seeds 3]
//                               [--scales 1,2,4,8] [--caches 0.05,0.1] [--epochs N]
//                               [--set path=value ...]
//
// GraphSAGE as in the accuracy benchmark: 2 layers of 128, fanouts 10 and 10, batches of 1,024,
// Adam 0.003, dropout 0.3, standardised features, the reference's number of epochs. For each share
// of the rows that a Trainer caches, jobs with each scale: 1 favours nobody.
//
// ROWS are the feature rows that batches wanted, HOST those of them that were read from the host's
// memory, a ratio to those of scale 1 beside the same cache; SAMPLE is Samplers' time in batches, a
// ratio to that of scale 1. Counts do not depend on how busy the machine is, times do.
//
// Fails when a larger scale reads more from the host than scale 1, or loses more than a point of
// accuracy; with --set it only tells.
//
// Graphs are those of bench/peers/graphs.py.
// One JSON line per row in build/bench/locality.jsonl.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Daemon } from '../daemon.mjs';
import { datasetFolder } from '../datasets.mjs';
import { deviation, mean, record } from '../record.mjs';

const { values: options } = parseArgs({
  options: {
    datasets: { type: 'string', default: 'products-300k,products-60k' },
    seeds: { type: 'string', default: '3' },
    scales: { type: 'string', default: '1,2,4,8' },
    caches: { type: 'string', default: '0.05,0.1' },
    epochs: { type: 'string' },
    set: { type: 'string', multiple: true, default: [] },
  },
});
const batchSize = 1024;
const epochsOf = {
  ...{ 'products-300k': 10, 'products-60k': 8 },
  ...{ 'npm-deps-2016': 10, 'debian-bookworm': 8 },
};
const numbers = (text) => text.split(',').map(Number);

function train(daemon, folder, dataset, { ratio, scale }, seed) {
  const id = `${dataset}-${ratio}-${scale}-${seed}`.toLowerCase().replace(/\W+/g, '-');
  const spec = {
    dataset,
    model: { type: 'GRAPHSAGE', hidden_dim: 128, dropout: 0.3 },
    sampling: { fanouts: [10, 10], locality: { max_scale: scale } },
    features: { standardize: 'ON' },
    cache: { ratio },
    training: {
      epochs: Number(options.epochs ?? epochsOf[dataset]),
      batch_size: batchSize,
      random_seed: seed,
      threads_per_trainer: 1,
      optimizer: { learning_rate: 0.003 },
    },
    resources: { devices: 2 },
    placement: { policy: 'FIXED', samplers: 1, standby: 'OFF' },
  };
  const { result, epochs } = daemon.train(folder, id, spec, options.set);
  const times = epochs.flatMap(({ executorTimes }) => executorTimes ?? []);
  const sum = (key) => times.reduce((total, one) => total + Number(one[key] ?? 0), 0);
  return {
    test: 100 * result.testAccuracyBest,
    host: sum('readRows'),
    rows: sum('readRows') + sum('cachedRows'),
    sample_ns: sum('sampleNs'),
    extract: sum('extractNs') / (sum('extractNs') + sum('trainNs')),
  };
}

function rowOf(dataset, { ratio, scale }, runs, base) {
  const of = (key) => mean(runs.map((run) => run[key]));
  const at = (key) => mean(base.map((run) => run[key]));
  return record('locality', {
    ...{ dataset, ratio, scale, seeds: runs.length },
    test: of('test'),
    test_sd: deviation(runs.map(({ test }) => test)),
    test_change: of('test') - at('test'),
    rows: of('rows') / at('rows'),
    hits: 1 - of('host') / of('rows'),
    host: of('host') / at('host'),
    extract: of('extract'),
    sample: of('sample_ns') / at('sample_ns'),
    runs,
    set: options.set,
  });
}

function print(rows) {
  const line = ([first, ...cells]) =>
    process.stdout.write(`${first.padEnd(17)}${cells.map((cell) => cell.padStart(14)).join('')}\n`);
  line(['', 'cache', 'scale', 'test %', 'to 1', 'rows', 'hits', 'host', 'E', 'sample']);
  const share = (value) => `${(100 * value).toFixed(1)} %`;
  const times = (value) => `${value.toFixed(3)} x`;
  for (const row of rows) {
    line([
      row.dataset,
      share(row.ratio),
      String(row.scale),
      `${row.test.toFixed(2)} ± ${row.test_sd.toFixed(2)}`,
      `${row.test_change >= 0 ? '+' : ''}${row.test_change.toFixed(2)}`,
      ...[times(row.rows), share(row.hits), times(row.host), share(row.extract)],
      times(row.sample),
    ]);
  }
}

/** What falls short of the goals, as sentences. */
function shortfalls(rows) {
  return rows.flatMap((row) => {
    const where = `${row.dataset}, cache ${row.ratio}, scale ${row.scale}`;
    const goals = [
      [row.host <= 1, `reads ${row.host.toFixed(3)} times what scale 1 reads`],
      [row.test_change >= -1, `loses ${(-row.test_change).toFixed(2)} points, more than one`],
    ];
    return goals.filter(([isMet]) => !isMet).map(([, why]) => `${where}: ${why}`);
  });
}

const folder = mkdtempSync(join(tmpdir(), 'gnnd-locality-'));
const daemon = new Daemon();
try {
  await daemon.start(folder);
  const rows = [];
  for (const dataset of options.datasets.split(',')) {
    const source = resolve(datasetFolder(dataset));
    daemon.gnnctl('dataset', 'import', source, '--id', dataset, '--quiet');
    for (const ratio of numbers(options.caches)) {
      const scales = numbers(options.scales);
      const runs = new Map(scales.map((scale) => [scale, []]));
      for (let seed = 1; seed <= Number(options.seeds); seed += 1) {
        for (const scale of scales) {
          const run = train(daemon, folder, dataset, { ratio, scale }, seed);
          runs.get(scale).push(run);
          process.stderr.write(
            `${dataset} cache ${ratio} scale ${scale} seed ${seed}: ` +
              `test ${run.test.toFixed(2)} %, ` +
              `${run.host} rows from the host\n`,
          );
        }
      }
      const base = runs.get(scales[0]);
      for (const scale of scales) {
        rows.push(rowOf(dataset, { ratio, scale }, runs.get(scale), base));
      }
    }
  }
  print(rows);
  const short = options.set.length > 0 ? [] : shortfalls(rows);
  for (const sentence of short) process.stderr.write(`${sentence}\n`);
  process.exitCode = short.length === 0 ? 0 : 1;
} finally {
  await daemon.end();
  rmSync(folder, { recursive: true, force: true });
}
