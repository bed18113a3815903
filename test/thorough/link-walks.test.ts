import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import { Standardize } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import type { Job } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import {
  JobTask,
  LinkHead,
  LinkPositives,
  LinkTargets,
} from '../../src/api/gen/gnnd/v1/links_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { runCli } from '../../src/cli/program.ts';
import { temporaryFolder } from '../support/at-end.ts';
import { chanceGraph } from '../support/chance-graph.ts';
import { crew, evaluationsOf, jobsOn, modelsOf, type SpecInit } from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import { randomOf } from '../support/random.ts';
import { createTestIo } from '../unit/cli/test-io.ts';
import { folderOf, npy } from '../unit/datasets/workbench.ts';

/** Embeddings of graphs without labels: pairs that walks visit are learnt, and links judge them. */

let daemon: TestDaemon;
const folder = temporaryFolder('gnnd-walks-');

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 4, datasets: ['cora'] });
});

const split = { validation: 0.05, test: 0.1, randomSeed: 7n };
const walks = { length: 4, window: 2, perNode: 2 };
const links = { positives: LinkPositives.WALKS, split, walks };
const walked = {
  dataset: 'cora',
  task: JobTask.LINKS,
  links,
  model: { type: ModelType.GRAPHSAGE, hiddenDim: 32, dropout: 0 },
  sampling: { fanouts: [10, 10] },
  features: { standardize: Standardize.ON },
  training: { epochs: 4, batchSize: 512, randomSeed: 7n },
} satisfies SpecInit;
/** Nothing of cora's walks ends, so that what is missing are walks that came back. */
const most = 2708 * 2 * (4 + 3);

function areaOf(job: Job): number {
  const found = job.result?.testMetricsBest.find(({ name }) => name === 'roc_auc');
  return found?.value ?? Number.NaN;
}

async function gnnctl(...args: string[]): Promise<void> {
  const { io, stderr } = createTestIo();
  const code = await runCli(['--address', daemon.address, ...args], io);
  if (code !== 0) throw new Error(`gnnctl ${args.join(' ')}: ${stderr()}`);
}

function cached(kind: 'features' | 'propagations'): readonly string[] {
  return readdirSync(join(daemon.folder, 'state', 'cache', kind)).sort();
}

function messageGraphs(): readonly string[] {
  return cached('features').filter((name) => name.endsWith('-links'));
}

describe('walks of citations', () => {
  let job: Job;

  beforeAll(async () => {
    job = await daemon.train('citations', { ...walked, resources: { devices: 1 } });
  });

  test('give embeddings by which links that nobody walked are told', () => {
    const batches = Number(job.epochs[0]?.batches);
    expect(batches).toBeLessThanOrEqual(Math.ceil(most / 512));
    expect(batches).toBeGreaterThan((most / 512) * 0.6);
    expect(job.epochs.at(-1)?.loss).toBeLessThan(job.epochs[0]?.loss ?? 0);
    expect(areaOf(job)).toBeGreaterThan(0.8);
  });

  test('are gone once for the jobs that share them, and again for another key', async () => {
    const before = messageGraphs();
    const head = { ...links, head: LinkHead.COSINE };
    const brief = { ...walked.training, epochs: 1 };
    const one = { ...walked, training: brief, resources: { devices: 1 } };
    await daemon.train('shared', { ...one, links: head });
    expect(messageGraphs()).toEqual(before);
    const other = { ...head, walks: { ...walks, randomSeed: 8n } };
    await daemon.train('other', { ...one, links: other });
    expect(messageGraphs()).toHaveLength(before.length + 1);
  });

  test('are learnt over propagated rows, which are read for inferences again', async () => {
    const { sampling: _, ...rows } = walked;
    const model = { type: ModelType.SIGN, hiddenDim: 32, dropout: 0 };
    const sign = await daemon.train('sign', { ...rows, model, resources: { devices: 1 } });
    expect(areaOf(sign)).toBeGreaterThan(0.8);
    const before = cached('propagations');
    expect(before.length).toBeGreaterThan(0);
    const outputs = ['--outputs', 'embeddings', '--out', join(folder, 'rows')];
    await gnnctl('predict', 'sign', ...outputs);
    expect(cached('propagations')).toEqual(before);
  });
});

