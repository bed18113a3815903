#!/usr/bin/env node
// What the scheduler would plan for a first job on 1, 2, 4 and 8 GPUs, from times of a batch that
// were estimated and not measured: the arithmetic of docs/gpu.md, on paper. Prints its table.
//
//   node bench/gpu-paper/plan.mjs [--steps 1]      (batches a step; by default the automatic ones)
//
// The times stand below with what they are made of, for a batch of 1,024 seeds with fanouts
// 15, 10, 5: at most 0.94 million edges and 541,000 input nodes. Put measured ones in their place
// (`gnnctl job plan JOB` shows a job's) to see what they change.
import { parseArgs } from 'node:util';
import { choose } from '../../dist/scheduler/choose.js';
import { automaticSteps } from '../../dist/spec/batches-per-step.js';

const { values: options } = parseArgs({ options: { steps: { type: 'string' } } });

const us = 1000;
/** Microseconds on an H200, and where they come from. */
const graphs = [
  {
    name: 'ogbn-products',
    batches: 193,
    // 0.94 M edges at 15 G a second (a table of numbers that the L2 cache holds), launches and the
    // record's 6 MB over a bus of 50 GB/s.
    sample: 60 + 320 + 120,
    // The record's copy; one thread of the host that tells hits from misses; 541,000 rows of 400
    // bytes, read and written at 2.7 TB/s.
    extract: 120 + 1400 + 160,
    // GraphSAGE 100 → 256 × 3 → 47: products and sums of rows, and what the host is waited for.
    train: 1750 + 250,
    // 207,000 floats: gradient out, sum, Adam, parameters in.
    apply: 500,
  },
  {
    name: 'ogbn-papers100M',
    batches: 1179,
    // 6 G edges a second: the table of numbers, 0.9 GB, is read from memory.
    sample: 160 + 320 + 120,
    extract: 120 + 1400 + 100,
    // 128 → 256 × 3 → 172.
    train: 1950 + 250,
    apply: 600,
  },
];

function specOf(devices) {
  return {
    kind: 'TRAINING',
    model: { type: 'GRAPHSAGE' },
    history: { staleSteps: 0, gradientShare: 0 },
    placement: { policy: 'AUTO', samplers: 0, standby: 'AUTO' },
    resources: { devices, deviceKind: 'CUDA', deviceNames: [] },
    training: {
      staleness: 0,
      threadsPerTrainer: 0,
      optimizer: { type: 'ADAM', learningRate: 0.003 },
    },
    queue: { capacity: 0 },
  };
}

function planOf(graph, count) {
  const spec = specOf(count);
  const batchesPerStep = Number(
    options.steps ?? automaticSteps({}, spec, graph.batches).batchesPerStep,
  );
  const extractNs = graph.extract * us;
  const trainNs = graph.train * us;
  const { followed } = choose({
    devices: Array.from({ length: count }, (_, index) => `cuda:${index}`),
    ...{ policy: 'AUTO', fixedSamplers: 0, standby: 'AUTO', standbyRoom: [] },
    timings: {
      samplerBatchNs: graph.sample * us,
      trainerBatchNs: Math.max(extractNs, trainNs),
      standbyBatchNs: extractNs + trainNs,
      parts: {
        ...{ extractNs, trainNs, standbyExtractNs: extractNs, standbyTrainNs: trainNs },
        applyNs: graph.apply * us,
        prefetch: true,
      },
    },
    steps: { batchesPerStep, staleness: 0 },
    epoch: { batches: graph.batches, slots: 16 },
  });
  return { batchesPerStep, ...followed };
}

const rows = graphs.flatMap((graph) =>
  [1, 2, 4, 8].map((count) => {
    const { way, samplers, trainers, batchesPerStep, batchNs, epochNs, limit, atOnce } = planOf(
      graph,
      count,
    );
    const who = way === 'SHARING' ? `${samplers} do both` : `${samplers} + ${trainers}, ${way}`;
    return [
      ...[graph.name, count, batchesPerStep, who, atOnce, limit],
      ...[`${(batchNs / 1e6).toFixed(2)} ms`, `${(epochNs / 1e9).toFixed(2)} s`],
    ];
  }),
);
const head = [
  'graph',
  'GPUs',
  'G',
  'sample + train',
  'train at once',
  'bound by',
  'batch',
  'epoch',
];
const lines = [head, head.map(() => '---'), ...rows];
process.stdout.write(`${lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`);
