#!/usr/bin/env node
// What linked devices would be worth: placements of real hotness, beside a plain prefix, a
// partition by node id and a random spread (docs/placement.md has the table).
//
//   node bench/placement/run.mjs [--datasets products-300k,products-60k]
//                                [--ratio 0.05] [--epochs 3] [--svg FOLDER]
//
// Everything is simulated by `gnnctl placement simulate` on what real epochs read: fanouts 10 and
// 10, batches of 1024, assumed rates of 10 GB/s from the host and 50 over a link. Fails when a plan
// waits more than 1 % longer than any other way, or reads more from the host than the prefix, or
// when the spread reads over 1 % more from the host than any other way (they are planned from one
// epoch and judged by others).
//
// Graphs are those of bench/peers/graphs.py. One JSON line per row in build/bench/placement.jsonl.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Daemon } from '../daemon.mjs';
import { datasetFolder } from '../datasets.mjs';
import { record } from '../record.mjs';

const { values: options } = parseArgs({
  options: {
    datasets: { type: 'string', default: 'products-300k,products-60k' },
    ratio: { type: 'string', default: '0.05' },
    epochs: { type: 'string', default: '3' },
    svg: { type: 'string', default: '' },
  },
});
const ways = ['PLANNED', 'SPREAD', 'PREFIX', 'PARTITION', 'RANDOM'];
const tolerance = 1.01;

const short = (name) => name.replace(/^(PLACEMENT_WAY|LINK_LAYOUT)_/, '');

/** For each way: host bytes an epoch, and how long the slowest device waits for a batch's rows. */
function rowOf({ devices, links, placements }) {
  const found = Object.fromEntries(placements.map((one) => [short(one.way), one]));
  return { devices, links: short(links), found };
}

/** What should not be. */
function problemsOf(dataset, { devices, links, found }) {
  const { PLANNED, SPREAD, PREFIX } = found;
  const where = `${dataset}, ${devices} devices, ${links}`;
  const problems = [];
  const claim = (isSo, what) => isSo || problems.push(`${where}: ${what}`);
  claim(PLANNED.hostBytes <= PREFIX.hostBytes, 'the plan reads more from the host than a prefix');
  for (const way of ways) {
    const { hostBytes, extractNs } = found[way];
    claim(PLANNED.extractNs <= extractNs * tolerance, `the plan waits longer than ${way}`);
    claim(SPREAD.hostBytes <= hostBytes * tolerance, `SPREAD reads more than ${way}`);
  }
  return problems;
}

const mebibytes = ({ hostBytes }) => (hostBytes / 2 ** 20).toFixed(1);
const microseconds = ({ extractNs }) => (extractNs / 1000).toFixed(0);

function print(dataset, rows) {
  const what = 'MiB an epoch from the host / us of waiting a batch, slowest device';
  process.stdout.write(`\n${dataset}: ${what}\n`);
  process.stdout.write(`| devices, links | ${ways.join(' | ')} |\n`);
  process.stdout.write(`|---|${ways.map(() => '---|').join('')}\n`);
  for (const { devices, links, found } of rows) {
    const cells = ways.map((way) => `${mebibytes(found[way])} / ${microseconds(found[way])}`);
    process.stdout.write(`| ${devices}, ${links.toLowerCase()} | ${cells.join(' | ')} |\n`);
  }
}

async function main() {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-bench-placement-'));
  const daemon = new Daemon();
  const problems = [];
  try {
    await daemon.start(folder, 1);
    for (const dataset of options.datasets.split(',')) {
      daemon.gnnctl('dataset', 'import', '--id', dataset, '--quiet', datasetFolder(dataset));
      const { ratio, epochs, svg } = options;
      const drawn = svg === '' ? [] : ['--svg', join(svg, `${dataset}.svg`)];
      const args = [dataset, '--ratios', ratio, '--epochs', epochs, '--fanouts', '10,10', ...drawn];
      const found = JSON.parse(daemon.gnnctl('placement', 'simulate', ...args, '-o', 'json'));
      const rows = found.layouts.map(rowOf);
      print(dataset, rows);
      problems.push(...rows.flatMap((row) => problemsOf(dataset, row)));
      for (const { devices, links, found: by } of rows) {
        for (const way of ways) {
          const { hostBytes, peerBytes, extractNs } = by[way];
          const cost = { hostBytes, peerBytes, extractNs };
          record('placement', { dataset, ratio, devices, links, way, ...cost });
        }
      }
    }
  } finally {
    await daemon.end();
    rmSync(folder, { recursive: true, force: true });
  }
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}

await main();
