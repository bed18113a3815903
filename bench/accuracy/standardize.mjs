#!/usr/bin/env node
// Test accuracies on raw and on standardised features, beside what AUTO chooses of them.
//
//   node bench/accuracy/standardize.mjs [--models GRAPHSAGE,GCN,GATV2] [--seeds 1] [--epochs 10]
//                                       [--set path=value ...] FOLDER...
//
// Each folder is imported and trained on with the defaults of everything else, on the CPU. One JSON
// line per graph and model in build/bench/standardize.jsonl.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Daemon } from '../daemon.mjs';
import { mean, record } from '../record.mjs';

const { values: options, positionals: folders } = parseArgs({
  allowPositionals: true,
  options: {
    models: { type: 'string', default: 'GRAPHSAGE,GCN,GATV2' },
    seeds: { type: 'string', default: '1' },
    epochs: { type: 'string', default: '10' },
    set: { type: 'string', multiple: true, default: [] },
  },
});

const daemon = new Daemon();
const folder = mkdtempSync(join(tmpdir(), 'gnnd-bench-standardize-'));

/** Test accuracy in percent, at the epoch of the best validation accuracy; mean over seeds. */
function accuracyOf(dataset, type, standardize) {
  const tests = Array.from({ length: Number(options.seeds) }, (_, index) => {
    const spec = {
      dataset,
      model: { type },
      features: { standardize },
      training: { epochs: Number(options.epochs), random_seed: index + 1 },
      resources: { device_kind: 'CPU' },
    };
    const id = `${dataset}-${type}-${standardize}-${index}`.toLowerCase();
    const job = daemon.train(folder, id, spec, options.set);
    return 100 * job.result.testAccuracyBest;
  });
  return mean(tests);
}

/** What AUTO comes to, and why. */
function choiceOf(dataset) {
  const id = `${dataset}-auto`.toLowerCase();
  const spec = { dataset, training: { epochs: 1 }, resources: { device_kind: 'CPU' } };
  return daemon.train(folder, id, spec).standardizeChoice;
}

try {
  await daemon.start(folder);
  for (const source of folders) {
    const dataset = basename(source);
    daemon.gnnctl('dataset', 'import', '--id', dataset, '--quiet', resolve(source));
    const choice = choiceOf(dataset);
    for (const model of options.models.split(',')) {
      const raw = accuracyOf(dataset, model, 'OFF');
      const standardized = accuracyOf(dataset, model, 'ON');
      record('standardize', { dataset, model, raw, standardized, choice });
      const cells = [raw, standardized].map((accuracy) => accuracy.toFixed(1).padStart(6));
      process.stdout.write(
        `${dataset.padEnd(18)}${model.padEnd(11)}${cells.join('')}  ${choice}\n`,
      );
    }
  }
} finally {
  await daemon.end();
  rmSync(folder, { recursive: true, force: true });
}