test('a graph by chance is told by no walk: 0.50 ± 0.02', async () => {
  await daemon.import('chance', chanceGraph(3000, 40_000, 16));
  const job = await daemon.train('honest', {
    ...{ ...walked, dataset: 'chance', resources: { devices: 1 } },
    links: { ...links, split: { ...split, validation: 0.1, test: 0.15 } },
    training: { epochs: 3, batchSize: 1024, randomSeed: 1n },
  });
  const areas = job.epochs.flatMap(({ valMetrics }) =>
    valMetrics.filter(({ name }) => name === 'roc_auc').map(({ value }) => value),
  );
  expect(areas).toHaveLength(3);
  for (const area of [...areas, areaOf(job)]) expect(Math.abs(area - 0.5)).toBeLessThan(0.02);
});

test("walks go along the graph of a dataset's own links, too", async () => {
  const nodes = Array.from({ length: 400 }, (_, node) => node);
  const near = [-3, -2, -1, 1, 2, 3];
  const random = randomOf(3);
  const list = (shape: readonly number[], values: readonly number[]) =>
    npy('int64', shape, BigInt64Array.from(values, BigInt));
  const around = (steps: number, from: number, end: number) => {
    const ends = nodes.slice(from, end).flatMap((v) => [v, (v + steps) % 400]);
    return list([end - from, 2], ends);
  };
  const sources = nodes.flatMap((v) => near.map((step) => (v + step + 400) % 400));
  const targets = nodes.flatMap((v) => near.map(() => v));
  const features = Float32Array.from({ length: 6400 }, () => random.unit() - 0.5);
  const source = folderOf({
    'edge_index.npy': list([2, sources.length], [...sources, ...targets]),
    'features.npy': npy('float32', [400, 16], features),
  });
  mkdirSync(join(source, 'links'));
  const lists = { train: around(200, 0, 2), val: around(4, 0, 100), test: around(4, 100, 300) };
  for (const [side, pairs] of Object.entries(lists)) {
    writeFileSync(join(source, 'links', `${side}.npy`), pairs);
  }
  await daemon.import('around', source);
  const job = await daemon.train('around', {
    ...{ ...walked, dataset: 'around', resources: { devices: 1 } },
    links: { positives: LinkPositives.WALKS, walks },
    training: { epochs: 10, batchSize: 256, randomSeed: 1n },
  });
  expect(job.effectiveSpec?.links?.targets).toBe(LinkTargets.DATASET);
  expect(Number(job.epochs[0]?.batches)).toBeGreaterThan((0.6 * 400 * 2 * 7) / 256);
  expect(areaOf(job)).toBeGreaterThan(0.8);
});

describe('the same model', () => {
  const spec: SpecInit = {
    ...walked,
    links: { ...links, walks: { length: 2, window: 2, perNode: 1 } },
    training: { ...walked.training, batchSize: 128, epochs: 5 },
  };

  test('comes of 1, 2 and 3 Trainers, and of one that was killed', async () => {
    const expected = await daemon.train('by-one', { ...spec, ...crew(1, 1) });
    const jobs = jobsOn(() => daemon, Number(expected.epochs[0]?.batches));
    for (const trainers of [2, 3]) {
      const job = await jobs.run({ ...spec, ...crew(1, trainers) });
      expect(modelsOf(job)).toEqual(modelsOf(expected));
      expect(evaluationsOf(job)).toEqual(evaluationsOf(expected));
    }
    const killed = await jobs.killed(spec, [ExecutorRole.TRAINER]);
    expect(modelsOf(killed)).toEqual(modelsOf(expected));
    expect(evaluationsOf(killed)).toEqual(evaluationsOf(expected));
  });
});
