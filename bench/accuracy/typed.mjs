#!/usr/bin/env node
// Accuracy of models over several types of nodes beside plain torch_geometric.
//
//   node bench/accuracy/typed.mjs [--datasets debian-typed] [--models RSAGE,RGCN,HGT] [--seeds 3]
//                                 [--without REGEX] [--epochs 10] [--set path=value ...]
//
// Two layers of 128, fanouts 10 and 10, everything else by default. The reference
// (bench/accuracy/typed_reference.py, on what bench/peers/setup.sh fetches) samples alike, as often
// over all nodes, and has trainable rows where a type has no features. Both are judged by the test
// at the epoch of the best validation, means over random seeds 1 to N. Datasets are folders of
// several types in $GNND_DATASETS; relations whose name matches --without take no part. One JSON
// line a row in build/bench/typed-accuracy.jsonl.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Daemon, output } from '../daemon.mjs';
import { datasetFolder } from '../datasets.mjs';
import { deviation, mean, record } from '../record.mjs';

const { values: options } = parseArgs({
  options: {
    datasets: { type: 'string', default: 'debian-typed' },
    models: { type: 'string', default: 'RSAGE,RGCN,HGT' },
    seeds: { type: 'string', default: '3' },
    epochs: { type: 'string', default: '10' },
    without: { type: 'string' },
    set: { type: 'string', multiple: true, default: [] },
  },
});

/** The relations of a stored dataset that take part; null: all. */
function relationsOf(folder) {
  if (options.without === undefined) return null;
  const without = new RegExp(options.without);
  return readdirSync(join(folder, 'edges')).filter((name) => !without.test(name));
}

function ours(daemon, folder, dataset, model, only) {
  return Array.from({ length: Number(options.seeds) }, (_, index) => {
    const spec = {
      dataset,
      model: { type: model, hidden_dim: 128 },
      relations: only === null ? {} : { only },
      sampling: { fanouts: [10, 10] },
      training: { random_seed: index + 1, epochs: Number(options.epochs) },
      resources: { devices: 1 },
    };
    const id = `${dataset}-${model.toLowerCase()}-${index + 1}`;
    const { result } = daemon.train(folder, id, spec, options.set);
    const found = new Map(result.testMetricsBest.map(({ name, value }) => [name, value]));
    return found.get('accuracy');
  });
}

function theirs(folder, model) {
  const text = output('.cache/peers/pyg/bin/python', [
    resolve('bench/accuracy/typed_reference.py'),
    folder,
    ...['--model', model.toLowerCase(), '--seeds', options.seeds, '--epochs', options.epochs],
    ...(options.without === undefined ? [] : ['--without', options.without]),
  ]);
  return text.split('\n').map((line) => JSON.parse(line).test);
}

async function main() {
  for (const dataset of options.datasets.split(',')) {
    const folder = mkdtempSync(join(tmpdir(), 'gnnd-bench-typed-'));
    const daemon = new Daemon();
    try {
      await daemon.start(folder, 1);
      daemon.gnnctl(
        'dataset',
        'import',
        '--id',
        dataset,
        '--quiet',
        resolve(datasetFolder(dataset)),
      );
      const stored = join(folder, 'state', 'datasets', dataset);
      for (const model of options.models.split(',')) {
        const one = ours(daemon, folder, dataset, model, relationsOf(stored));
        const other = theirs(stored, model);
        const row = record('typed-accuracy', {
          dataset,
          model,
          without: options.without ?? null,
          set: options.set,
          gnnd: mean(one),
          gnnd_sd: deviation(one),
          reference: mean(other),
          reference_sd: deviation(other),
        });
        const cells = [
          dataset.padEnd(14),
          model.padEnd(6),
          `gnnd ${row.gnnd.toFixed(4)} ± ${row.gnnd_sd.toFixed(4)}`,
          `reference ${row.reference.toFixed(4)} ± ${row.reference_sd.toFixed(4)}`,
        ];
        process.stdout.write(`${cells.join('  ')}\n`);
      }
    } finally {
      await daemon.end();
      rmSync(folder, { recursive: true, force: true });
    }
  }
}

await main().catch(({ message }) => {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
});
