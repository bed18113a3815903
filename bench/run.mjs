#!/usr/bin/env node
// One command per benchmark: `npm run bench -- sampler`. Each measures what it compares side by
// side in one run, prints a table for people and one JSON line per figure (kept in build/bench/).
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';

// `script` benchmarks start contestants of their own and keep their own lines.
const benches = {
  sampler: { what: 'every sampler against the scalar reference and the line rate measured here' },
  gather: { what: 'feature gather against plain row copies and the line rate' },
  aggregate: { what: "aggregation over sampled blocks against torch's formulations" },
  disk: { what: 'feature rows of a file that is not in memory: ways to read them' },
  presample: { what: 'pre-sampling and ordering beside an epoch of sampling' },
  queue: { what: 'hand-off bandwidth against memcpy, wake-up latency between processes' },
  prefetch: {
    what: 'a Trainer that extracts ahead and one that does not, features in memory and on disk',
  },
  'peers-sampling': {
    what: 'sampling a batch beside DGL and GraphBolt',
    script: ['.venv/bin/python', 'bench/peers/sampling.py'],
  },
  'peers-step': {
    what: 'one training step beside DGL and torch_geometric',
    script: ['.venv/bin/python', 'bench/peers/step.py'],
  },
  evaluation: {
    what: "exact evaluation of a large graph beside its floor, DGL's and torch_geometric's",
    script: ['.venv/bin/python', 'bench/peers/evaluation.py'],
  },
  sharing: {
    what: 'factored against time-shared training, and what the plan chooses',
    script: [process.execPath, 'bench/sharing/run.mjs'],
    hasPeers: false,
  },
  'gpu-paper': {
    what: 'what is planned for a first job on 1 to 8 GPUs, from times that were estimated',
    script: [process.execPath, 'bench/gpu-paper/plan.mjs'],
    hasPeers: false,
  },
  tables: {
    what: 'imports of wide tables, CSV and Parquet, beside another build',
    script: [process.execPath, 'bench/tables/run.mjs'],
    hasPeers: false,
  },
  epoch: {
    what: 'whole epochs through the daemon beside the loops of DGL and GraphBolt',
    script: [process.execPath, 'bench/epoch/run.mjs'],
  },
  propagate: {
    what: 'feature propagation beside torch.sparse, and as a share of what a copy moves',
    script: [process.execPath, 'bench/propagate/run.mjs'],
    hasPeers: false,
  },
  rows: {
    what: "accuracies of models over propagated rows beside the reference's, and by shuffling",
    script: [process.execPath, 'bench/rows/run.mjs'],
    hasPeers: false,
  },
  'rows-loading': {
    what: "loading rows beside PyTorch's loaders, by stages, and beside what the memory gives",
    script: [process.execPath, 'bench/rows/loading.mjs'],
    hasPeers: false,
  },
  'rows-disk': {
    what: "rows larger than memory, trained on from disk, beside the disk's sequential rate",
    script: [process.execPath, 'bench/rows/disk.mjs'],
    hasPeers: false,
  },
  history: {
    what: 'what keeping embeddings saves of feature rows, and costs in accuracy and time',
    script: [process.execPath, 'bench/history/run.mjs'],
    hasPeers: false,
  },
  locality: {
    what: 'what drawing held rows more often saves of feature rows, and costs in accuracy',
    script: [process.execPath, 'bench/locality/run.mjs'],
    hasPeers: false,
  },
  placement: {
    what: 'what linked devices would be worth: placements of real hotness, simulated',
    script: [process.execPath, 'bench/placement/run.mjs'],
    hasPeers: false,
  },
  'placement-jobs': {
    what: 'jobs whose Trainers read rows of each other, on simulated devices, beside plain caches',
    script: [process.execPath, 'bench/placement/jobs.mjs'],
    hasPeers: false,
  },
  products: {
    what: 'a job of the size of ogbn-products from import to test accuracy, with its transcript',
    script: [process.execPath, 'bench/products/run.mjs'],
    hasPeers: false,
  },
  import: {
    what: 'folders larger than the memory of their control group, in each format',
    script: [process.execPath, 'bench/import/run.mjs'],
    hasPeers: false,
  },
  huge: {
    what: 'a graph of the shape of ogbn-papers100M, larger than memory: what bounds it',
    script: [process.execPath, 'bench/huge/run.mjs'],
    hasPeers: false,
  },
  control: {
    what: 'one daemon with its real store: a long queue, a restart, submissions, watches',
    script: [process.execPath, 'bench/control/run.mjs'],
    hasPeers: false,
  },
  'loop-delay': {
    what: "how late the daemon's loop is beside CreateJobs from images, simulations and plans",
    script: [process.execPath, 'bench/loop-delay/run.mjs'],
    hasPeers: false,
  },
  accounts: {
    what: "the share of its time that an executor's stages and waits account for",
    script: [process.execPath, 'bench/accounts/run.mjs'],
    hasPeers: false,
  },
  damage: {
    what: "reading a job's dataset whole, to know that it is the imported one, beside the job",
    script: [process.execPath, 'bench/damage/run.mjs'],
    hasPeers: false,
  },
  recovery: {
    what: "how soon nothing is left of a killed daemon's executors, and the next one is there",
    script: [process.execPath, 'bench/recovery/run.mjs'],
    hasPeers: false,
  },
  accuracy: {
    what: "accuracies of all models through the daemon beside the reference's",
    script: [process.execPath, 'bench/accuracy/run.mjs'],
    hasPeers: false,
  },
};

const [name, ...args] = process.argv.slice(2);
const bench = benches[name];
if (bench === undefined) {
  process.stdout.write('usage: npm run bench -- NAME [ARGUMENTS]\n\n');
  for (const [each, { what }] of Object.entries(benches)) {
    process.stdout.write(`  ${each.padEnd(15)} ${what}\n`);
  }
  process.exit(name === undefined ? 0 : 2);
}

function need(path, command) {
  if (existsSync(path)) return;
  process.stderr.write(`${path} is missing: run ${command}\n`);
  process.exit(1);
}

if (bench.script !== undefined) {
  if (bench.hasPeers !== false) {
    need('build/native/step_bench', 'node deploy/setup.mjs --bench');
  }
  const [command, ...script] = bench.script;
  process.exit(spawnSync(command, [...script, ...args], { stdio: 'inherit' }).status ?? 1);
}

const binary = join('build/native', `${name}_bench`);
need(binary, 'node deploy/setup.mjs --bench');
const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], {
  encoding: 'utf8',
}).stdout.trim();
process.stdout.write(`${cpus()[0]?.model ?? 'unknown processor'}, commit ${commit}\n`);
const { status, stdout } = spawnSync(binary, args, {
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'inherit'],
  maxBuffer: 64 * 1024 * 1024,
});
process.stdout.write(stdout);
const lines = stdout.split('\n').filter((line) => line.startsWith('{'));
mkdirSync('build/bench', { recursive: true });
writeFileSync(join('build/bench', `${name}.jsonl`), `${lines.join('\n')}\n`);
process.exit(status ?? 1);
