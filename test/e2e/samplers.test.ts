import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DatasetService } from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { Expansion, ModelType, SamplingAlgorithm } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { expectSameModels, type SpecInit } from '../support/crews.ts';
import { repository, TestDaemon } from '../support/daemon.ts';
import { refusalOf } from '../support/refusal.ts';
import { ringGraph } from '../support/ring-graph.ts';
import { float32, npy } from '../unit/datasets/workbench.ts';

/** Every sampler trains through the daemon, and who does what changes no bit. */

let daemon: TestDaemon;
let folder = '';

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gnnd-samplers-'));
  daemon = await TestDaemon.start({ cpuDevices: 4 });
  await daemon.import('cora', join(repository, 'test', 'fixtures', 'cora.npz'));
  await daemon.import('weighted', folderWith('weighted', ringGraph.files));
});

afterAll(async () => {
  await daemon.stop();
  rmSync(folder, { recursive: true, force: true });
});

function folderWith(name: string, files: Readonly<Record<string, Uint8Array>>): string {
  const path = mkdtempSync(join(folder, `${name}-`));
  for (const [file, content] of Object.entries(files)) writeFileSync(join(path, file), content);
  return path;
}

/** Cora has seven classes, of which the largest has 30 % of the nodes; the ring has two. */
const aboveChance = { cora: 0.5, weighted: 0.8 } as const;

function spec(dataset: keyof typeof aboveChance, sampling: SpecInit['sampling']): SpecInit {
  return {
    dataset,
    model: { type: ModelType.GRAPHSAGE, layers: 2, hiddenDim: 16 },
    sampling: sampling ?? {},
    training: {
      // Enough to be caught in the middle.
      epochs: dataset === 'cora' ? 12 : 200,
      batchSize: 10,
      staleness: 2,
      randomSeed: 5n,
      threadsPerTrainer: 1,
      optimizer: { learningRate: 0.01 },
    },
    timeouts: { stallMs: 10_000n },
  };
}

const fanouts = [10, 5];
const walk = { walks: 8, length: 3, restartProb: 0.5, neighbors: 6 };
const samplers = [
  ['uniform-replace', 'cora', { fanouts, replace: true }],
  ['uniform-new', 'cora', { fanouts, expansion: Expansion.NEW }],
  ['weighted', 'weighted', { fanouts, algorithm: SamplingAlgorithm.KHOP_WEIGHTED }],
  [
    'weighted-replace',
    'weighted',
    { fanouts, algorithm: SamplingAlgorithm.KHOP_WEIGHTED, replace: true },
  ],
  ['walk', 'cora', { algorithm: SamplingAlgorithm.RANDOM_WALK, walk }],
  ['labor', 'cora', { fanouts, algorithm: SamplingAlgorithm.LABOR }],
  [
    'labor-window',
    'cora',
    { fanouts, algorithm: SamplingAlgorithm.LABOR, labor: { dependencyWindow: 4 } },
  ],
] as const;

test.each(samplers)('%s learns, the same with every crew', async (id, dataset, sampling) => {
  const job = await expectSameModels(daemon, id, spec(dataset, sampling));
  expect(job.result?.testAccuracyBest).toBeGreaterThan(aboveChance[dataset]);
});

describe('a wrong sampling is answered with its field', () => {
  const algorithm = SamplingAlgorithm;
  const ofWalk = (change: object) => ({
    algorithm: algorithm.RANDOM_WALK,
    walk: { ...walk, ...change },
  });
  test.each([
    ['a fanout of 0', { fanouts: [10, 0] }, 'spec.sampling.fanouts[1]'],
    [
      'a fanout of 10^9',
      { fanouts: [1_000_000_000, 5], algorithm: algorithm.LABOR },
      'spec.sampling.fanouts[0]',
    ],
    ['a walk of length 0', ofWalk({ length: 0 }), 'spec.sampling.walk.length'],
    ['no walks', ofWalk({ walks: 0 }), 'spec.sampling.walk.walks'],
    ['no neighbours', ofWalk({ neighbors: 0 }), 'spec.sampling.walk.neighbors'],
    ['a sure restart', ofWalk({ restartProb: 1 }), 'spec.sampling.walk.restart_prob'],
    ['a restart of NaN', ofWalk({ restartProb: Number.NaN }), 'spec.sampling.walk.restart_prob'],
    ['a walk of another algorithm', { fanouts, walk }, 'spec.sampling.walk.walks'],
    [
      'a window of 0',
      { fanouts, algorithm: algorithm.LABOR, labor: { dependencyWindow: 0 } },
      'spec.sampling.labor.dependency_window',
    ],
    [
      'weights that the dataset lacks',
      { fanouts, algorithm: algorithm.KHOP_WEIGHTED },
      'spec.sampling.algorithm',
    ],
    [
      'LABOR with replacement',
      { fanouts, algorithm: algorithm.LABOR, replace: true },
      'spec.sampling.replace',
    ],
  ])('%s', async (_, sampling, field) => {
    const { code, fields } = await refusalOf(daemon.createJob('wrong', spec('cora', sampling)));
    expect(code).toBe(status.INVALID_ARGUMENT);
    expect(Object.keys(fields)).toContain(field);
  });
});

describe('edge weights are refused at import', () => {
  const numEdges = ringGraph.numEdges;
  const weights = (change: number) =>
    Float32Array.from({ length: numEdges }, (_, e) => (e === 3 ? change : 1));
  const file = (change: number) => npy('float32', [numEdges], weights(change));
  test.each([
    ['NaN', file(Number.NaN), /index 3/],
    ['negative', file(-1), /index 3/],
    ['infinite', file(Number.POSITIVE_INFINITY), /index 3/],
    ['too few', float32(1, 2, 3), /has 3 rows, expected/],
  ])('that are %s', async (_, content, what) => {
    const source = folderWith('bad', { ...ringGraph.files, 'edge_weights.npy': content });
    const { importDataset, waitOperation } = DatasetService.method;
    let operation = await daemon.call(importDataset, { datasetId: 'bad', source });
    while (!operation.done) {
      operation = await daemon.call(waitOperation, { name: operation.name, timeoutMs: 10_000n });
    }
    if (operation.result.case !== 'error') throw new Error('the import did not fail');
    const [problem] = operation.result.value.problems;
    expect(problem?.path).toBe('edge_weights.npy');
    expect(problem?.description).toMatch(what);
  });
});
