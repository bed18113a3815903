import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import { JobTask, LinkWeights } from '../../src/api/gen/gnnd/v1/links_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { crew, jobsOn, modelsOf, pair, type SpecInit } from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import { randomOf } from '../support/random.ts';
import { folderOf, npy } from '../unit/datasets/workbench.ts';

/** Links of a dataset's own that count more or less than others. */

let daemon: TestDaemon;
const numNodes = 240;
const numKinds = 8;
const random = randomOf(5);
/** Nodes are of kinds, which their features tell; edges are by chance and tell nothing. */
const kindOf = (node: number) => node % numKinds;
const features = Float32Array.from({ length: numNodes * numKinds }, (_, at) =>
  at % numKinds === kindOf(Math.floor(at / numKinds)) ? 1 : 0.2 * (random.unit() - 0.5),
);

function list(pairs: readonly (readonly [number, number])[]): Uint8Array {
  return npy('int64', [pairs.length, 2], BigInt64Array.from(pairs.flat(), BigInt));
}

/** Each node is linked to nodes of its own kind, and to as many of the kind after the next. */
function linksOf(step: number, from: number, end: number): readonly (readonly [number, number])[] {
  const nodes = Array.from({ length: numNodes }, (_, node) => node);
  const steps = Array.from({ length: end - from }, (_, at) => from + at);
  return nodes.flatMap((node) =>
    steps.map((turn) => [node, (node + step + numKinds * turn) % numNodes] as const),
  );
}

const near = linksOf(0, 1, 7);
const far = linksOf(3, 1, 7);

/** A dataset that is judged by links to nodes of the other kind. */
async function imports(id: string, weights: readonly number[]): Promise<void> {
  const ends = Array.from({ length: 2 * 700 }, () => random.integer(0, numNodes - 1));
  const source = folderOf({
    'edge_index.npy': npy('int64', [2, 700], BigInt64Array.from(ends, BigInt)),
    'features.npy': npy('float32', [numNodes, numKinds], features),
  });
  mkdirSync(join(source, 'links'));
  const files = {
    'train.npy': list([...near, ...far]),
    'val.npy': list(linksOf(3, 7, 8)),
    'test.npy': list(linksOf(3, 8, 10)),
    'train_weights.npy': npy('float32', [weights.length], Float32Array.from(weights)),
  };
  for (const [name, bytes] of Object.entries(files)) {
    writeFileSync(join(source, 'links', name), bytes);
  }
  await daemon.import(id, source);
}

const spec = {
  task: JobTask.LINKS,
  links: { allowOverlap: true },
  model: { type: ModelType.GRAPHSAGE, hiddenDim: 16, dropout: 0 },
  sampling: { fanouts: [3, 3] },
  training: { epochs: 20, batchSize: 128, randomSeed: 3n, optimizer: { learningRate: 0.01 } },
} satisfies SpecInit;
const batches = Math.ceil((near.length + far.length) / 128);

const weigh = (ofNear: number, ofFar: number) => [
  ...near.map(() => ofNear),
  ...far.map(() => ofFar),
];

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 3 });
  await imports('near', weigh(1, 0.01));
});

describe('weights of links', () => {
  test('decide what is learnt', async () => {
    const run = (weights: LinkWeights) =>
      daemon.train(`near-${LinkWeights[weights].toLowerCase()}`, {
        ...{ ...spec, dataset: 'near', resources: { devices: 1 } },
        links: { allowOverlap: true, weights },
      });
    const [weighed, alike] = [await run(LinkWeights.AUTO), await run(LinkWeights.NONE)];
    expect(weighed.effectiveSpec?.links?.weights).toBe(LinkWeights.DATASET);
    const [found = 1, without = 0] = [weighed, alike].map(
      ({ result }) => result?.testMetricsBest.find(({ name }) => name === 'roc_auc')?.value,
    );
    // Links of the other kind count next to nothing.
    expect(found).toBeLessThan(without - 0.1);
  });

  test('make the same model whoever trains it', async () => {
    const jobs = jobsOn(() => daemon, batches);
    // Enough to be caught in the middle.
    const training = { ...spec.training, epochs: 80 };
    const one = { ...spec, dataset: 'near', training, evaluation: { everyEpochs: 80 } };
    const expected = await jobs.run({ ...one, ...pair });
    expect(modelsOf(await jobs.run({ ...one, ...crew(1, 2) }))).toEqual(modelsOf(expected));
    const killed = await jobs.killed(one, [ExecutorRole.TRAINER]);
    expect(modelsOf(killed)).toEqual(modelsOf(expected));
  });
});
