import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { beforeAll, describe, expect, test } from 'vitest';
import { Standardize } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import { JobKind } from '../../src/api/gen/gnnd/v1/inference_pb.ts';
import type { Job } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobTask, LinkExclusion, MessagesAtTest } from '../../src/api/gen/gnnd/v1/links_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { runCli } from '../../src/cli/program.ts';
import { chanceGraph } from '../support/chance-graph.ts';
import { modelsOf, type SpecInit } from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import { refusalOf } from '../support/refusal.ts';
import { createTestIo } from '../unit/cli/test-io.ts';
import { folderOf, int64 } from '../unit/datasets/workbench.ts';

/** Links from a graph to metrics, and that no model can read them off its edges. */

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 2, datasets: ['cora'] });
});

const model = { type: ModelType.GRAPHSAGE, hiddenDim: 32, dropout: 0 };
const common: SpecInit = {
  task: JobTask.LINKS,
  model,
  sampling: { fanouts: [10, 10] },
  features: { standardize: Standardize.ON },
  resources: { devices: 1 },
};

function testOf(job: Job): Readonly<Record<string, number>> {
  const metrics = job.result?.testMetricsBest ?? [];
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
}

async function gnnctl(...args: string[]): Promise<string> {
  const { io, stdout, stderr } = createTestIo();
  const code = await runCli(['--address', daemon.address, ...args], io);
  if (code !== 0) throw new Error(`gnnctl ${args.join(' ')}: ${stderr()}`);
  return stdout();
}

describe('citations', () => {
  let job: Job;

  beforeAll(async () => {
    job = await daemon.train('citations', {
      ...common,
      dataset: 'cora',
      training: { epochs: 20, batchSize: 512, randomSeed: 7n },
      links: { split: { validation: 0.05, test: 0.1, randomSeed: 7n } },
    });
  });

  test('are learnt, and told by metrics that say what they are among', () => {
    const names = ['mrr@1000', 'roc_auc', 'average_precision'];
    const hits = [1, 3, 10, 20, 50, 100].map((rank) => `hits@${rank}@1000`);
    const found = testOf(job);
    expect(Object.keys(found)).toEqual([...names, ...hits]);
    expect(found['roc_auc']).toBeGreaterThan(0.7);
    expect(found['mrr@1000']).toBeGreaterThan(0.04);
    const ranked = hits.map((name) => found[name] ?? Number.NaN);
    expect(ranked).toEqual([...ranked].sort((one, other) => one - other));
    expect(job.result?.testAccuracyBest).toBe(0);
    expect(job.epochs.every(({ valAccuracy }) => valAccuracy === undefined)).toBe(true);
  });

  test('the best epoch is that of the best MRR, and losses fall', () => {
    const values = job.epochs.map(({ valMetrics }) => valMetrics[0]);
    expect(values.every((metric) => metric?.name === 'mrr@1000')).toBe(true);
    const best = Math.max(...values.map((metric) => metric?.value ?? Number.NaN));
    expect(values[job.result?.bestEpoch ?? -1]?.value).toBe(best);
    expect(job.epochs.at(-1)?.loss).toBeLessThan(job.epochs[0]?.loss ?? 0);
  });

  test('gnnctl and Prometheus have their metrics by name', async () => {
    expect(await gnnctl('job', 'get', 'citations')).toMatch(/mrr@1000/i);
    const history = await gnnctl('job', 'history', 'citations', '-o', 'jsonl');
    expect(history.split('\n')[0]).toMatch(/val_mrr@1000/);
    expect(history.split('\n')[0]).not.toMatch(/accuracy/);
    const scraped = await daemon.scrape();
    expect(scraped).toMatch(/gnnd_eval_metric\{[^}]*metric="HITS_10"[^}]*\} 0\.\d/);
  });

  test('test links may be told along those of validation, which are told as before', async () => {
    const links = {
      split: { validation: 0.05, test: 0.1, randomSeed: 7n },
      messagesAtTest: MessagesAtTest.TRAIN_VAL,
    };
    const training = { epochs: 20, batchSize: 512, randomSeed: 7n };
    const wider = await daemon.train('wider', { ...common, dataset: 'cora', training, links });
    expect(modelsOf(wider)).toEqual(modelsOf(job));
    const validationOf = ({ epochs }: Job) => epochs.map(({ valMetrics }) => valMetrics);
    expect(validationOf(wider)).toEqual(validationOf(job));
    const [found, before] = [testOf(wider), testOf(job)];
    expect(Object.keys(found)).toEqual(Object.keys(before));
    expect(found['mrr@1000']).not.toBe(before['mrr@1000']);
    // 5 % more edges, which are true ones.
    expect(found['roc_auc']).toBeGreaterThan((before['roc_auc'] ?? 1) - 0.01);
  });

  test('an inference computes rows along the edges that its test was told by', async () => {
    const rows = [];
    for (const id of ['citations', 'wider']) {
      const out = mkdtempSync(join(tmpdir(), 'gnnd-rows-'));
      await gnnctl('predict', id, '--outputs', 'embeddings', '--out', join(out, 'rows'));
      rows.push(readFileSync(join(out, 'rows', 'embeddings.npy')));
      rmSync(out, { recursive: true });
    }
    expect(rows[0]?.length).toBe(rows[1]?.length);
    expect(rows[0]?.equals(rows[1] ?? Buffer.alloc(0))).toBe(false);
  });

  test('nothing is predicted of nodes by their model', async () => {
    const predict = daemon.createJob('predicts', {
      kind: JobKind.INFERENCE,
      inference: { job: 'citations' },
    });
    const { code, fields } = await refusalOf(predict);
    expect(code).toBe(status.INVALID_ARGUMENT);
    expect(fields['spec.inference.outputs']).toMatch(/has learnt links, which predicts no node/);
    await expect(gnnctl('job', 'report', 'citations')).rejects.toThrow(/has learnt links/);
  });
});

