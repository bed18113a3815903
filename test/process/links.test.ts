import { closeSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DatasetLocation, LinkOptions, SamplingOptions } from '../../src/native/contract.ts';
import { loadCore } from '../../src/native/load.ts';
import { ringGraph } from '../support/ring-graph.ts';

/** What a job of links reads: a graph without its own test links, and batches of pairs. */

const core = loadCore();
const numNodes = 200;
const whole: DatasetLocation['counts'] = {
  ...{ numNodes, numEdges: ringGraph.numEdges, numFeatures: 4, numClasses: 2 },
  ...{ train: 100, val: 50, test: 50, featureDtype: 'float32', task: 'CLASSIFICATION' },
};
const split = {
  ...{ validation: 0.1, test: 0.2, randomSeed: 7n, keepVal: false, given: false },
  walks: { perNode: 0, length: 0, window: 0, randomSeed: 0n },
};
let home = '';

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'gnnd-links-'));
  for (const [name, bytes] of Object.entries(ringGraph.files)) {
    writeFileSync(join(home, name), bytes);
  }
});
afterAll(() => rmSync(home, { recursive: true }));

/** The pairs in an array of uint32 [n, 2]. */
function pairsIn(path: string): readonly string[] {
  const bytes = readFileSync(path);
  const start = 10 + bytes.readUInt16LE(8);
  const end = bytes.byteOffset + bytes.length;
  const ends = new Uint32Array(bytes.buffer.slice(bytes.byteOffset + start, end));
  return Array.from({ length: ends.length / 2 }, (_, i) => `${ends[2 * i]}-${ends[2 * i + 1]}`);
}

async function messageGraph(options: Partial<typeof split> = {}) {
  const folder = mkdtempSync(join(home, 'messages-'));
  const flat = { featuresPath: '', schema: { types: [], relations: [] }, typeRows: [] };
  const location = { folder: home, counts: whole, ...flat };
  const made = await core.messageGraphMake(location, { ...split, ...options }, folder);
  const counts = { ...whole, numEdges: made.numEdges, train: 0, val: 0, test: 0 };
  return { folder, made, location: { folder, counts, ...flat } };
}

test('a ring has 400 links, of which the share asked for is kept from messages', async () => {
  const { folder, made } = await messageGraph();
  expect(made).toEqual({
    ...{ numEdges: 2 * 280, symmetric: true, train: 280, val: 40, test: 80, overlap: 0 },
    ...{ valPool: 0, testPool: 0 },
  });
  const lists = ['train', 'val', 'test'].map((list) => pairsIn(join(folder, `links_${list}.npy`)));
  expect(lists.map(({ length }) => length)).toEqual([280, 40, 80]);
  expect(new Set(lists.flat()).size).toBe(400);
  const again = await messageGraph({ keepVal: true });
  expect(again.made.numEdges).toBe(2 * 320);
  expect(pairsIn(join(again.folder, 'links_test.npy'))).toEqual(lists[2]);
});

test('walks along the edges that are left come to pairs in place of training links', async () => {
  const plain = await messageGraph();
  const walks = { perNode: 3, length: 4, window: 2, randomSeed: 5n };
  const { folder, made } = await messageGraph({ walks });
  for (const name of ['indptr.npy', 'indices.npy', 'links_val.npy', 'links_test.npy']) {
    expect(readFileSync(join(folder, name))).toEqual(readFileSync(join(plain.folder, name)));
  }
  const pairs = pairsIn(join(folder, 'links_train.npy'));
  expect(pairs).toHaveLength(made.train);
  expect(made.train).toBeLessThanOrEqual(numNodes * 3 * (4 + 3));
  expect(made.train).toBeGreaterThan(numNodes * 3 * 3);
  const flipped = (pair: string) => pair.split('-').reverse().join('-');
  const links = pairsIn(join(plain.folder, 'links_train.npy'));
  const edges = new Set([...links, ...links.map(flipped)]);
  const near = pairs.filter((pair) => edges.has(pair)).length;
  expect(near).toBeGreaterThan(pairs.length / 2);
  expect(near).toBeLessThan(pairs.length);
  const again = await messageGraph({ walks: { ...walks, randomSeed: 6n } });
  expect(pairsIn(join(again.folder, 'links_train.npy'))).not.toEqual(pairs);
});

