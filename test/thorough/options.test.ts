import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { beforeAll, describe, expect, test } from 'vitest';
import { DatasetService } from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { type Activation, ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { SamplingAlgorithm } from '../../src/api/gen/gnnd/v1/sampling_pb.ts';
import { temporaryFolder } from '../support/at-end.ts';
import { pair, type SpecInit } from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import { options, specOf } from '../support/options.ts';
import { refusalOf } from '../support/refusal.ts';
import { ringGraph } from '../support/ring-graph.ts';
import { float32, npy } from '../unit/datasets/workbench.ts';

/**
 * Every sampler, model, optimizer and schedule trains through the daemon, with one crew: that
 * crews change no bit is shown by determinism.test.ts, for each of these by test/long.
 */

let daemon: TestDaemon;
const folder = temporaryFolder('gnnd-options-');

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 2, datasets: ['cora'] });
  await daemon.import('ring', folderWith(ringGraph.files));
});

function folderWith(files: Readonly<Record<string, Uint8Array>>): string {
  const path = mkdtempSync(join(folder, 'graph-'));
  for (const [file, content] of Object.entries(files)) writeFileSync(join(path, file), content);
  return path;
}

test.each(Object.entries(options))('%s learns', async (id, option) => {
  const job = await daemon.train(id, { ...specOf(option), ...pair });
  expect(job.epochs).toHaveLength(specOf(option).training?.epochs ?? 0);
  expect(job.result?.parametersSha256).toMatch(/^[0-9a-f]{64}$/);
  expect(job.result?.testAccuracyBest).toBeGreaterThan(option.accuracy);
});

async function expectRefused(spec: SpecInit, field: string): Promise<void> {
  const { code, fields } = await refusalOf(daemon.createJob('wrong', spec));
  expect(code).toBe(status.INVALID_ARGUMENT);
  expect(Object.keys(fields)).toContainEqual(expect.stringContaining(field));
}

const fanouts = [10, 5];
const { LABOR, KHOP_WEIGHTED, RANDOM_WALK } = SamplingAlgorithm;

describe('a wrong sampling is answered with its field', () => {
  const walk = { walks: 8, length: 3, restartProb: 0.5, neighbors: 6 };
  const ofWalk = (change: object) => ({
    algorithm: RANDOM_WALK,
    walk: { ...walk, ...change },
  });
  test.each([
    ['a fanout of 0', { fanouts: [10, 0] }, 'spec.sampling.fanouts[1]'],
    [
      'a fanout of 10^9',
      { fanouts: [1_000_000_000, 5], algorithm: LABOR },
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
      { fanouts, algorithm: LABOR, labor: { dependencyWindow: 0 } },
      'spec.sampling.labor.dependency_window',
    ],
    [
      'weights that the dataset lacks',
      { fanouts, algorithm: KHOP_WEIGHTED },
      'spec.sampling.algorithm',
    ],
    [
      'LABOR with replacement',
      { fanouts, algorithm: LABOR, replace: true },
      'spec.sampling.replace',
    ],
  ])('%s', async (_, sampling, field) => {
    const model = { type: ModelType.GRAPHSAGE, layers: 2, hiddenDim: 16 };
    await expectRefused({ ...specOf({ model }), sampling }, field);
  });
});

describe('a wrong model or optimizer is answered with its field', () => {
  const gat = { type: ModelType.GAT };
  const gcn = { type: ModelType.GCN };
  test.each([
    ['heads that do not share the width', { ...gat, heads: 3 }, {}, {}, 'spec.model.hidden_dim'],
    ['no heads', { ...gat, heads: 0 }, {}, {}, 'spec.model.heads'],
    ['heads without attention', { heads: 2 }, {}, {}, 'spec.model.heads'],
    [
      'all attention dropped',
      { ...gat, attentionDropout: 1 },
      {},
      {},
      'spec.model.attention_dropout',
    ],
    ['PinSAGE without walks', { type: ModelType.PINSAGE }, {}, {}, 'spec.sampling.algorithm'],
    ['GCN on LABOR', gcn, { algorithm: LABOR }, {}, 'spec.sampling.algorithm'],
    ['GCN with replacement', gcn, { replace: true }, {}, 'sampling.replace'],
    ['an unknown activation', { activation: 9 as Activation }, {}, {}, 'spec.model.activation'],
    [
      'momentum without SGD',
      {},
      {},
      { optimizer: { momentum: 0.9 } },
      'spec.training.optimizer.momentum',
    ],
    [
      'a negative clip norm',
      {},
      {},
      { optimizer: { clipNorm: -1 } },
      'spec.training.optimizer.clip_norm',
    ],
    [
      'gamma without steps',
      {},
      {},
      { lrSchedule: { gamma: 0.5 } },
      'spec.training.lr_schedule.gamma',
    ],
    [
      'a warm-up longer than the job',
      {},
      {},
      { lrSchedule: { warmupEpochs: 13 } },
      'spec.training.lr_schedule.warmup_epochs',
    ],
  ])('%s', async (_, model, sampling, training, field) => {
    const wrong = specOf({ model, sampling: { fanouts, ...sampling }, training });
    const { code, fields } = await refusalOf(daemon.createJob('wrong', wrong));
    expect(code).toBe(status.INVALID_ARGUMENT);
    expect(Object.keys(fields)).toEqual([expect.stringContaining(field)]);
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
    const source = folderWith({ ...ringGraph.files, 'edge_weights.npy': content });
    const { importDataset } = DatasetService.method;
    const { result } = await daemon.ended(
      await daemon.call(importDataset, { datasetId: 'bad', source }),
    );
    if (result.case !== 'error') throw new Error('the import did not fail');
    const [problem] = result.value.problems;
    expect(problem?.path).toBe('edge_weights.npy');
    expect(problem?.description).toMatch(what);
  });
});
