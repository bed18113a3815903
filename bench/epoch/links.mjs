#!/usr/bin/env node
// An epoch over links through the daemon beside the loops of torch_geometric and GraphBolt.
//
//   node bench/epoch/links.mjs [--dataset npm-deps-2016] [--links 1000000] [--rounds 3]
//                              [--batches 60] [--fanouts 10,10] [--batch 1024] [--hidden 128]
//                              [--devices 2] [--peers pyg,graphbolt]
//
// GraphSAGE and a scalar product, one uniform negative a link, BCE, Adam 0.003, no dropout. gnnd: a
// job of two epochs on two CPU devices, of which the second is counted, over at most so many
// training links (the share of the split follows from that), with no evaluation but one among 10
// negatives at the end. Peers (bench/peers/links_peer.py): the same links, in turns, `batches`
// batches a round with two threads in one process and with a thread beside a worker; what an epoch
// takes follows from the mean of a batch. Processor time, of all of a contestant's processes, is
// what to look at where others use the machine: turns of this length meet different ones. gnnd
// keeps a batch's own links out of its messages, and so does GraphBolt; torch_geometric leaves them
// in. One JSON line a contestant in build/bench/epoch-links.jsonl.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Daemon, peerLoop } from '../daemon.mjs';
import { datasetFolder } from '../datasets.mjs';
import { mean, median, record } from '../record.mjs';

const { values: options } = parseArgs({
  options: {
    dataset: { type: 'string', default: 'npm-deps-2016' },
    links: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '3' },
    batches: { type: 'string', default: '60' },
    fanouts: { type: 'string', default: '10,10' },
    batch: { type: 'string', default: '1024' },
    hidden: { type: 'string', default: '128' },
    devices: { type: 'string', default: '2' },
    peers: { type: 'string', default: 'pyg,graphbolt' },
  },
});
const batchSize = Number(options.batch);

function specOf(seed, testShare) {
  return {
    dataset: 'graph',
    task: 'LINKS',
    links: {
      split: { validation: 0.001, test: testShare, random_seed: 7 },
      evaluation: { count: 10 },
    },
    model: { type: 'GRAPHSAGE', hidden_dim: Number(options.hidden), dropout: 0 },
    sampling: { fanouts: options.fanouts.split(',').map(Number) },
    features: { standardize: 'OFF' },
    evaluation: { every_epochs: 0 },
    training: {
      ...{ epochs: 2, random_seed: seed, batch_size: batchSize },
      optimizer: { learning_rate: 0.003 },
    },
    resources: { devices: Number(options.devices) },
  };
}

/** Seconds of a job's second epoch. */
function epochSeconds({ epochs }) {
  const { executorTimes, durationMs } = epochs[1];
  const seconds = executorTimes.map(({ durationNs }) => Number(durationNs) / 1e9);
  return seconds.length === 0 ? Number(durationMs) / 1000 : Math.max(...seconds);
}

/** Seconds of processor time between the ends of a job's first epoch and of its second. */
function epochProcessor(looks) {
  const [first, second] = [1, 2].map((epoch) => looks.find(({ finished }) => finished === epoch));
  return second === undefined ? null : second.cpu - first.cpu;
}

class Peer {
  constructor(peer, dataset, links, workers) {
    const threads = workers === 0 ? 2 : 1;
    this.name = `${peer}, ${workers === 0 ? '2 threads' : '1 thread + 1 worker'}`;
    const sizes = [options.fanouts, options.batch, options.hidden, threads, workers];
    const script = ['bench/peers/links_peer.py', peer, dataset, links, ...sizes];
    this.child = peerLoop(peer, script, threads);
    this.run = [];
    this.load = [];
    this.processor = [];
  }

  async round() {
    for (const what of ['load', 'run']) {
      const { seconds, processor_s: processor } = await this.child.ask(
        `${what} ${options.batches}`,
      );
      this[what].push(mean(seconds));
      if (what === 'run') this.processor.push(processor / seconds.length);
    }
  }
}

