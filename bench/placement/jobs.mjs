#!/usr/bin/env node
// Jobs that place feature rows over linked simulated devices, beside the same jobs with a plain
// cache each: what their Trainers read of their own memory, of each other's and of the host's
// (docs/placement.md has the table; `placement` simulates what no job does).
//
//   node bench/placement/jobs.mjs [--datasets products-300k,products-60k]
//                                 [--trainers 2,4,8] [--links pairs,full] [--ratio 0.1]
//                                 [--epochs 2]
//
// GraphSAGE of 32, fanouts 10 and 10, batches of 1,024; one device samples, the others train; the
// host is simulated to give 10 GB/s, a link 50. EXPECTED is what the plan said of the host's share.
// Fails when a placed job reads more from the host than a plain cache, another share than its plan
// expects (by more than 3 points: a plan is judged by the epoch that it is made from), or ends with
// other parameters.
//
// Graphs are those of bench/peers/graphs.py. One JSON line per row
// in build/bench/placement-jobs.jsonl.
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
    trainers: { type: 'string', default: '2,4,8' },
    links: { type: 'string', default: 'pairs,full' },
    ratio: { type: 'string', default: '0.1' },
    epochs: { type: 'string', default: '2' },
  },
});
const epochs = Number(options.epochs);

/** Links of Trainers 1 to n, as the simulated devices are told of them. */
function peersOf(trainers, links) {
  const pairs = [];
  for (let one = 1; one <= trainers; one += 1) {
    for (let other = one + 1; other <= trainers; other += 1) {
      const isPair = one % 2 === 1 && other === one + 1;
      if (links === 'full' || isPair) pairs.push(`${one}-${other}:NVLINK`);
    }
  }
  return pairs.join(',');
}

function train(daemon, folder, dataset, trainers, placement) {
  const id = `${dataset}-${trainers}-${placement}`.toLowerCase();
  const spec = {
    dataset,
    model: { type: 'GRAPHSAGE', hidden_dim: 32 },
    sampling: { fanouts: [10, 10] },
    features: { standardize: 'ON' },
    cache: { ratio: Number(options.ratio), placement },
    evaluation: { every_epochs: epochs },
    training: { epochs, batch_size: 1024, batches_per_step: 1, random_seed: 1 },
    resources: { devices: trainers + 1, device_kind: 'SIM' },
    placement: { policy: 'FIXED', samplers: 1, standby: 'OFF' },
  };
  const job = daemon.train(folder, id, spec);
  const times = job.epochs.flatMap(({ executorTimes }) => executorTimes ?? []);
  const sum = (key) => times.reduce((total, one) => total + Number(one[key] ?? 0), 0);
  const plan = JSON.parse(daemon.gnnctl('job', 'plan', id, '-o', 'json'));
  const devices = plan.cache?.placement?.devices ?? [];
  const all = sum('readRows') + sum('peerRows') + sum('cachedRows');
  const mean = (key) =>
    devices.reduce((total, one) => total + Number(one.expected?.[key] ?? 0), 0) / devices.length;
  return {
    sha256: job.result.parametersSha256 ?? job.epochs.at(-1).parametersSha256,
    hostRows: sum('readRows') / epochs,
    host: sum('readRows') / all,
    peer: sum('peerRows') / all,
    expected: devices.length === 0 ? undefined : mean('host'),
  };
}

async function measure(dataset, trainers, links) {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-bench-placement-'));
  const daemon = new Daemon();
  const flags = ['--sim-devices', String(trainers + 1), '--sim-memory-bytes', '2000000000'];
  const env = { GNND_SIM_PEERS: peersOf(trainers, links), GNND_SIM_RATES: 'HOST:10,NVLINK:50' };
  try {
    await daemon.start(folder, 1, null, { flags, env });
    daemon.gnnctl('dataset', 'import', '--id', dataset, '--quiet', datasetFolder(dataset));
    const facts = JSON.parse(daemon.gnnctl('dataset', 'get', dataset, '-o', 'json'));
    const plain = train(daemon, folder, dataset, trainers, 'NONE');
    const placed = train(daemon, folder, dataset, trainers, 'AUTO');
    const mib = (rows) => (rows * facts.numFeatures * 4) / 2 ** 20;
    return { plain, placed, plainMib: mib(plain.hostRows), placedMib: mib(placed.hostRows) };
  } finally {
    await daemon.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const problems = [];
const columns = ['graph, Trainers, links', 'plain MiB', 'placed MiB', 'peers', 'host', 'EXPECTED'];
process.stdout.write(`| ${columns.join(' | ')} |\n${'|---'.repeat(columns.length)}|\n`);
for (const dataset of options.datasets.split(',')) {
  for (const trainers of options.trainers.split(',').map(Number)) {
    for (const links of options.links.split(',')) {
      if (trainers === 2 && links === 'pairs' && options.links.includes('full')) continue;
      const { plain, placed, plainMib, placedMib } = await measure(dataset, trainers, links);
      const where = `${dataset}, ${trainers}, ${links}`;
      const claim = (isSo, what) => isSo || problems.push(`${where}: ${what}`);
      claim(placedMib <= plainMib, 'a placed job reads more from the host than a plain cache');
      claim(placed.sha256 === plain.sha256, 'other parameters');
      claim(placed.expected !== undefined, 'no placement was planned');
      claim(Math.abs(placed.host - placed.expected) < 0.03, 'another share than was expected');
      const cells = [plainMib.toFixed(1), placedMib.toFixed(1)];
      cells.push(percent(placed.peer), percent(placed.host), percent(placed.expected ?? 1));
      process.stdout.write(`| ${where} | ${cells.join(' | ')} |\n`);
      const found = { plainMib, placedMib, plain, placed };
      record('placement-jobs', { ...options, dataset, trainers, links, ...found });
    }
  }
}
for (const problem of problems) process.stderr.write(`${problem}\n`);
process.exitCode = problems.length === 0 ? 0 : 1;
