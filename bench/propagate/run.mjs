#!/usr/bin/env node
// Feature propagation beside torch.sparse, in turns: `npm run bench -- propagate [FOLDER]
// [--hops 3] [--rounds 3] [--threads 2] [--memory-mib 1024]`. FOLDER holds the .npy files of a
// dataset; without one it is products-300k (bench/peers/graphs.py). Both write the rows of labelled
// nodes, synced. Says seconds, their ratio, what gnnd's gathers move as a share of what a copy
// moves, and what it costs to standardise the rows. Goals: twice as fast as torch.sparse, half of a
// copy.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { loadCore } from '../../dist/native/load.js';
import { datasetFolder } from '../datasets.mjs';
import { median } from '../record.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    hops: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '3' },
    threads: { type: 'string', default: '2' },
    'memory-mib': { type: 'string', default: '1024' },
  },
});
const source = positionals[0] ?? datasetFolder('products-300k');
const [hops, rounds, threads] = [values.hops, values.rounds, values.threads].map(Number);
const memoryBytes = Number(values['memory-mib']) * 2 ** 20;

/** The shape that a .npy file's header says. */
function shapeOf(name) {
  const head = readFileSync(join(source, `${name}.npy`))
    .subarray(0, 256)
    .toString('latin1');
  return (/'shape': \(([^)]*)\)/.exec(head)?.[1] ?? '').split(',').map(Number);
}

const [numNodes, numFeatures] = shapeOf('features');
const counts = {
  ...{ numNodes, numFeatures, numEdges: shapeOf('indices')[0], numClasses: 2 ** 30 },
  task: 'CLASSIFICATION',
  ...{ train: shapeOf('train')[0], val: shapeOf('val')[0], test: shapeOf('test')[0] },
  featureDtype: 'float32',
};
const operator = { kind: 'SYMMETRIC', selfLoops: true, alpha: 0, time: 0, terms: 0 };
const planOf = (standardize) => ({
  ...{ operators: [operator], hops, rowDtype: 'FLOAT32' },
  ...{ randomSeed: 0n, permuted: true, standardize, allNodes: false },
});

const core = loadCore();
const folder = mkdtempSync(join(tmpdir(), 'gnnd-bench-propagate-'));
const ours = { plain: [], standardized: [] };

async function propagate(standardize) {
  const into = join(folder, 'rows');
  mkdirSync(into);
  const dataset = {
    ...{ folder: source, counts, featuresPath: '' },
    ...{ schema: { types: [], relations: [] }, typeRows: [] },
  };
  const options = {
    dataset,
    plan: planOf(standardize),
    folder: into,
    memoryBytes,
    threads,
    momentsFrom: '',
    device: { plugin: '', budgetBytes: 0 },
  };
  const startMs = performance.now();
  await core.propagationRun(core.propagationOpen(), options);
  const seconds = (performance.now() - startMs) / 1000;
  rmSync(into, { recursive: true });
  return seconds;
}

let torch = { seconds: [], copyBytesPerSecond: 0 };
try {
  for (let round = 0; round < rounds; round += 1) {
    // This run is not counted: after torch.sparse no feature is in the page cache.
    await propagate(false);
    for (const name of round % 2 === 0 ? ['plain', 'standardized'] : ['standardized', 'plain']) {
      ours[name].push(await propagate(name === 'standardized'));
    }
    const script = join(import.meta.dirname, 'torch_sparse.py');
    const args = [source, folder, hops, threads, 1].map(String);
    const python = process.env.GNND_PYTHON ?? '.venv/bin/python';
    const run = spawnSync(python, [script, ...args], { encoding: 'utf8' });
    if (run.status !== 0) throw new Error(run.stderr);
    const said = JSON.parse(run.stdout);
    torch = {
      seconds: [...torch.seconds, ...said.seconds],
      copyBytesPerSecond: Math.max(torch.copyBytesPerSecond, said.copyBytesPerSecond),
    };
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

// Each edge gathers a row of the state and reads its index; each node's state is written once.
const { numEdges } = counts;
const movedBytes = hops * (numEdges * (4 * numFeatures + 4) + 8 * numNodes * numFeatures);
const seconds = median(ours.plain);
const line = {
  bench: 'propagate',
  ...{ source, hops, threads, rounds, seconds, torchSeconds: median(torch.seconds) },
  standardizedSeconds: median(ours.standardized),
  timesTorch: median(torch.seconds) / seconds,
  copyBytesPerSecond: torch.copyBytesPerSecond,
  shareOfCopy: movedBytes / seconds / torch.copyBytesPerSecond,
};
const gib = (bytes) => (bytes / 2 ** 30).toFixed(1);
const share = (value) => `${(100 * value).toFixed(0)} %`;
process.stdout.write(
  `gnnd ${seconds.toFixed(2)} s, rows standardised ${line.standardizedSeconds.toFixed(2)} s, ` +
    `torch.sparse ${line.torchSeconds.toFixed(2)} s: ` +
    `${line.timesTorch.toFixed(2)} times as fast; ` +
    `${gib(movedBytes / seconds)} GiB/s, ${share(line.shareOfCopy)} of a copy's ` +
    `${gib(line.copyBytesPerSecond)} GiB/s\n${JSON.stringify(line)}\n`,
);
mkdirSync('build/bench', { recursive: true });
writeFileSync('build/bench/propagate.jsonl', `${JSON.stringify(line)}\n`);
