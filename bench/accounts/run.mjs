#!/usr/bin/env node
// What share of its time each executor accounts for: stages and waits beside wall time, extraction
// ahead off and on. What an executor is in the midst of when it is looked at is not counted yet.
//
//   node bench/accounts/run.mjs [--epochs 20] [--hidden 256]
//
// Cora, GraphSAGE, whole neighbourhoods, batches of some ten milliseconds, one Sampler and one
// Trainer. Goal: 95 to 100 %. One JSON line a role in build/bench/accounts.jsonl.
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Daemon } from '../daemon.mjs';
import { record } from '../record.mjs';

const { values: options } = parseArgs({
  options: {
    epochs: { type: 'string', default: '20' },
    hidden: { type: 'string', default: '256' },
  },
});

// Extraction counts as far as it was waited for.
const counted = ['sample', 'mark', 'copy', 'train', 'apply', 'evaluate'].map((name) => `${name}Ns`);
const waits = ['Enqueue', 'Dequeue', 'Due', 'Turn', 'Extract'].map((name) => `wait${name}Ns`);

function specOf(prefetch) {
  return {
    dataset: 'cora',
    model: { type: 'GRAPHSAGE', hidden_dim: Number(options.hidden), dropout: 0.5 },
    sampling: { fanouts: [-1, -1] },
    cache: { prefetch, ratio: 0.1 },
    training: { epochs: Number(options.epochs), batch_size: 14, threads_per_trainer: 1 },
    resources: { devices: 2 },
    placement: { policy: 'FIXED', samplers: 1, standby: 'OFF' },
  };
}

function sumOf(laps, names) {
  return laps.reduce(
    (sum, lap) => sum + names.reduce((all, name) => all + Number(lap[name] ?? 0), 0),
    0,
  );
}

async function main() {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-bench-accounts-'));
  const daemon = new Daemon();
  try {
    await daemon.start(folder);
    daemon.gnnctl('dataset', 'import', '--id', 'cora', '--quiet', 'test/fixtures/cora.npz');
    process.stdout.write(`load ${loadavg()[0].toFixed(1)}\n`);
    for (const prefetch of ['OFF', 'ON']) report(prefetch, run(daemon, folder, prefetch));
  } finally {
    await daemon.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

function run(daemon, folder, prefetch) {
  const id = `prefetch-${prefetch.toLowerCase()}`;
  // Executors are gone before the last epoch's times are taken.
  return daemon.train(folder, id, specOf(prefetch)).epochs.slice(0, -1);
}

function report(prefetch, epochs) {
  const all = epochs.flatMap(({ executorTimes = [] }) => executorTimes);
  for (const role of ['SAMPLER', 'TRAINER']) {
    const laps = all.filter((lap) => lap.role === `EXECUTOR_ROLE_${role}`);
    const wallNs = sumOf(laps, ['durationNs']);
    const share = sumOf(laps, [...counted, ...waits]) / wallNs;
    const hidden = 1 - sumOf(laps, ['waitExtractNs']) / sumOf(laps, ['extractNs']);
    const shown = role === 'TRAINER' ? `, ${(100 * hidden).toFixed(0)} % of extraction hidden` : '';
    process.stdout.write(
      `prefetch ${prefetch.padEnd(4)}${role.padEnd(8)}${(100 * share).toFixed(1)} %${shown}\n`,
    );
    record('accounts', { prefetch, role, share, ...options });
  }
}

await main();