test('a split that leaves a list empty is refused with its numbers', async () => {
  await expect(messageGraph({ validation: 0.001 })).rejects.toThrow(
    'of 400 links 320 would be for training, 0 for validation, 80 for the test',
  );
});

const links: LinkOptions = {
  ...{ count: 280, method: 'UNIFORM', negatives: 2, known: 'MASK', exclude: 'BATCH' },
  ...{ symmetric: true, given: false },
};
const sampling: SamplingOptions = {
  ...{ fanouts: [3, 3], algorithm: 'KHOP_UNIFORM', replace: false, expansion: 'ALL' },
  walk: { walks: 4, length: 3, restartProb: 0.5 },
  labor: { dependencyWindow: 1 },
  plugin: { path: '', options: '', weights: false, sha256: '' },
  locality: { maxScale: 1, schedule: 'FIXED', ratio: 0, hopNodes: 1 },
  ...{ batchSize: 16, edgeWeights: 'NONE', relationFanouts: [], hotRanks: false, links },
};

async function ranked(changes: Partial<SamplingOptions>) {
  const { location } = await messageGraph();
  const topologyFd = core.topologyReserve();
  try {
    await core.topologyFill(topologyFd, location, { place: 'MEMORY', alias: false });
    const orderPath = join(location.folder, 'order.npy');
    return await core.cacheRank({
      ...{ dataset: location, sampling: { ...sampling, ...changes }, randomSeed: 3n, topologyFd },
      ...{ policy: 'COMBINED', presampleEpochs: 1, epochs: 1, orderPath },
    });
  } finally {
    closeSync(topologyFd);
  }
}

test('caches are ordered by batches of links, ends and negatives included', async () => {
  const { runs } = await ranked({});
  expect(runs.reduce((sum, { rows }) => sum + rows, 0)).toBe(numNodes);
  // 18 batches of 16 links, with 2 negatives each: every node is in some.
  expect(Math.min(...runs.map(({ hotness }) => hotness))).toBeGreaterThan(1);
  const few = await ranked({ fanouts: [1], links: { ...links, method: 'IN_BATCH' } });
  const mean = ({ runs: all }: typeof few) =>
    all.reduce((sum, { rows, hotness }) => sum + rows * hotness, 0) / numNodes;
  expect(mean(few)).toBeLessThan(mean({ ...few, runs }));
});

test('draws with locality lose no links afterwards', async () => {
  const locality = { ...sampling.locality, maxScale: 2 };
  const changes = { locality, edgeWeights: 'SHARES' } as const;
  await ranked(changes);
  const after = { ...changes, links: { ...links, exclude: 'BATCH_AFTER' } } as const;
  await expect(ranked(after)).rejects.toThrow('BATCH_AFTER is not for draws with locality');
});

test('a record of links has room for pairs, negatives and masks', () => {
  const bytes = (some: Partial<LinkOptions>) =>
    core.recordSlotBytes(whole, { ...sampling, links: { ...links, ...some } });
  expect(bytes({})).toBeGreaterThan(bytes({ known: 'ALLOW' }));
  expect(bytes({ known: 'ALLOW' })).toBeGreaterThan(bytes({ count: 0 }));
  const tooMany = { ...links, negatives: 2 ** 20 };
  expect(() =>
    core.recordSlotBytes(
      { ...whole, numNodes: 2 ** 30 },
      { ...sampling, batchSize: 2 ** 13, links: { ...tooMany, count: 2 ** 20 } },
    ),
  ).toThrow('negatives; a record counts them in 32 bits');
});
