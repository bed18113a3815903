#!/usr/bin/env node
// What a job pays for knowing that its dataset is the one that was imported: reading and hashing
// all of its files (first), and looking at their times (then), beside the job's wall time.
//
//   node bench/damage/run.mjs [--nodes 400000] [--columns 128] [--epochs 5]
//
// A made graph of ten edges a node. Each daemon is a fresh one, so that its first job reads all
// files; the second job finds them unchanged. Goal: at most 2 %. One JSON line a job in
// build/bench/damage.jsonl.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Daemon } from '../daemon.mjs';
import { record } from '../record.mjs';

const { values: options } = parseArgs({
  options: {
    nodes: { type: 'string', default: '400000' },
    columns: { type: 'string', default: '128' },
    epochs: { type: 'string', default: '5' },
  },
});
const nodes = Number(options.nodes);
const columns = Number(options.columns);

function npy(descr, shape, bytes) {
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape.join(', ')},), }`;
  const header = Buffer.alloc(128, ' ');
  header.write('\x93NUMPY\x01\x00', 'latin1');
  header.writeUInt16LE(118, 8);
  header.write(text, 10);
  header.write('\n', 127);
  return Buffer.concat([header, Buffer.from(bytes.buffer)]);
}

/** Small, and the same in every run. */
function drawn() {
  let state = 1;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function writeGraph(folder) {
  mkdirSync(folder);
  const draw = drawn();
  const write = (name, descr, shape, bytes) =>
    writeFileSync(join(folder, `${name}.npy`), npy(descr, shape, bytes));
  const features = Float32Array.from({ length: nodes * columns }, () => draw(1000) / 1000);
  write('features', '<f4', [nodes, columns], features);
  const edges = 10 * nodes;
  const ends = Int32Array.from({ length: 2 * edges }, () => draw(nodes));
  write('edge_index', '<i4', [2, edges], ends);
  write(
    'labels',
    '<i4',
    [nodes],
    Int32Array.from({ length: nodes }, () => draw(16)),
  );
  const ids = (from, to) => Int32Array.from({ length: to - from }, (_, at) => from + at);
  const [train, val] = [Math.floor(0.6 * nodes), Math.floor(0.65 * nodes)];
  write('train', '<i4', [train], ids(0, train));
  write('val', '<i4', [val - train], ids(train, val));
}

/** Seconds of the job, and of its look at the dataset's files. */
function run(daemon, folder, id) {
  const spec = {
    dataset: 'made',
    model: { type: 'GRAPHSAGE', hidden_dim: 128 },
    sampling: { fanouts: [10, 10] },
    training: { epochs: Number(options.epochs), batch_size: 1000 },
    evaluation: { every_epochs: 0 },
  };
  const { uid, startTime, endTime } = daemon.train(folder, id, spec);
  const log = join(folder, 'state', 'jobs', uid, 'attempts', '1', 'log', 'load.log');
  // Nothing is read, and nobody writes it, where the files are as they were.
  const text = existsSync(log) ? readFileSync(log, 'utf8').trim() : '';
  const lines = text === '' ? [] : text.split('\n').map(JSON.parse);
  const read = lines.filter(
    ({ msg, answer }) => msg === 'executor.ended' && answer.role === 'DIGEST',
  );
  const readSeconds = read.reduce((sum, { seconds }) => sum + seconds, 0);
  return { jobSeconds: (Date.parse(endTime) - Date.parse(startTime)) / 1000, readSeconds };
}

function report(what, { jobSeconds, readSeconds }, bytes) {
  const share = readSeconds / jobSeconds;
  const speed = readSeconds === 0 ? '' : `, ${(bytes / readSeconds / 1e9).toFixed(2)} GB/s`;
  process.stdout.write(
    `${what.padEnd(8)} job ${jobSeconds.toFixed(1)} s, files read ${readSeconds.toFixed(2)} s` +
      ` = ${(100 * share).toFixed(2)} %${speed}\n`,
  );
  record('damage', { what, bytes, jobSeconds, readSeconds, share, ...options });
}

const folder = mkdtempSync(join(tmpdir(), 'gnnd-bench-damage-'));
const daemon = new Daemon();
try {
  process.stdout.write(`load ${loadavg()[0].toFixed(1)}\n`);
  writeGraph(join(folder, 'source'));
  await daemon.start(folder);
  daemon.gnnctl(
    'dataset',
    'import',
    '--format',
    'npy',
    '--id',
    'made',
    '--quiet',
    join(folder, 'source'),
  );
  const shown = JSON.parse(daemon.gnnctl('dataset', 'get', 'made', '--output', 'json'));
  report('first', run(daemon, folder, 'first'), Number(shown.bytes));
  report('then', run(daemon, folder, 'then'), Number(shown.bytes));
} finally {
  await daemon.end();
  rmSync(folder, { recursive: true, force: true });
}
