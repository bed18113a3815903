import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { Determinism } from '../../src/api/gen/gnnd/v1/training_pb.ts';
import {
  crew,
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

/**
 * Embeddings that batches keep for later ones change what is computed, and are a function of the
 * job's version: the model is one, whoever samples, trains, dies or goes on.
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
const epochs = 12;

const common: SpecInit = {
  dataset: 'cora',
  timeouts: { stallMs: 2000n },
  restart: { executorRestarts: 100 },
};
const training = { batchSize: 4, randomSeed: 7n, epochs };

/** Bytes that a cached row of cora takes of the memory in which embeddings lie. */
const featureBytes = 1433 * 4;

/** Embeddings take a few rows of the cache. */
const sage: SpecInit = {
  ...common,
  model: { type: ModelType.GRAPHSAGE, hiddenDim: 16, dropout: 0.5 },
  sampling: { fanouts: [10, 5] },
  cache: { ratio: 0.2 },
  training,
  history: { staleSteps: 20n, gradientShare: 0.9, maxBytes: 60_000n },
};

/** Several levels, batches of a step that see the same, a buffer that goes round; one row stays. */
const deep: SpecInit = {
  ...common,
  model: { type: ModelType.GATV2, hiddenDim: 16, heads: 2, dropout: 0.3 },
  sampling: { fanouts: [5, 4, 3] },
  cache: { ratio: 0.003 },
  training: { ...training, batchesPerStep: 3 },
  history: {
    staleSteps: 6n,
    gradientShare: 0.8,
    startStep: 10n,
    levels: [1, 2],
    maxBytes: 40_000n,
  },
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

/** What the Trainers' caches hold at the end, and what they have given up. */
function bordersOf(job: Job): readonly (readonly [number, number])[] {
  // Where several epochs end within one look, the first of them reports all times.
  const told = job.epochs.filter(({ executorTimes }) => executorTimes.length > 0);
  return (told.at(-1)?.executorTimes ?? [])
    .filter(({ role }) => role !== SAMPLER)
    .map(({ cacheBorder, cacheGivenUpRows }) => [Number(cacheBorder), Number(cacheGivenUpRows)]);
}

function expectSame(job: Job, expected: Job): void {
  expect(modelsOf(job)).toEqual(modelsOf(expected));
  expect(evaluationsOf(job)).toEqual(evaluationsOf(expected));
}

describe.each([
  ['one level, a step a batch', sage],
  ['all levels, three batches a step, a small buffer', deep],
])('%s', (_, spec) => {
  let expected: Job;

  beforeAll(async () => {
    expected = await run({ ...spec, ...pair });
  });

  test('history changes the model; without a share or an age it is the plain one', async () => {
    const { history, ...plain } = { ...spec, ...pair };
    const without = await run(plain);
    expect(modelsOf(without).at(-1)).not.toBe(modelsOf(expected).at(-1));
    expectSame(await run({ ...plain, history: { ...history, gradientShare: 0 } }), without);
    expectSame(await run({ ...plain, history: { ...history, staleSteps: 0n } }), without);
    // A history that begins after the last step.
    expectSame(await run({ ...plain, history: { ...history, startStep: 100_000n } }), without);
  });

  test('the same job again is the same model', async () => {
    expectSame(await run({ ...spec, ...pair }), expected);
  });

  test.each(Object.entries(otherCrews))('%s train the same model', async (_name, other) => {
    expectSame(await run({ ...spec, ...other }), expected);
  });

  test.each([
    ['a Trainer', [TRAINER]],
    ['both executors', [SAMPLER, TRAINER]],
  ] as const)('kill -9 of %s in mid-epoch changes nothing', async (_name, roles) => {
    const job = await run({ ...spec, ...pair }, async (id) => {
      const pids = await midEpoch(daemon, id);
      for (const role of roles) signal(pids.get(role), 'SIGKILL');
    });
    expect(job.attempts).toHaveLength(1);
    expect(job.attempts[0]?.executorRestarts).toBe(roles.length);
    expectSame(job, expected);
  });

  test('a job goes on from an image with the history that it had', async () => {
    jobs += 1;
    const id = `job-${jobs}`;
    const wanted = { ...spec, ...pair, checkpoint: { everySteps: 7n, keepLast: 3 } };
    await daemon.createJob(id, wanted);
    await daemon.until(id, ({ uid }) => {
      const images = join(daemon.folder, 'state', 'jobs', uid, 'images');
      // An image of a later epoch: a busy host's newest image may be older than the progress.
      const later = (name: string) => /^epoch-0*[1-9].*\.image$/.test(name);
      return existsSync(images) && readdirSync(images).some(later);
    });
    daemon.client.close();
    await daemon.kill('SIGKILL');
    daemon = await TestDaemon.start({ folder: daemon.folder, cpuDevices: 5 });
    const job = await daemon.succeeded(id);
    expect(job.attempts.at(-1)?.resumed?.epochs).toBeGreaterThan(0);
    expectSame(job, expected);
  });
});

test('embeddings displace cached features, and no bit depends on the border', async () => {
  const expected = await run({ ...deep, ...pair, cache: { ratio: 0 } });
  expect(bordersOf(expected)).toEqual([[0, 0]]);
  for (const [ratio, rows] of [
    [0.001, 2],
    [0.003, 8],
    [0.2, 541],
  ] as const) {
    const job = await run({ ...deep, ...crew(1, 2), cache: { ratio } });
    expectSame(job, expected);
    // Embeddings took all of their 40,000 bytes; both Trainers share one memory.
    const left = Math.floor((Math.max(40_000, rows * featureBytes) - 40_000) / featureBytes);
    expect(bordersOf(job)).toEqual([
      [left, rows - left],
      [left, rows - left],
    ]);
    const times = job.epochs.flatMap(({ executorTimes }) => executorTimes);
    expect(times.some(({ cachedRows }) => cachedRows > 0n)).toBe(true);
  }
});

test('relaxed, each of several Trainers has a history of its own, also with a delay', async () => {
  const { history } = sage;
  const relaxed = { ...training, staleness: 2, determinism: Determinism.RELAXED };
  const small = { ratio: 0.01 };
  const job = await run({ ...sage, ...crew(1, 3), training: relaxed, history, cache: small });
  expect(job.state).toBe(JobState.SUCCEEDED);
  for (const [border, givenUp] of bordersOf(job)) {
    expect(border + givenUp).toBe(27);
    expect(givenUp).toBeGreaterThan(0);
  }
});
