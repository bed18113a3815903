import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  ExecutorRole,
  type ExecutorTimes,
  type Job,
  JobState,
  ModelType,
  PlacementPolicy,
  Prefetch,
  StandbyPolicy,
} from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { repository, TestDaemon } from '../support/daemon.ts';

/** Extracting ahead changes when rows are read, never the model; what it hides can be seen. */

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 4 });
  await daemon.import('cora', join(repository, 'test', 'fixtures', 'cora.npz'));
});

afterAll(async () => {
  await daemon.stop();
});

const epochs = 8;
const batchesPerEpoch = 10;

interface Setting {
  readonly prefetch: Prefetch;
  readonly devices?: number;
  readonly samplers?: number;
  readonly standby?: StandbyPolicy;
  readonly staleness?: number;
  readonly batchesPerStep?: number;
  readonly hostMemoryBytes?: bigint;
  readonly capacity?: number;
}

/** Batches of some ten milliseconds, so that two threads on one core both get on. */
function spec(setting: Setting) {
  const { devices = 2, samplers = 1, standby = StandbyPolicy.OFF } = setting;
  return {
    dataset: 'cora',
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 256, dropout: 0.5, inputDropout: 0.1 },
    sampling: { fanouts: [-1, -1] },
    cache: { prefetch: setting.prefetch, ratio: 0.1 },
    training: {
      epochs,
      batchSize: 14,
      staleness: setting.staleness ?? 0,
      batchesPerStep: setting.batchesPerStep ?? 1,
      randomSeed: 11n,
      threadsPerTrainer: 1,
    },
    resources: { devices, hostMemoryBytes: setting.hostMemoryBytes ?? 0n },
    placement: { policy: PlacementPolicy.FIXED, samplers, standby },
    queue: { capacity: setting.capacity },
    timeouts: { stallMs: 4000n },
    restart: { executorRestarts: 20 },
  };
}

let serial = 0;

async function run(setting: Setting, during?: (id: string) => Promise<void>): Promise<Job> {
  serial += 1;
  const id = `prefetch-${serial}`;
  await daemon.createJob(id, spec(setting));
  await during?.(id);
  return daemon.succeeded(id);
}

/** What every epoch ended with. */
function modelsOf(job: Job): readonly string[] {
  return job.epochs.map(({ parametersSha256 }) => parametersSha256);
}

/** Series of an ended job, which had slot 0. */
async function metricsOf(job: Job): Promise<(series: string) => number> {
  let text = '';
  // Scrapes that come soon after one another get the same text.
  while (!text.includes(`uid="${job.uid}"`)) text = await daemon.scrape();
  return (series) => {
    const line = text.split('\n').find((each) => each.startsWith(`${series} `));
    if (line === undefined) throw new Error(`no series ${series}`);
    return Number(line.slice(series.length + 1));
  };
}

const ahead = 'gnnd_batches_total{job_slot="0",event="PREFETCHED"}';
const extracted = 'gnnd_stage_seconds_total{job_slot="0",device="cpu:1",stage="E"}';
const waited = 'gnnd_wait_seconds_total{job_slot="0",device="cpu:1",wait="EXTRACT"}';

async function planOf(job: Job) {
  return daemon.call(JobService.method.getJobPlan, { name: job.name });
}

