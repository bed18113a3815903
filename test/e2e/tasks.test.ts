import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EvaluationMethod } from '../../src/api/gen/gnnd/v1/evaluation_pb.ts';
import type { Job } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import {
  crew,
  evaluationsOf,
  killEvaluators,
  midEpoch,
  modelsOf,
  pair,
  type SpecInit,
  signal,
} from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import { refusalOf } from '../support/refusal.ts';
import { coraClasses, putTaskDatasets } from '../support/task-datasets.ts';

/** Several labels a node, and numbers to regress on: learnt, killed, the same in every bit. */

let daemon: TestDaemon;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gnnd-tasks-'));
  putTaskDatasets(folder);
  daemon = await TestDaemon.start({ cpuDevices: 4, datasets: ['cora'], folder });
});

afterAll(async () => {
  await daemon.stop(true);
  rmSync(folder, { recursive: true, force: true });
});

const training = {
  ...{ batchSize: 8, epochs: 40, randomSeed: 11n, staleness: 1, batchesPerStep: 2 },
  earlyStop: { patienceEpochs: 12, minDelta: 0 },
};
const common: SpecInit = {
  model: { type: ModelType.GRAPHSAGE, hiddenDim: 16 },
  sampling: { fanouts: [10, 5] },
  features: { standardize: false },
  timeouts: { stallMs: 2000n },
  restart: { executorRestarts: 100 },
};
const tasks: Readonly<Record<string, SpecInit>> = {
  'cora-labels': {
    ...common,
    training: { ...training, balanceClasses: true },
    evaluation: { method: EvaluationMethod.EXACT, maxBytes: 1n },
  },
  'cora-numbers': { ...common, training, evaluation: { method: EvaluationMethod.SAMPLED } },
};

let jobs = 0;

async function run(spec: SpecInit, disturb?: (id: string) => Promise<unknown>): Promise<Job> {
  jobs += 1;
  const id = `task-${jobs}`;
  await daemon.createJob(id, spec);
  await disturb?.(id);
  return await daemon.succeeded(id);
}

function bestOf(job: Job): Readonly<Record<string, number>> {
  const metrics = job.result?.testMetricsBest ?? [];
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
}

describe.each(Object.entries(tasks))('%s', (dataset, of) => {
  const spec = { ...of, dataset };
  let expected: Job;

  beforeAll(async () => {
    expected = await run({ ...spec, ...pair });
  });

  test('is learnt, and told by the metrics of its task', () => {
    const names = dataset === 'cora-labels' ? ['micro_f1', 'macro_f1'] : ['mae', 'rmse'];
    expect(Object.keys(bestOf(expected)).slice(0, 2)).toEqual(names);
    expect(expected.result?.testAccuracyBest).toBe(0);
    expect(expected.epochs.every(({ valAccuracy }) => valAccuracy === undefined)).toBe(true);
    const { micro_f1: f1 = 1, mae = 0 } = bestOf(expected);
    expect(f1).toBeGreaterThan(0.6);
    // The numbers' mean deviation is 1.2.
    expect(mae).toBeLessThan(0.9);
  });

  test('the best epoch is that of the metric that decides', () => {
    const values = expected.epochs.map(({ valMetrics }) => valMetrics[0]?.value ?? Number.NaN);
    const best = dataset === 'cora-labels' ? Math.max(...values) : Math.min(...values);
    expect(expected.result?.bestEpoch).toBe(values.indexOf(best));
    expect(expected.result?.bestValMetrics[0]?.value).toBe(best);
  });

  test('Trainers that die, and others in their place, change no bit', async () => {
    const disturbed = await run({ ...spec, ...pair }, async (id) => {
      const pids = await midEpoch(daemon, id);
      for (const pid of pids.values()) signal(pid, 'SIGKILL');
    });
    expect(disturbed.attempts[0]?.exits).toHaveLength(2);
    const crowd = await run({ ...spec, ...crew(1, 3) }, (id) => killEvaluators(daemon, id, 3));
    for (const job of [disturbed, crowd]) {
      expect(modelsOf(job)).toEqual(modelsOf(expected));
      expect(evaluationsOf(job)).toEqual(evaluationsOf(expected));
      expect(job.message).toBe(expected.message);
    }
  });

  test('a model over rows learns it, too', async () => {
    const rows: SpecInit = {
      dataset,
      model: { type: ModelType.SIGN, hiddenDim: 16 },
      training: { batchSize: 16, epochs: 40, optimizer: { learningRate: 0.01 } },
      propagation: { hops: 2, standardize: false },
    };
    const job = await run(rows);
    const { micro_f1: f1 = 1, mae = 0 } = bestOf(job);
    expect(f1).toBeGreaterThan(0.55);
    expect(mae).toBeLessThan(1);
  });
});

test('classes weigh what they are told to, and F1 stands beside accuracy', async () => {
  const spec = { ...common, ...pair, dataset: 'cora', training: { ...training, epochs: 6 } };
  const plain = await run(spec);
  expect(Object.keys(bestOf(plain))).toEqual(['accuracy', 'micro_f1', 'macro_f1']);
  expect(bestOf(plain)['micro_f1']).toBe(bestOf(plain)['accuracy']);
  expect(plain.result?.testAccuracyBest).toBe(bestOf(plain)['accuracy']);
  const weighted = (classWeights: number[]) =>
    run({ ...spec, training: { ...spec.training, classWeights } });
  const ones = await weighted(Array(coraClasses).fill(1));
  expect(modelsOf(ones)).toEqual(modelsOf(plain));
  // Cora's training nodes are twenty of each class.
  const balanced = await run({ ...spec, training: { ...spec.training, balanceClasses: true } });
  expect(modelsOf(balanced)).toEqual(modelsOf(plain));
  const others = await weighted([4, 1, 1, 1, 1, 1, 0.5]);
  expect(modelsOf(others)).not.toEqual(modelsOf(plain));
});

test('weights that cannot be are refused by field', async () => {
  const refused = async (dataset: string, change: object) => {
    const spec = { ...common, dataset, training: { ...training, ...change } };
    const { code, fields } = await refusalOf(daemon.createJob('wrong', spec));
    expect(code).toBe(status.INVALID_ARGUMENT);
    return fields;
  };
  const [weights, balance] = ['spec.training.class_weights', 'spec.training.balance_classes'];
  expect(await refused('cora-numbers', { classWeights: [1, 2] })).toEqual({
    [weights]: expect.stringContaining('leave it out'),
  });
  expect(await refused('cora-numbers', { balanceClasses: true })).toEqual({
    [balance]: expect.stringContaining('leave it out'),
  });
  expect(await refused('cora-labels', { classWeights: [1, 2] })).toEqual({
    [weights]: expect.stringContaining('expected 7, one for each label'),
  });
  expect(await refused('cora', { classWeights: [1, 1, 1, 1, 1, 1, -1] })).toEqual({
    [`${weights}[6]`]: expect.any(String),
  });
  const both = { classWeights: Array(coraClasses).fill(1), balanceClasses: true };
  expect(await refused('cora', both)).toEqual({
    [balance]: expect.stringContaining('expected one of them'),
  });
});