async function main() {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-bench-epoch-links-'));
  const daemon = new Daemon();
  const peers = [];
  try {
    await daemon.start(folder, Number(options.devices));
    daemon.gnnctl('dataset', 'import', '--id', 'graph', '--quiet', datasetFolder(options.dataset));
    const dataset = join(folder, 'state', 'datasets', 'graph');
    const told = (file) => JSON.parse(readFileSync(join(dataset, file), 'utf8'));
    const { num_edges: edges } = told('dataset.json');
    const { undirected } = told('import.json');
    const pairs = undirected ? edges / 2 : edges;
    const testShare = Math.min(0.998, Math.max(0.001, 0.999 - Number(options.links) / pairs));
    // Makes the graph of messages, which all later jobs share, by as little training as there is.
    daemon.train(folder, 'warm', {
      ...specOf(1, testShare),
      model: { type: 'GRAPHSAGE', hidden_dim: 8 },
      sampling: { fanouts: [1] },
      training: { epochs: 1, batch_size: 16_384, random_seed: 1 },
    });
    const features = join(folder, 'state', 'cache', 'features');
    const links = join(
      features,
      readdirSync(features).find((name) => name.endsWith('-links')),
    );
    const ours = [];
    let facts = null;
    for (const peer of options.peers.split(',').filter((each) => each !== 'none')) {
      for (const workers of [0, 1]) peers.push(new Peer(peer, dataset, links, workers));
    }
    for (const peer of peers) facts = await peer.child.next();
    for (let round = 1; round <= Number(options.rounds); round += 1) {
      const { job, looks } = await daemon.watched(
        folder,
        `round-${round}`,
        specOf(round, testShare),
      );
      ours.push({ seconds: epochSeconds(job), processor: epochProcessor(looks) });
      for (const peer of round % 2 === 0 ? [...peers].reverse() : peers) await peer.round();
    }
    const count = facts?.links ?? Math.round(pairs * (0.999 - testShare));
    report(ours, peers, count);
  } finally {
    for (const peer of peers) await peer.child.end();
    await daemon.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

function report(ours, peers, links) {
  const batches = Math.ceil(links / batchSize);
  const row = { dataset: options.dataset, links, batches };
  const epoch = ours.map(({ seconds }) => seconds);
  const processor = ours.map((each) => each.processor);
  const own = { epoch_s: median(epoch), processor_s: median(processor), rounds: epoch };
  const lines = [record('epoch-links', { ...row, name: 'gnnd', ...own })];
  for (const peer of peers) {
    const [whole, loading, spent] = [peer.run, peer.load, peer.processor].map((seconds) =>
      seconds.map((each) => each * batches),
    );
    const measured = {
      ...{ epoch_s: median(whole), load_s: median(loading), processor_s: median(spent) },
      ...{ rounds: whole, load_rounds: loading, processor_rounds: spent },
      ratio: median(whole.map((seconds, round) => seconds / epoch[round])),
      processor_ratio: median(spent.map((seconds, round) => seconds / processor[round])),
    };
    lines.push(record('epoch-links', { ...row, name: peer.name, ...measured }));
  }
  process.stdout.write(`${links} links, ${batches} batches of ${batchSize}\n`);
  for (const line of lines) {
    const of = (key) => line[key].toFixed(1);
    const loads =
      line.load_s === undefined ? '' : `, ${of('load_s')} s of it batches with features`;
    const beside =
      line.ratio === undefined
        ? ''
        : `; ${line.ratio.toFixed(2)} and ${line.processor_ratio.toFixed(2)} × gnnd's`;
    const times = `epoch ${of('epoch_s')} s, ${of('processor_s')} s of processor time`;
    process.stdout.write(`${line.name.padEnd(32)} ${times}${loads}${beside}\n`);
  }
}

await main().catch(({ message }) => {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
});
