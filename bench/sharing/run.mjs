#!/usr/bin/env node
// Factored against time-shared training on two cores, each at the cache ratio that its memory
// allows, and what the plan chooses by itself, predicts, and gets.
//
//   node bench/sharing/run.mjs [--rounds 3] [--epochs 5] [--fanouts 10,10] [--hidden 256]
//                              [--memory 90M,200M]
//
// products-300k, GraphSAGE, through the daemon, S = 0 and S = 2. The ways, in turns:
//
//   split         one device samples, the other trains (GNNLab's split; standby Trainers off)
//   switching     the same with a standby Trainer on the Sampler's device, when that pays
//   sharing       both devices sample and train in turn
//   one-device    one device of both cores alternates: it samples, then trains with two threads
//   plan          what the daemon chooses
//
// For the first three the plan's prediction stands beside the measured time, and the last line says
// how much slower than the fastest of them the plan's choice was.
//
// --memory bounds a device's (resources.device_memory_bytes): a Trainer's cache takes what its
// batches and, where it also samples, the topology leave. Figures are medians of an epoch's seconds
// without its evaluation, the first epoch of each job left out. One JSON line a way in
// build/bench/sharing.jsonl.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Daemon } from '../daemon.mjs';
import { graphFolder } from '../datasets.mjs';
import { median, record } from '../record.mjs';

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
  split: { devices: 2, placement: { policy: 'FIXED', samplers: 1, standby: 'OFF' } },
  switching: { devices: 2, placement: { policy: 'FIXED', samplers: 1 } },
  sharing: { devices: 2, placement: { policy: 'FIXED', samplers: 2 } },
  'one-device': { devices: 1, placement: {} },
  plan: { devices: 2, placement: {} },
};

function specOf(way, { memoryBytes, staleness, round }) {
  return {
    dataset: 'graph',
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
  const job = daemon.train(folder, id, specOf(way, setting));
  const plan = JSON.parse(daemon.gnnctl('job', 'plan', id, '--output', 'json'));
  // An epoch's duration is without evaluations.
  const seconds = job.epochs.slice(1).map(({ durationMs }) => Number(durationMs) / 1000);
  return { seconds, cacheRows: Number(plan.cache?.trainerRows ?? 0), plan };
}

async function main() {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-bench-sharing-'));
  const dataset = graphFolder('products-300k');
  const daemons = { 1: new Daemon(), 2: new Daemon() };
  try {
    for (const [devices, daemon] of Object.entries(daemons)) {
      mkdirSync(join(folder, devices));
      await daemon.start(join(folder, devices), Number(devices));
      daemon.gnnctl('dataset', 'import', '--id', 'graph', '--quiet', dataset);
    }
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

const predictable = { split: 'SPLIT', switching: 'SWITCHING', sharing: 'SHARING' };

/** Seconds of an epoch that a plan predicts for one of the ways; null where it does not say. */
function predictedOf(plan, way) {
  const found = plan.ways?.find((each) => each.way === `PLAN_WAY_${predictable[way]}`);
  return found === undefined ? null : Number(found.epochNs) / 1e9;
}

function report(memory, staleness, found) {
  process.stdout.write(`\n${memory} a device, S = ${staleness}, load ${loadavg()[0].toFixed(1)}\n`);
  const { plan } = found.plan.at(-1);
  const times = {};
  for (const [way, runs] of Object.entries(found)) {
    const seconds = median(runs.flatMap((each) => each.seconds));
    times[way] = seconds;
    const cacheRows = runs.at(-1).cacheRows;
    const own = Number(plan.ways[0].epochNs) / 1e9;
    const predicted = way === 'plan' ? own : predictedOf(plan, way);
    const beside = predicted === null ? '' : `, predicted ${predicted.toFixed(3)} s`;
    process.stdout.write(
      `${way.padEnd(14)}${seconds.toFixed(3)} s an epoch${beside}, ${cacheRows} rows cached\n`,
    );
    const facts = { predicted_s: predicted, cache_rows: cacheRows, chosen: plan.way };
    record('sharing', { way, memory, staleness, ...options, epoch_s: seconds, ...facts });
  }
  const ways = Object.keys(predictable);
  const fastest = ways.reduce((best, way) => (times[way] < times[best] ? way : best));
  const chosen = ways.find((way) => plan.way === `PLAN_WAY_${predictable[way]}`);
  const slower = 100 * (times[chosen] / times[fastest] - 1);
  process.stdout.write(`${plan.explanation}\n`);
  process.stdout.write(
    `chosen: ${chosen}, fastest: ${fastest}, the choice is ${slower.toFixed(0)} % slower\n`,
  );
}

await main();
