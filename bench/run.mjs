#!/usr/bin/env node
// One command per benchmark: `npm run bench -- sampler`. Each measures what it compares side by
// side in one run, prints a table for people and one JSON line per figure (kept in build/bench/).
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';

/** What each measures. Scripts keep their own lines. */
const benches = {
  sampler: 'every sampler against the scalar reference and the line rate measured here',
  gather: 'feature gather against plain row copies and the line rate',
  aggregate: "aggregation over sampled blocks against torch's formulations",
  disk: 'feature rows of a file that is not in memory: ways to read them',
  presample: 'pre-sampling and ordering beside an epoch of sampling',
  queue: 'hand-off bandwidth against memcpy, wake-up latency between processes',
  prefetch: 'a Trainer that extracts ahead and one that does not, features in memory and on disk',
  'peers-sampling': 'sampling a batch beside DGL and GraphBolt',
  'peers-step': 'one training step beside DGL and torch_geometric',
  evaluation: "exact evaluation of a large graph beside its floor, DGL's and torch_geometric's",
  links: 'ranking links among negatives, beside the rate of matrix products',
  sharing: 'factored against time-shared training, and what the plan chooses',
  'gpu-paper': 'what is planned for a first job on 1 to 8 GPUs, from times that were estimated',
  tables: 'imports of wide tables, CSV and Parquet, beside another build',
  epoch: 'whole epochs through the daemon beside the loops of DGL and GraphBolt',
  'epoch-links': "an epoch over links beside torch_geometric's and GraphBolt's loops",
  propagate: 'feature propagation beside torch.sparse, and as a share of what a copy moves',
  rows: "accuracies of models over propagated rows beside the reference's, and by shuffling",
  'rows-loading':
    "loading rows beside PyTorch's loaders, by stages, and beside what the memory gives",
  'rows-disk': "rows larger than memory, trained on from disk, beside the disk's sequential rate",
  history: 'what keeping embeddings saves of feature rows, and costs in accuracy and time',
  locality: 'what drawing held rows more often saves of feature rows, and costs in accuracy',
  placement: 'what linked devices would be worth: placements of real hotness, simulated',
  'placement-jobs':
    'jobs whose Trainers read rows of each other, on simulated devices, beside plain caches',
  products: 'a job of the size of ogbn-products from import to test accuracy, with its transcript',
  import: 'folders larger than the memory of their control group, in each format',
  huge: 'a graph of the shape of ogbn-papers100M, larger than memory: what bounds it',
  control: 'one daemon with its real store: a long queue, a restart, submissions, watches',
  'loop-delay':
    "how late the daemon's loop is beside CreateJobs from images, simulations and plans",
  accounts: "the share of its time that an executor's stages and waits account for",
  damage: "reading a job's dataset whole, to know that it is the imported one, beside the job",
  recovery: "how soon nothing is left of a killed daemon's executors, and the next one is there",
  'link-accuracy': 'ROC-AUC and ranks of links beside plain torch_geometric on the same split',
  accuracy: "accuracies of all models through the daemon beside the reference's",
  defaults: 'accuracies with different defaults side by side, and what is chosen with its reason',
  'time-to-peer': "seconds until defaults are as good as torch_geometric's full batches ended",
};

/** Scripts that are not bench/NAME/run.mjs; what has none is build/native/NAME_bench. */
const scripts = {
  'peers-sampling': 'bench/peers/sampling.py',
  'peers-step': 'bench/peers/step.py',
  evaluation: 'bench/peers/evaluation.py',
  'gpu-paper': 'bench/gpu-paper/plan.mjs',
  'rows-loading': 'bench/rows/loading.mjs',
  'rows-disk': 'bench/rows/disk.mjs',
  'placement-jobs': 'bench/placement/jobs.mjs',
  defaults: 'bench/accuracy/defaults.mjs',
  'time-to-peer': 'bench/accuracy/time_to_peer.mjs',
  'link-accuracy': 'bench/accuracy/links.mjs',
  'epoch-links': 'bench/epoch/links.mjs',
};
const withPeers = ['peers-sampling', 'peers-step', 'evaluation', 'epoch'];

const [name, ...args] = process.argv.slice(2);
if (benches[name] === undefined) {
  process.stdout.write('usage: npm run bench -- NAME [ARGUMENTS]\n\n');
  for (const [each, what] of Object.entries(benches)) {
    process.stdout.write(`  ${each.padEnd(15)} ${what}\n`);
  }
  process.exit(name === undefined ? 0 : 2);
}

function need(path, command) {
  if (existsSync(path)) return;
  process.stderr.write(`${path} is missing: run ${command}\n`);
  process.exit(1);
}

const folderScript = `bench/${name}/run.mjs`;
const script = scripts[name] ?? (existsSync(folderScript) ? folderScript : null);
if (script !== null) {
  if (withPeers.includes(name)) need('build/native/step_bench', 'node deploy/setup.mjs --bench');
  const command = script.endsWith('.py') ? '.venv/bin/python' : process.execPath;
  process.exit(spawnSync(command, [script, ...args], { stdio: 'inherit' }).status ?? 1);
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
