import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ModelType, WeightDecayScope } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { repository, TestDaemon } from '../support/daemon.ts';

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start();
  await daemon.import('cora', join(repository, 'test', 'fixtures', 'cora.npz'));
});

afterAll(async () => {
  await daemon.stop();
});

test('a job on cora goes from CreateJob to a checkpoint', async () => {
  await daemon.createJob('thread', {
    dataset: 'cora',
    model: { type: ModelType.GCN, hiddenDim: 16, dropout: 0.5, inputDropout: 0.5 },
    sampling: { fanouts: [-1, -1] },
    training: {
      epochs: 30,
      batchSize: 140,
      optimizer: {
        learningRate: 0.01,
        weightDecay: 5e-4,
        weightDecayScope: WeightDecayScope.FIRST_LAYER,
      },
    },
    resources: { devices: 2 },
  });
  const job = await daemon.succeeded('thread');
  expect(job.result?.parametersSha256).toMatch(/^[0-9a-f]{64}$/);
  expect(job.epochs).toHaveLength(30);
  expect(job.result?.testAccuracyBest).toBeGreaterThan(0.7);
});
