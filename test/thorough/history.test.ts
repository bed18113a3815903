import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { Determinism } from '../../src/api/gen/gnnd/v1/training_pb.ts';
import { crew, expectSame, jobsOn, modelsOf, pair } from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import {
  batchesPerEpoch,
  historyOfAllLevels,
  historyOfOneLevel,
  training,
} from '../support/elastic-specs.ts';

/**
 * Embeddings that batches keep for later ones change what is computed, and are a function of the
 * job's version: the model is one whoever goes on. Crews and kills are in determinism.test.ts.
 */

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 5, datasets: ['cora'] });
});

const jobs = jobsOn(() => daemon, batchesPerEpoch);

/** Bytes that a cached row of cora takes of the memory in which embeddings lie. */
const featureBytes = 1433 * 4;

/** What the Trainers' caches hold at the end, and what they have given up. */
function bordersOf(job: Job): readonly (readonly [number, number])[] {
  // Where several epochs end within one look, the first of them reports all times.
  const told = job.epochs.filter(({ executorTimes }) => executorTimes.length > 0);
  return (told.at(-1)?.executorTimes ?? [])
    .filter(({ role }) => role !== ExecutorRole.SAMPLER)
    .map(({ cacheBorder, cacheGivenUpRows }) => [Number(cacheBorder), Number(cacheGivenUpRows)]);
}

describe.each([
  ['one level, a step a batch', historyOfOneLevel],
  ['all levels, three batches a step, a small buffer', historyOfAllLevels],
])('%s', (name, spec) => {
  let expected: Job;

  beforeAll(async () => {
    expected = await jobs.run({ ...spec, ...pair });
  });

  test('history changes the model; without a share or an age it is the plain one', async () => {
    const { history, ...plain } = { ...spec, ...pair };
    const without = await jobs.run(plain);
    expect(modelsOf(without).at(-1)).not.toBe(modelsOf(expected).at(-1));
    expectSame(await jobs.run({ ...plain, history: { ...history, gradientShare: 0 } }), without);
    expectSame(await jobs.run({ ...plain, history: { ...history, staleSteps: 0n } }), without);
    // A history that begins after the last step.
    expectSame(await jobs.run({ ...plain, history: { ...history, startStep: 100_000n } }), without);
  });

  test('the same job again is the same model', async () => {
    expectSame(await jobs.run({ ...spec, ...pair }), expected);
  });

  test('a job goes on from an image with the history that it had', async () => {
    const id = `resumed-${name.slice(0, 3)}`;
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
  const expected = await jobs.run({ ...historyOfAllLevels, ...pair, cache: { ratio: 0 } });
  expect(bordersOf(expected)).toEqual([[0, 0]]);
  for (const [ratio, rows] of [
    [0.001, 2],
    [0.003, 8],
    [0.2, 541],
  ] as const) {
    const job = await jobs.run({ ...historyOfAllLevels, ...crew(1, 2), cache: { ratio } });
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
  const { history } = historyOfOneLevel;
  const relaxed = { ...training, epochs: 12, staleness: 2, determinism: Determinism.RELAXED };
  const small = { ratio: 0.01 };
  const job = await jobs.run({
    ...historyOfOneLevel,
    ...crew(1, 3),
    training: relaxed,
    history,
    cache: small,
  });
  expect(job.state).toBe(JobState.SUCCEEDED);
  for (const [border, givenUp] of bordersOf(job)) {
    expect(border + givenUp).toBe(27);
    expect(givenUp).toBeGreaterThan(0);
  }
});
