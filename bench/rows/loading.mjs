#!/usr/bin/env node
// Loading of propagated rows beside PyTorch's loaders, and by its own stages, in one run.
//
//   npm run bench -- rows-loading [--rows 400000] [--columns 128] [--hops 3] [--batch 1024]
//                                 [--threads 2] [--rounds 3] [--models sgc,sign]
//
// A linear model over one hop (SGC) or all (SIGN of one layer): hardly any arithmetic, so that
// loading bounds it. Seconds an epoch of build/native/rows_bench's ladder (assembly, prefetch,
// chunks, from disk; the last two prefetch where a core is free for it, as jobs do) and of
// bench/rows/loaders.py's (a DataLoader at its best of 0, 1 and 2 workers; one index_select a hop
// and batch), on the same files, processes in turns. The copying of assembly alone, as a share of
// what the memory gives to the same lines. Goals: 10 times as fast as the DataLoader and twice as
// fast as index_select; 90 % of the memory. Lines go to
// build/bench/rows-loading.jsonl. Needs a PyTorch (GNND_PYTHON).
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { output } from '../daemon.mjs';
import { median, record } from '../record.mjs';

const { values: options } = parseArgs({
  options: {
    rows: { type: 'string', default: '400000' },
    columns: { type: 'string', default: '128' },
    hops: { type: 'string', default: '3' },
    batch: { type: 'string', default: '1024' },
    threads: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '3' },
    models: { type: 'string', default: 'sgc,sign' },
  },
});
const { rows, columns, hops, batch, threads } = options;
const goals = { dataloader: 10, index_select: 2, assembly: 0.9 };
const bench = 'build/native/rows_bench';
const python = process.env.GNND_PYTHON ?? '.venv/bin/python';
const folder = mkdtempSync(join(tmpdir(), 'gnnd-bench-loading-'));
const say = (text) => process.stdout.write(`${text}\n`);

/** Medians of each figure over rounds of both processes, in turns. */
function measure(model) {
  const found = [];
  for (let round = 0; round < Number(options.rounds); round += 1) {
    const shape = [folder, rows, columns, hops];
    const ours = ['epoch', ...shape, '--model', model, '--batch', batch, '--threads', threads];
    const theirs = ['bench/rows/loaders.py', folder, hops, model, batch, threads, '1'];
    const runs = [
      () => JSON.parse(output(bench, [...ours, '--rounds', '2'])),
      () => JSON.parse(output(python, theirs)),
    ];
    const turns = round % 2 === 0 ? runs : [...runs].reverse();
    found.push(Object.assign({}, ...turns.map((run) => run())));
  }
  const names = Object.keys(found[0]);
  return Object.fromEntries(names.map((name) => [name, median(found.map((each) => each[name]))]));
}

function tell(model, m) {
  const loaders = [0, 1, 2].map((workers) => m[`dataloader-${workers}`]);
  const best = Math.min(...loaders);
  const ladder = [
    [`DataLoader, ${loaders.indexOf(best)} workers (best of 0, 1, 2)`, best],
    ['index_select a hop and batch', m.index_select],
    ['assembly', m.assembly],
    ['+ prefetch', m.prefetch],
    [`+ chunks of ${m.chunk}`, m.chunks],
    ['the same from disk', m.disk],
  ];
  say(`\n${model}: ${rows} rows of ${m.tokens} x ${columns} floats, batches of ${batch}`);
  say(
    `${''.padEnd(40)}${'s an epoch'.padStart(11)}${'x loader'.padStart(10)}${'x before'.padStart(10)}`,
  );
  ladder.forEach(([name, seconds], at) => {
    const before = at === 0 ? '' : (ladder[at - 1][1] / seconds).toFixed(2);
    const cells = [seconds.toFixed(3), (best / seconds).toFixed(1), before];
    say(name.padEnd(40) + cells.map((cell, i) => cell.padStart(i === 0 ? 11 : 10)).join(''));
  });
  const share = m.probe / m.copying;
  const percent = (value) => `${(100 * value).toFixed(0)} %`;
  const rate = (seconds) => `${(m.bytes / seconds / 2 ** 30).toFixed(1)} GiB/s`;
  say(
    `assembly alone, one thread: ${rate(m.copying)}, ${percent(share)} of the lines' ` +
      `${rate(m.probe)}; with the order and labels ${rate(m.gather)}, ` +
      `${percent(m.probe / m.gather)}; a memcpy row by row ${rate(m.copy)}`,
  );
  // A job of these threads does the same on this host.
  const fastest = Math.min(m.ahead === 1 ? m.prefetch : m.assembly, m.chunks);
  const met = {
    dataloader: best / fastest,
    index_select: m.index_select / fastest,
    assembly: share,
  };
  record('rows-loading', { model, options, ...m, met, goals });
  for (const [name, goal] of Object.entries(goals)) {
    if (met[name] >= goal) continue;
    say(`missed: ${name} ${met[name].toFixed(2)}, goal ${goal}`);
    process.exitCode = 1;
  }
}

try {
  output(bench, ['make', folder, rows, columns, hops]);
  for (const model of options.models.split(',')) tell(model, measure(model));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
