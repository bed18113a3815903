import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { beforeAll, expect, test } from 'vitest';
import {
  JobTask,
  KnownLinks,
  LinkExclusion,
  LinkHead,
  LinkLoss,
  type LinksSpec,
  type LinksSpecSchema,
  NegativeMethod,
} from '../../src/api/gen/gnnd/v1/links_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { SamplingAlgorithm } from '../../src/api/gen/gnnd/v1/sampling_pb.ts';
import { temporaryFolder } from '../support/at-end.ts';
import { pair, type SpecInit } from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import { ringGraph } from '../support/ring-graph.ts';
import { compileTutorialSampler } from '../support/tutorial.ts';

/** Every head, loss, kind of negatives and sampler learns links through the daemon. */

let daemon: TestDaemon;
const folder = temporaryFolder('gnnd-links-');
const pluginsDir = join(folder, 'plugins');

beforeAll(async () => {
  mkdirSync(pluginsDir);
  compileTutorialSampler(pluginsDir);
  const env = { GNND_PLUGINS_DIR: pluginsDir };
  daemon = await TestDaemon.start({ cpuDevices: 2, datasets: ['cora'], env });
  const ring = mkdtempSync(join(folder, 'ring-'));
  for (const [file, bytes] of Object.entries(ringGraph.files)) {
    writeFileSync(join(ring, file), bytes);
  }
  await daemon.import('ring', ring);
});

interface Choice {
  readonly links: Exclude<MessageInitShape<typeof LinksSpecSchema>, LinksSpec>;
  readonly model?: NonNullable<SpecInit['model']>;
  readonly sampling?: NonNullable<SpecInit['sampling']>;
  readonly cache?: NonNullable<SpecInit['cache']>;
}

const { COSINE, DISTMULT, BILINEAR, MLP } = LinkHead;
const { BCE_BALANCED, BPR, SOFTMAX } = LinkLoss;
const { DEGREE, JOINT, IN_BATCH } = NegativeMethod;
const { ALLOW, MASK, AVOID } = KnownLinks;
const { KHOP_WEIGHTED, KHOP_PLUGIN, RANDOM_WALK, LABOR } = SamplingAlgorithm;
const walk = { walks: 8, length: 3, restartProb: 0.5, neighbors: 6 };
const fanouts = [10, 5];
const plugin = { path: join(pluginsDir, 'few_hubs.so'), options: 'cap=4' };

/** Two or three new things at a time. */
const choices: Readonly<Record<string, Choice>> = {
  'cosine-softmax-joint-labor': {
    links: {
      ...{ head: COSINE, loss: SOFTMAX, temperature: 0.1 },
      negatives: { method: JOINT, count: 8 },
    },
    sampling: { fanouts, algorithm: LABOR },
  },
  'distmult-balanced-degree-avoid-gcn': {
    links: {
      ...{ head: DISTMULT, loss: BCE_BALANCED },
      negatives: { method: DEGREE, count: 2, known: AVOID },
    },
    model: { type: ModelType.GCN },
  },
  'bilinear-bpr-mask-walks': {
    links: { head: BILINEAR, loss: BPR, negatives: { count: 2, known: MASK } },
    sampling: { algorithm: RANDOM_WALK, walk },
  },
  'mlp-labor-window-gatv2': {
    links: { head: MLP, negatives: { known: AVOID } },
    model: { type: ModelType.GATV2, heads: 2 },
    sampling: { fanouts, algorithm: LABOR, labor: { dependencyWindow: 4 } },
  },
  'softmax-in-batch-with-replacement': {
    links: { loss: SOFTMAX, negatives: { method: IN_BATCH } },
    sampling: { fanouts, replace: true },
  },
  'in-batch-allow-after': {
    links: {
      ...{ loss: BCE_BALANCED, exclude: LinkExclusion.BATCH_AFTER },
      negatives: { method: IN_BATCH, known: ALLOW },
    },
  },
  'joint-bpr-locality': {
    links: { loss: BPR, negatives: { method: JOINT, count: 4, known: ALLOW } },
    sampling: { fanouts, locality: { maxScale: 4, hopNodes: 500 } },
    cache: { ratio: 0.2 },
  },
  'degree-plugin': {
    links: { negatives: { method: DEGREE, known: MASK } },
    sampling: { fanouts, algorithm: KHOP_PLUGIN, plugin },
  },
};

function specOf({ links, model, sampling = { fanouts }, cache }: Choice): SpecInit {
  return {
    dataset: 'cora',
    task: JobTask.LINKS,
    links: { split: { randomSeed: 3n }, evaluation: { count: 100 }, ...links },
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 32, layers: 2, dropout: 0, ...model },
    sampling,
    training: { epochs: 6, batchSize: 256, randomSeed: 5n, optimizer: { learningRate: 0.01 } },
    evaluation: { everyEpochs: 3 },
    ...(cache === undefined ? {} : { cache }),
    ...pair,
  };
}

test.each(Object.entries(choices))('%s learns', async (id, choice) => {
  const job = await daemon.train(id, specOf(choice));
  const metrics = job.result?.testMetricsBest ?? [];
  const found = Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
  // Chance has 0.5, and 0.052 among 100.
  expect(found['roc_auc']).toBeGreaterThan(0.65);
  expect(found['mrr@100']).toBeGreaterThan(0.15);
  expect(job.epochs.at(-1)?.loss).toBeLessThan(job.epochs[0]?.loss ?? 0);
});

test('draws by weight learn, too', async () => {
  const sampling = { fanouts: [2, 2], algorithm: KHOP_WEIGHTED };
  const spec: SpecInit = {
    ...specOf({ links: { negatives: { known: AVOID } }, sampling }),
    dataset: 'ring',
    training: { epochs: 20, batchSize: 32, optimizer: { learningRate: 0.01 } },
  };
  const job = await daemon.train('ring-weighted', spec);
  expect(job.epochs.at(-1)?.loss).toBeLessThan(job.epochs[0]?.loss ?? 0);
});
