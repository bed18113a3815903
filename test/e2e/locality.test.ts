import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import type { Job } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { Expansion, LocalitySchedule } from '../../src/api/gen/gnnd/v1/sampling_pb.ts';
import { Determinism } from '../../src/api/gen/gnnd/v1/training_pb.ts';
import { runCli } from '../../src/cli/program.ts';
import {
  evaluationsOf,
  expectEveryBatchOnce,
  midEpoch,
  modelsOf,
  otherCrews,
  pair,
  type SpecInit,
  signal,
} from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import { createTestIo } from '../unit/cli/test-io.ts';

/**
 * Neighbours whose rows are held are drawn more often. How much more is frozen with each epoch, so
 * that the model is one whoever samples, dies or goes on.
 */

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 5, datasets: ['cora'] });
});

afterAll(async () => {
  await daemon.stop();
});

const { SAMPLER, TRAINER } = ExecutorRole;
const batchesPerEpoch = 35;
// Enough that a kill, which follows a look of the daemon, comes before the end.
const epochs = 24;

const common: SpecInit = {
  dataset: 'cora',
  cache: { ratio: 0.1 },
  timeouts: { stallMs: 2000n },
  restart: { executorRestarts: 100 },
  training: { batchSize: 4, randomSeed: 7n, epochs, staleness: 1 },
};

const sageSampling = { fanouts: [3, 2] };
const sage: SpecInit = {
  ...common,
  model: { type: ModelType.GRAPHSAGE, hiddenDim: 16, dropout: 0.5 },
  sampling: { ...sageSampling, locality: { maxScale: 4, hopNodes: 300 } },
};
/** A whole hop between, and each node once. */
const gcnSampling = { fanouts: [3, -1, 2], expansion: Expansion.NEW };
const gcn: SpecInit = {
  ...common,
  model: { type: ModelType.GCN, hiddenDim: 16, dropout: 0.5 },
  sampling: { ...gcnSampling, locality: { maxScale: 8, ratio: 0.3, hopNodes: 300 } },
};

let jobs = 0;

async function run(spec: SpecInit, disturb?: (id: string) => Promise<unknown>): Promise<Job> {
  jobs += 1;
  const id = `job-${jobs}`;
  await daemon.createJob(id, spec);
  await disturb?.(id);
  const job = await daemon.succeeded(id);
  expectEveryBatchOnce(job, batchesPerEpoch);
  return job;
}

function expectSame(job: Job, expected: Job): void {
  expect(modelsOf(job)).toEqual(modelsOf(expected));
  expect(evaluationsOf(job)).toEqual(evaluationsOf(expected));
}

/** Share of the rows that batches wanted that caches held. */
function hitRateOf({ epochs: reports }: Job): number {
  const times = reports.flatMap(({ executorTimes }) => executorTimes);
  const hits = times.reduce((sum, { cachedRows }) => sum + Number(cachedRows), 0);
  return hits / times.reduce((sum, one) => sum + Number(one.cachedRows + one.readRows), 0);
}

describe.each([
  ['GraphSAGE', sage, sageSampling, 4],
  ['GCN, a whole hop between, each node once', gcn, gcnSampling, 8],
])('%s', (_, spec, sampling, scale) => {
  let expected: Job;

  beforeAll(async () => {
    expected = await run({ ...spec, ...pair });
  });

  test('more rows are held than without; a scale of 1 is the job without', async () => {
    const without = await run({ ...spec, sampling, ...pair });
    expect(modelsOf(without).at(-1)).not.toBe(modelsOf(expected).at(-1));
    expect(hitRateOf(expected)).toBeGreaterThan(hitRateOf(without) + 0.02);
    const one = { ...sampling, locality: { maxScale: 1 } };
    expectSame(await run({ ...spec, sampling: one, ...pair }), without);
    expect(expected.epochs.map(({ localityScale }) => localityScale)).toEqual(
      Array(epochs).fill(scale),
    );
    expect(without.epochs.every(({ localityScale }) => localityScale === 1)).toBe(true);
  });

  test.each(Object.entries(otherCrews))('%s train the same model', async (_name, other) => {
    expectSame(await run({ ...spec, ...other }), expected);
  });

  test.each([
    ['a Sampler', [SAMPLER]],
    ['both executors', [SAMPLER, TRAINER]],
  ] as const)('kill -9 of %s in mid-epoch changes nothing', async (_name, roles) => {
    const job = await run({ ...spec, ...pair }, async (id) => {
      const pids = await midEpoch(daemon, id);
      for (const role of roles) signal(pids.get(role), 'SIGKILL');
    });
    expect(job.attempts[0]?.executorRestarts).toBe(roles.length);
    expectSame(job, expected);
  });
});

test('scales that follow from times are recorded, and stay when the daemon dies', async () => {
  const spec: SpecInit = {
    ...sage,
    ...pair,
    training: { ...common.training, epochs: 60, determinism: Determinism.RELAXED },
    sampling: { fanouts: [3, 2], locality: { maxScale: 8, schedule: LocalitySchedule.ADAPTIVE } },
    checkpoint: { everySteps: 20n, keepLast: 3 },
  };
  await daemon.createJob('adaptive', spec);
  const before = await daemon.until('adaptive', ({ uid, progress }) => {
    const images = join(daemon.folder, 'state', 'jobs', uid, 'images');
    const later = (name: string) => /^epoch-0*[2-9].*\.image$/.test(name);
    return (progress?.epoch ?? 0) >= 4 && existsSync(images) && readdirSync(images).some(later);
  });
  const known = before.epochs.map(({ localityScale }) => localityScale);
  daemon.client.close();
  await daemon.kill('SIGKILL');
  daemon = await TestDaemon.start({ folder: daemon.folder, cpuDevices: 5 });
  const job = await daemon.succeeded('adaptive');
  const scales = job.epochs.map(({ localityScale }) => localityScale);
  expect(scales.slice(0, known.length)).toEqual(known);
  expect(scales[0]).toBe(1);
  // Algorithm 2 doubles a scale, halves it back towards the one before, or keeps it.
  scales.slice(1).forEach((scale, index) => {
    expect(scale).toBeLessThanOrEqual(2 * (scales[index] ?? 0));
    expect(scale).toBeLessThanOrEqual(8);
  });
  expect(job.epochs.every(({ extractNs, trainNs }) => extractNs > 0n && trainNs > 0n)).toBe(true);
});

test('gnnctl and metrics tell the scale of each epoch, and what extraction took', async () => {
  const id = 'shown';
  await daemon.createJob(id, { ...sage, ...pair });
  await daemon.succeeded(id);
  const { io, stdout } = createTestIo();
  expect(await runCli(['--address', daemon.address, 'job', 'get', id, '-o', 'table'], io)).toBe(0);
  expect(stdout()).toMatch(/SCALE +EXTRACT +STALLED/);
  expect(await daemon.scrape()).toMatch(/gnnd_locality_scale\{job_slot="\d+"\} [1-8]/);
});
