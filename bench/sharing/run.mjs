#!/usr/bin/env node
// Factored against time-shared training on two cores, each at the cache ratio that its memory
// allows, and what the plan chooses by itself.
//
//   node bench/sharing/run.mjs [--rounds 3] [--epochs 5] [--fanouts 10,10] [--hidden 256]
//                              [--memory 90M,200M]
//
// npm-deps-2016, GraphSAGE, through the daemon, S = 0 and S = 2. The ways, in turns:
//
//   factored      one device samples, the other trains (GNNLab's split; standby Trainers off)
//   switching     the same with a standby Trainer on the Sampler's device, always armed
//   time-shared   one device of both cores alternates: it samples, then trains with two threads
//   plan          what the daemon chooses
//
// --memory bounds a device's (resources.device_memory_bytes): a Trainer's cache takes what its
// batches and, where it also samples, the topology leave. Figures are medians of an epoch's seconds
// without its evaluation, the first epoch of each job left out. One JSON line a way in
// build/bench/sharing.jsonl.
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Daemon, output } from '../daemon.mjs';
import { median } from '../median.mjs';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    epochs: { type: 'string', default: '5' },
    fanouts: { type: 'string', default: '10,10' },
    hidden: { type: 'string', default: '256' },
    memory: { type: 'string', default: '90M,200M' },
  },
});
const epochs = Number(options.epochs);
const mebibyte = 2 ** 20;

const ways = {
  factored: { devices: 2, placement: { policy: 'FIXED', samplers: 1, standby: 'OFF' } },
  switching: { devices: 2, placement: { policy: 'FIXED', samplers: 1, standby: 'ALWAYS' } },
  'time-shared': { devices: 1, placement: {} },
  plan: { devices: 2, placement: {} },
};

function specOf(way, { memoryBytes, staleness, round }) {
  return {
    dataset: 'npm',
    model: { type: 'GRAPHSAGE', hidden_dim: Number(options.hidden), dropout: 0.5 },
    sampling: { fanouts: options.fanouts.split(',').map(Number) },
    training: { epochs, batch_size: 1024, staleness, random_seed: round },
    resources: { devices: ways[way].devices, device_memory_bytes: memoryBytes },
    placement: ways[way].placement,
  };
}

/** Runs one job; seconds of its epochs, the share of rows cached, and the plan's words. */
function run(daemon, folder, way, setting) {
  const id = `${way}-${setting.memoryBytes}-${setting.staleness}-${setting.round}`;
  const file = join(folder, `${id}.json`);
  const spec = specOf(way, setting);
  writeFileSync(
    file,
    JSON.stringify({ api_version: 'gnnd/v1', kind: 'Job', metadata: { name: id }, spec }),
  );
  daemon.gnnctl('job', 'create', '-f', file, '--quiet');
  daemon.gnnctl('job', 'wait', id, '--quiet');
  const job = daemon.succeeded(id);
  const plan = JSON.parse(daemon.gnnctl('job', 'plan', id, '--output', 'json'));
  // An epoch holds the evaluation of the one before.
  const evaluationSeconds =
    job.epochs
      .flatMap(({ executorTimes = [] }) =>
        executorTimes.map(({ evaluateNs = '0' }) => Number(evaluateNs) / 1e9),
      )
      .reduce((sum, seconds) => sum + seconds, 0) / epochs;
  const seconds = job.epochs
    .slice(1)
    .map(({ durationMs }) => Number(durationMs) / 1000 - evaluationSeconds);
  return { seconds, cacheRows: Number(plan.cache?.trainerRows ?? 0), plan };
}

async function main() {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-bench-sharing-'));
  const dataset = output('python3', ['bench/peers/graphs.py', 'npm-deps-2016']);
  const daemons = { 1: new Daemon(), 2: new Daemon() };
  try {
    for (const [devices, daemon] of Object.entries(daemons)) {
      mkdirSync(join(folder, devices));
      await daemon.start(join(folder, devices), Number(devices));
      daemon.gnnctl('dataset', 'import', '--id', 'npm', '--quiet', dataset);
    }
    mkdirSync('build/bench', { recursive: true });
    for (const memory of options.memory.split(',')) {
      for (const staleness of [0, 2]) {
        const memoryBytes = Number.parseInt(memory, 10) * mebibyte;
        const found = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
        for (let round = 1; round <= Number(options.rounds); round++) {
          for (const way of Object.keys(ways)) {
            const setting = { memoryBytes, staleness, round };
            found[way].push(run(daemons[ways[way].devices], folder, way, setting));
            process.stderr.write(`${memory}, S = ${staleness}, round ${round}: ${way}\n`);
          }
        }
        report(memory, staleness, found);
      }
    }
  } finally {
    for (const daemon of Object.values(daemons)) await daemon.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

function report(memory, staleness, found) {
  process.stdout.write(`\n${memory} a device, S = ${staleness}, load ${loadavg()[0].toFixed(1)}\n`);
  for (const [way, runs] of Object.entries(found)) {
    const seconds = median(runs.flatMap((each) => each.seconds));
    const { cacheRows, plan } = runs.at(-1);
    const roles = plan.executors.map(({ role, device }) => `${role} ${device}`).join(', ');
    const shown = `${seconds.toFixed(3)} s an epoch, ${cacheRows} rows cached`;
    process.stdout.write(`${way.padEnd(14)}${shown}\n${''.padEnd(14)}${roles}\n`);
    if (way === 'plan') process.stdout.write(`${''.padEnd(14)}${plan.explanation}\n`);
    const line = { bench: 'sharing', way, memory, staleness, ...options, epoch_s: seconds };
    const where = { machine: cpus()[0]?.model, cores: cpus().length, load: loadavg()[0] };
    const commit = output('git', ['rev-parse', '--short', 'HEAD']);
    appendFileSync(
      'build/bench/sharing.jsonl',
      `${JSON.stringify({ ...line, cache_rows: cacheRows, ...where, commit })}\n`,
    );
  }
}

await main();
