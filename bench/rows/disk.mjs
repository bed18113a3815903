#!/usr/bin/env node
// Rows that are larger than memory: propagated and trained on from disk by a daemon in a control
// group that is smaller than they are, beside what the disk gives to sequential reads.
//
//   npm run bench -- rows-disk [--nodes 1000000] [--columns 256] [--memory 1.5] [--epochs 4]
//                              [--rows-from AUTO] [--folder build/bench/rows-disk] [--keep]
//
// One daemon on one CPU device in a control group (version 1, as root) of so many GiB, page cache
// included. A graph of wide_rows.py, two hops in float32, and SIGN of one layer on them, which a
// disk bounds. The plan must choose the disk by itself. The rate is what training rows take in all
// files over an epoch's duration (the first and the last, which is evaluated, not counted); the
// disk's is that of build/native/disk_bench over the same files, before and after, the better of
// both. Goal: 80 %. Also says the peak of each process's own memory. One line of JSON goes to
// build/bench/rows-disk.jsonl. By default it needs 8 GB of disk.
import * as fs from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Daemon, MemoryGroup, output } from '../daemon.mjs';
import { median, record } from '../record.mjs';

const { values: options } = parseArgs({
  options: {
    nodes: { type: 'string', default: '1000000' },
    columns: { type: 'string', default: '256' },
    memory: { type: 'string', default: '1.5' },
    epochs: { type: 'string', default: '4' },
    'rows-from': { type: 'string', default: 'AUTO' },
    folder: { type: 'string', default: 'build/bench/rows-disk' },
    keep: { type: 'boolean', default: false },
  },
});
const python = process.env.GNND_PYTHON ?? '.venv/bin/python';
const [nodes, columns, epochs] = [options.nodes, options.columns, options.epochs].map(Number);
const hops = 2;
const goal = 0.8;
const gib = (bytes) => `${(bytes / 2 ** 30).toFixed(2)} GiB`;
const say = (text) => process.stdout.write(`${text}\n`);

const spec = {
  dataset: 'wide',
  model: { type: 'SIGN', layers: 1 },
  propagation: { hops },
  training: { epochs, batch_size: 4096, optimizer: { learning_rate: 0.001 } },
  evaluation: { every_epochs: epochs },
  resources: { devices: 1, rows_from: options['rows-from'] },
};

/** Bytes a second of the rows' files, read from one end to the other. */
function diskRate(folder) {
  const names = fs.readdirSync(folder).filter((name) => /^(hop|op).*\.npy$/.test(name));
  const paths = names.map((name) => join(folder, name));
  const line = output('build/native/disk_bench', ['sequential', ...paths]);
  return JSON.parse(line).bytes_per_s;
}

async function measure(daemon, group, work) {
  daemon.gnnctl('dataset', 'import', '--id', 'wide', '--quiet', join(work, 'graph'));
  let startMs = performance.now();
  daemon.gnnctl('dataset', 'propagate', 'wide', '--hops', String(hops), '--quiet');
  const propagateSeconds = (performance.now() - startMs) / 1000;
  const propagations = join(work, 'state', 'cache', 'propagations');
  const [id] = fs.readdirSync(propagations);
  const rows = join(propagations, id, 'rows');
  const disk = [diskRate(rows)];
  startMs = performance.now();
  const job = daemon.train(work, 'wide', spec);
  const jobSeconds = (performance.now() - startMs) / 1000;
  disk.push(diskRate(rows));
  const { epochs: reports, effectiveSpec, result } = job;
  const plan = JSON.parse(daemon.gnnctl('job', 'plan', 'wide', '--output', 'json'));
  const seconds = reports.slice(1, -1).map(({ durationMs }) => Number(durationMs) / 1000);
  const trained = Math.floor(0.8 * nodes);
  const epochBytes = trained * columns * 4 * (hops + 1);
  const rate = epochBytes / median(seconds);
  return {
    ...{ nodes, columns, hops, memoryGib: Number(options.memory) },
    ...{ rowBytes: nodes * columns * 4 * (hops + 1), tier: plan.rows?.tier },
    ...{ chunk: effectiveSpec.training.rowChunk, propagateSeconds, jobSeconds },
    ...{ epochSeconds: median(seconds), rate, disk, share: rate / Math.max(...disk) },
    peakBytes: group.peakBytes(),
    accuracy: result?.testAccuracyBest,
  };
}

async function main() {
  fs.mkdirSync(resolve(options.folder), { recursive: true });
  const work = fs.mkdtempSync(join(resolve(options.folder), 'work-'));
  const daemon = new Daemon();
  const group = new MemoryGroup('rows-disk', Number(options.memory) * 2 ** 30);
  try {
    output(python, [
      'bench/rows/wide_rows.py',
      join(work, 'graph'),
      options.nodes,
      options.columns,
    ]);
    await daemon.start(work, 1, group);
    const line = await measure(daemon, group, work);
    say(
      `${gib(line.rowBytes)} of rows in ${options.memory} GiB of memory, read from ` +
        `${line.tier} in chunks of ${line.chunk}: propagated in ${line.propagateSeconds.toFixed(1)} s`,
    );
    const mib = (rate) => `${(rate / 2 ** 20).toFixed(0)} MiB/s`;
    say(
      `an epoch takes ${line.epochSeconds.toFixed(2)} s: ${mib(line.rate)}, ` +
        `${(100 * line.share).toFixed(0)} % of the disk's ${line.disk.map(mib).join(' and ')} ` +
        `in sequence (goal ${100 * goal} %)`,
    );
    record('rows-disk', line);
    if (line.share < goal) process.exitCode = 1;
  } finally {
    await daemon.end();
    group.release();
    if (!options.keep) fs.rmSync(work, { recursive: true, force: true });
  }
}

await main().catch((error) => {
  process.stderr.write(`${error.stack ?? error}\n`);
  process.exitCode = 1;
});
