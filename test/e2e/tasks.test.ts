import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { beforeAll, describe, expect, test } from 'vitest';
import { DecidingMetric, EvaluationMethod } from '../../src/api/gen/gnnd/v1/evaluation_pb.ts';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import { Standardize } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import {
  InferenceFormat,
  InferenceNodes,
  InferenceOutput,
  JobKind,
} from '../../src/api/gen/gnnd/v1/inference_pb.ts';
import type { Job } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { runCli } from '../../src/cli/program.ts';
import { temporaryFolder } from '../support/at-end.ts';
import {
  crew,
  expectSame,
  jobsOn,
  killEvaluators,
  modelsOf,
  pair,
  type SpecInit,
} from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import { refusalOf } from '../support/refusal.ts';
import { coraClasses, putTaskDatasets } from '../support/task-datasets.ts';
import { createTestIo } from '../unit/cli/test-io.ts';

/** Several labels a node, and numbers to regress on: learnt, killed, the same in every bit. */

let daemon: TestDaemon;
const folder = temporaryFolder('gnnd-tasks-');

beforeAll(async () => {
  putTaskDatasets(folder);
  daemon = await TestDaemon.start({ cpuDevices: 4, datasets: ['cora'], folder });
});

const training = {
  ...{ batchSize: 8, epochs: 40, randomSeed: 11n, staleness: 1, batchesPerStep: 2 },
  earlyStop: { patienceEpochs: 12, minDelta: 0 },
};
const common: SpecInit = {
  model: { type: ModelType.GRAPHSAGE, hiddenDim: 16 },
  sampling: { fanouts: [10, 5] },
  features: { standardize: Standardize.OFF },
  timeouts: { stallMs: 2000n },
  restart: { executorRestarts: 100 },
};
const tasks: Readonly<Record<string, SpecInit>> = {
  'cora-labels': {
    ...common,
    training: { ...training, balanceClasses: true },
    evaluation: { method: EvaluationMethod.EXACT, maxBytes: 1n, metric: DecidingMetric.ROC_AUC },
  },
  'cora-numbers': { ...common, training, evaluation: { method: EvaluationMethod.SAMPLED } },
};

const batchesPerEpoch = 18;
const jobs = jobsOn(() => daemon, batchesPerEpoch);

function bestOf(job: Job): Readonly<Record<string, number>> {
  const metrics = job.result?.testMetricsBest ?? [];
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
}

describe.each(Object.entries(tasks))('%s', (dataset, of) => {
  const spec = { ...of, dataset };
  let expected: Job;

  beforeAll(async () => {
    expected = await jobs.run({ ...spec, ...pair });
  });

  test('is learnt, and told by the metrics of its task', () => {
    const ofLabels = ['roc_auc', 'micro_f1', 'macro_f1', 'average_precision'];
    const names = dataset === 'cora-labels' ? ofLabels : ['mae', 'rmse'];
    expect(Object.keys(bestOf(expected))).toEqual(names);
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
    expectSame(await jobs.killed(spec, [ExecutorRole.SAMPLER, ExecutorRole.TRAINER]), expected);
    const crowd = { ...spec, ...crew(1, 3) };
    expectSame(await jobs.run(crowd, (id) => killEvaluators(daemon, id, 3)), expected);
  });

  test('a model over rows learns it, and a report tells labels and targets apart', async () => {
    const rows: SpecInit = {
      dataset,
      model: { type: ModelType.SIGN, hiddenDim: 16 },
      training: { batchSize: 16, epochs: 40, optimizer: { learningRate: 0.01 } },
      propagation: { hops: 2, standardize: false },
    };
    const job = await daemon.train(`rows-${dataset}`, rows);
    const { micro_f1: f1 = 1, mae = 0 } = bestOf(job);
    expect(f1).toBeGreaterThan(0.55);
    expect(mae).toBeLessThan(1);
    const { labels, targets } = await reportOf(`rows-${dataset}`);
    const meanOf = (scores: readonly Score[], weightOf: (score: Score) => number) =>
      scores.reduce((sum, score) => sum + weightOf(score) * (score.f1 ?? score.mae ?? 0), 0) /
      scores.reduce((sum, score) => sum + weightOf(score), 0);
    if (labels !== undefined) {
      expect(meanOf(labels, () => 1)).toBeCloseTo(bestOf(job)['macro_f1'] ?? 0, 9);
    } else expect(meanOf(targets ?? [], ({ support }) => support)).toBeCloseTo(mae, 5);
  });
});