describe.each([
  ['S = 0, G = 1', { staleness: 0, batchesPerStep: 1 }],
  ['S = 2, G = 3', { staleness: 2, batchesPerStep: 3 }],
] as const)('%s', (_, steps) => {
  let expected: readonly string[] = [];

  beforeAll(async () => {
    const job = await run({ ...steps, prefetch: Prefetch.OFF });
    expect((await planOf(job)).cache?.prefetch).toBe(false);
    expected = modelsOf(job);
    expect(new Set(expected).size).toBe(epochs);
    const value = await metricsOf(job);
    expect(value(ahead)).toBe(0);
    expect(value(extracted)).toBeGreaterThan(0);
    expect(value(waited)).toBeGreaterThanOrEqual(value(extracted));
  });

  test('extracting ahead changes no model', async () => {
    const job = await run({ ...steps, prefetch: Prefetch.ON });
    expect(modelsOf(job)).toEqual(expected);
    expect((await planOf(job)).cache?.prefetch).toBe(true);
    const value = await metricsOf(job);
    expect(value(ahead)).toBeGreaterThan(epochs);
    // The first batch of an epoch is never ahead of another.
    expect(value(ahead)).toBeLessThanOrEqual(epochs * (batchesPerEpoch - 1));
    // How much of it was hidden is for `npm run bench -- prefetch`: devices have one core here.
    expect(value(extracted)).toBeGreaterThan(0);
  });

  test.each([
    ['3 Trainers', { devices: 4, samplers: 1 }],
    [
      'standby Trainers that always help',
      { devices: 3, samplers: 2, standby: StandbyPolicy.ALWAYS },
    ],
    ['the smallest queue', { capacity: steps.batchesPerStep }],
  ] as const)('the same model with %s', async (_name, crew) => {
    const job = await run({ ...steps, ...crew, prefetch: Prefetch.ON });
    expect(modelsOf(job)).toEqual(expected);
  });

  test.each([
    ['SIGKILL', [ExecutorRole.TRAINER]],
    ['SIGSTOP', [ExecutorRole.TRAINER]],
    ['SIGKILL', [ExecutorRole.TRAINER, ExecutorRole.SAMPLER]],
  ] as const)('the same model when %s hits %j in mid-epoch', async (name, roles) => {
    const job = await run({ ...steps, prefetch: Prefetch.ON }, async (id) => {
      const { progress } = await daemon.until(
        id,
        ({ state, progress: seen }) =>
          state === JobState.RUNNING &&
          (seen?.epoch ?? 0) >= 1 &&
          (seen?.batchesCommitted ?? 0n) > 0n &&
          seen?.executors.length === 2,
      );
      for (const { role, pid } of progress?.executors ?? []) {
        if (roles.some((each) => each === role)) process.kill(pid, name);
      }
    });
    expect(job.attempts[0]?.exits).toHaveLength(roles.length);
    expect(modelsOf(job)).toEqual(expected);
  });
});

test('AUTO prefetches from disk, and nothing on devices of one core', async () => {
  const inMemory = await run({ prefetch: Prefetch.AUTO });
  expect((await planOf(inMemory)).cache?.prefetchExplanation).toContain('one core');
  expect((await metricsOf(inMemory))(ahead)).toBe(0);
  const onDisk = await run({ prefetch: Prefetch.AUTO, hostMemoryBytes: 1n });
  expect((await planOf(onDisk)).cache?.prefetchExplanation).toContain('disk');
  expect((await metricsOf(onDisk))(ahead)).toBeGreaterThan(0);
  expect(modelsOf(onDisk)).toEqual(modelsOf(inMemory));
});

/** Everything but extraction, which counts as far as it was waited for. */
function accountedNs(times: ExecutorTimes): number {
  const { sampleNs, markNs, copyNs, trainNs, applyNs, evaluateNs } = times;
  const { waitEnqueueNs, waitDequeueNs, waitDueNs, waitTurnNs, waitExtractNs } = times;
  const busyNs = sampleNs + markNs + copyNs + trainNs + applyNs + evaluateNs;
  return Number(busyNs + waitEnqueueNs + waitDequeueNs + waitDueNs + waitTurnNs + waitExtractNs);
}

test.each([Prefetch.OFF, Prefetch.ON])(
  'stages and waits of each executor add up to its time (prefetch %d)',
  async (prefetch) => {
    const job = await run({ prefetch });
    // Executors are gone before the last epoch's times are taken.
    const laps = job.epochs.slice(0, -1).flatMap(({ executorTimes }) => executorTimes);
    for (const role of [ExecutorRole.SAMPLER, ExecutorRole.TRAINER]) {
      const own = laps.filter((times) => times.role === role);
      expect(own.length).toBeGreaterThan(0);
      const wallNs = own.reduce((sum, { durationNs }) => sum + Number(durationNs), 0);
      const countedNs = own.reduce((sum, times) => sum + accountedNs(times), 0);
      // At the last look the stage or wait in progress is not counted yet, which may be an
      // evaluation long.
      expect(countedNs / wallNs, ExecutorRole[role]).toBeGreaterThan(0.8);
      expect(countedNs / wallNs, ExecutorRole[role]).toBeLessThan(1.02);
    }
  },
);
