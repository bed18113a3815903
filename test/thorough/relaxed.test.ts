import { readFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { PlacementPolicy } from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import { Determinism } from '../../src/api/gen/gnnd/v1/training_pb.ts';
import type { SpecInit } from '../support/crews.ts';
import { executorPids, TestDaemon } from '../support/daemon.ts';

/** `determinism: RELAXED`: what stays promised, and that it is another mode at all. */

const epochs = 40;
const batches = 14;
/** More than two standard deviations, for two trainings that are tested on 1,000 nodes. */
const accuracyTolerance = 0.04;

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 4, datasets: ['cora'] });
});

function spec(determinism: Determinism | undefined): SpecInit {
  return {
    dataset: 'cora',
    model: { type: ModelType.GCN, hiddenDim: 16, dropout: 0.5 },
    sampling: { fanouts: [-1, -1] },
    training: {
      ...{ epochs, batchSize: 10, staleness: 1, threadsPerTrainer: 1, randomSeed: 3n },
      optimizer: { learningRate: 0.01, weightDecay: 5e-4 },
      ...(determinism === undefined ? {} : { determinism }),
    },
    resources: { devices: 3 },
    placement: { policy: PlacementPolicy.FIXED, samplers: 1 },
  };
}

/** Trains, and looks into the environment of the executors. */
async function run(id: string, determinism?: Determinism) {
  await daemon.createJob(id, spec(determinism));
  let environments: readonly string[] = [];
  await daemon.until(id, ({ state }) => {
    const pids = executorPids(daemon.pid);
    if (pids.length > 0 && state === JobState.RUNNING) environments = pids.map(environmentOf);
    return environments.some((text) => text !== '');
  });
  return { job: await daemon.succeeded(id), environments: environments.filter((text) => text) };
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8');
  } catch {
    return '';
  }
}

function expectEveryBatchOnce(job: Job): void {
  expect(job.epochs.map(({ epoch }) => epoch)).toEqual([...Array(epochs).keys()]);
  for (const report of job.epochs) {
    expect(Number(report.batches)).toBe(batches);
    expect(report.ledgerDigest).toMatch(/^[0-9a-f]{16}$/);
  }
}

test('a relaxed job leaves MKL its choice, commits each batch once, learns as well', async () => {
  const strict = await run('strict');
  const relaxed = await run('relaxed', Determinism.RELAXED);
  expect(strict.job.effectiveSpec?.training?.determinism).toBe(Determinism.STRICT);
  expect(relaxed.job.effectiveSpec?.training?.determinism).toBe(Determinism.RELAXED);
  for (const environment of strict.environments) expect(environment).toMatch(/MKL_CBWR=/);
  for (const environment of relaxed.environments) {
    expect(environment).not.toMatch(/MKL_CBWR=/);
    expect(environment).toMatch(/MKL_NUM_THREADS=1\0/);
  }
  expectEveryBatchOnce(relaxed.job);
  // The same batches in the same order.
  const digests = (job: Job) => job.epochs.map(({ ledgerDigest }) => ledgerDigest);
  expect(digests(relaxed.job)).toEqual(digests(strict.job));
  const accuracy = (job: Job) => job.result?.testAccuracyBest ?? 0;
  expect(accuracy(strict.job)).toBeGreaterThan(0.75);
  expect(Math.abs(accuracy(relaxed.job) - accuracy(strict.job))).toBeLessThan(accuracyTolerance);
});