test('what is predicted comes to what the evaluation told', async () => {
  const dataset = 'cora-labels';
  const trained = await daemon.train('trained', { ...tasks[dataset], ...pair, dataset });
  const predicted = await daemon.train('predicted', {
    kind: JobKind.INFERENCE,
    inference: {
      ...{ job: 'trained', nodes: InferenceNodes.TEST },
      ...{ outputs: [InferenceOutput.LOGITS], formats: [InferenceFormat.NPY] },
    },
  });
  const path = predicted.result?.predictions?.folder ?? '';
  const nodes = new BigInt64Array(arrayIn(join(path, 'nodes.npy')));
  const logits = new Float32Array(arrayIn(join(path, 'logits.npy')));
  const bits = new Uint8Array(arrayIn(join(path, 'predictions.npy')));
  const labels = join(folder, 'state', 'datasets', dataset, 'labels.npy');
  const actual = new Uint8Array(arrayIn(labels));
  const known = [...nodes].flatMap((node, row) =>
    Array.from({ length: coraClasses }, (_, label) => ({
      ...{ label, is: actual[Number(node) * coraClasses + label] },
      said: bits[row * coraClasses + label],
      score: logits[row * coraClasses + label] ?? Number.NaN,
    })).filter(({ is }) => is !== 255),
  );
  expect(known.every(({ said, score }) => said === Number(score > 0))).toBe(true);
  const hits = known.filter(({ is, said }) => is === 1 && said === 1).length;
  const all =
    known.filter(({ is }) => is === 1).length + known.filter((it) => it.said === 1).length;
  expect(bestOf(trained)['micro_f1']).toBeCloseTo((2 * hits) / all, 12);
  const areas = Array.from({ length: coraClasses }, (_, label) =>
    areaOf(known.filter((it) => it.label === label)),
  );
  const mean = areas.reduce((sum, area) => sum + area, 0) / coraClasses;
  expect(bestOf(trained)['roc_auc']).toBeCloseTo(mean, 12);
});

interface Score {
  readonly support: number;
  readonly f1?: number;
  readonly mae?: number;
}

/** What `gnnctl job report` says of a job. */
async function reportOf(id: string): Promise<{ labels?: Score[]; targets?: Score[] }> {
  const { io, stdout } = createTestIo();
  await runCli(['--address', daemon.address, 'job', 'report', id, '-o', 'json'], io);
  return JSON.parse(stdout());
}

/** The elements of a .npy file. */
function arrayIn(path: string): ArrayBuffer {
  const bytes = readFileSync(path);
  return new Uint8Array(bytes.subarray(10 + bytes.readUInt16LE(8))).buffer;
}

/** Share of pairs of which the one that has the label is above the other. */
function areaOf(nodes: readonly { readonly is: number | undefined; readonly score: number }[]) {
  const scoresOf = (wanted: number) => nodes.filter(({ is }) => is === wanted).map((n) => n.score);
  const [negatives, positives] = [scoresOf(0), scoresOf(1)];
  const above = positives.flatMap((a) => negatives.map((b) => (a > b ? 1 : a === b ? 0.5 : 0)));
  return above.reduce((sum: number, one) => sum + one, 0) / above.length;
}

test('of more than two classes areas are computed where they decide', async () => {
  const spec = { ...common, ...pair, dataset: 'cora', training: { ...training, epochs: 3 } };
  for (const [metric, name] of [
    [DecidingMetric.ROC_AUC, 'roc_auc'],
    [DecidingMetric.AVERAGE_PRECISION, 'average_precision'],
  ] as const) {
    const job = await jobs.run({ ...spec, evaluation: { metric } });
    expect(Object.keys(bestOf(job))[0]).toBe(name);
    expect(Object.keys(bestOf(job))).toHaveLength(5);
    const values = job.epochs.map(({ valMetrics }) => valMetrics[0]?.value ?? Number.NaN);
    expect(job.result?.bestEpoch).toBe(values.indexOf(Math.max(...values)));
  }
  const wrong = { ...spec, evaluation: { metric: DecidingMetric.RMSE } };
  const { code, fields } = await refusalOf(daemon.createJob('wrong-metric', wrong));
  expect(code).toBe(status.INVALID_ARGUMENT);
  expect(fields).toEqual({
    'spec.evaluation.metric': expect.stringContaining('expected one of ACCURACY'),
  });
});

test('classes weigh what they are told to, and F1 stands beside accuracy', async () => {
  const spec = { ...common, ...pair, dataset: 'cora', training: { ...training, epochs: 6 } };
  const plain = await jobs.run(spec);
  expect(Object.keys(bestOf(plain))).toEqual(['accuracy', 'micro_f1', 'macro_f1']);
  expect(bestOf(plain)['micro_f1']).toBe(bestOf(plain)['accuracy']);
  expect(plain.result?.testAccuracyBest).toBe(bestOf(plain)['accuracy']);
  const weighted = (classWeights: number[]) =>
    jobs.run({ ...spec, training: { ...spec.training, classWeights } });
  const ones = await weighted(Array(coraClasses).fill(1));
  expect(modelsOf(ones)).toEqual(modelsOf(plain));
  // Cora's training nodes are twenty of each class.
  const balanced = await jobs.run({
    ...spec,
    training: { ...spec.training, balanceClasses: true },
  });
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