describe('a graph by chance', () => {
  const training = { epochs: 10, batchSize: 1024, randomSeed: 1n };
  const split = { validation: 0.1, test: 0.15, randomSeed: 5n };
  let honest: Job;

  beforeAll(async () => {
    await daemon.import('chance', chanceGraph(3000, 40_000, 16));
    const spec = { ...common, dataset: 'chance', training, links: { split } };
    honest = await daemon.train('honest', spec);
  });

  test('cannot be predicted: 0.50 ± 0.02 in every evaluation and the test', () => {
    const areas = honest.epochs.flatMap(({ valMetrics }) =>
      valMetrics.filter(({ name }) => name === 'roc_auc').map(({ value }) => value),
    );
    expect(areas).toHaveLength(10);
    for (const area of [...areas, testOf(honest)['roc_auc']]) {
      expect(Math.abs((area ?? 0) - 0.5)).toBeLessThan(0.02);
    }
  });

  test('is told by its edges where those of a batch are left in', async () => {
    const links = { split, exclude: LinkExclusion.NONE };
    const leaky = await daemon.train('leaky', { ...common, dataset: 'chance', training, links });
    const [honestLoss = 0, leakyLoss = 1] = [honest, leaky].map(
      ({ epochs }) => epochs.at(-1)?.loss,
    );
    // Coins that are tossed have a loss of ln 2.
    expect(honestLoss).toBeGreaterThan(0.68);
    expect(leakyLoss).toBeLessThan(honestLoss - 0.01);
  });
});

test('what cannot be is told by field, everything at once', async () => {
  const wrong = daemon.createJob('wrong', {
    ...common,
    dataset: 'cora',
    training: { epochs: 1 },
    history: { staleSteps: 5n },
    links: {
      split: { validation: 0.6, test: 0.6 },
      negatives: { count: 0 },
    },
  });
  const { code, fields } = await refusalOf(wrong);
  expect(code).toBe(status.INVALID_ARGUMENT);
  expect(Object.keys(fields)).toEqual([
    'spec.links.split.validation',
    'spec.links.negatives.count',
    'spec.history.stale_steps',
  ]);
});

test('a graph without labels is learnt by its links, and otherwise says how', async () => {
  await daemon.import(
    'bare',
    folderOf({
      'indptr.npy': int64(...Array.from({ length: 101 }, (_, node) => 2 * node)),
      'indices.npy': int64(
        ...Array.from({ length: 100 }, (_, node) => [(node + 99) % 100, (node + 1) % 100]).flatMap(
          (ends) => ends.sort((one, other) => one - other),
        ),
      ),
    }),
  );
  const spec = { ...common, dataset: 'bare', training: { epochs: 2 } };
  const { fields } = await refusalOf(daemon.createJob('nodes', { ...spec, task: JobTask.NODES }));
  expect(fields['spec.dataset']).toMatch(/task LINKS/);
  expect(Object.keys(testOf(await daemon.train('ring', spec)))).toContain('mrr@1000');
});
