import { beforeAll, expect, test } from 'vitest';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import { Prefetch } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import type { Job } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { PlacementPolicy, StandbyPolicy } from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import { modelsOf } from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';

/**
 * Extracting ahead changes when rows are read, never the model. Crews and kills with it are in
 * determinism.test.ts, what it hides in `npm run bench -- prefetch`.
 */

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 4, datasets: ['cora'] });
});

const epochs = 5;
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
  };
}

let serial = 0;

function run(setting: Setting): Promise<Job> {
  serial += 1;
  return daemon.train(`prefetch-${serial}`, spec(setting));
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

const steps = { staleness: 2, batchesPerStep: 3 };

test('extracting ahead changes no model', async () => {
  const off = await run({ ...steps, prefetch: Prefetch.OFF });
  expect((await planOf(off)).cache?.prefetch).toBe(false);
  expect(new Set(modelsOf(off)).size).toBe(epochs);
  const before = await metricsOf(off);
  expect(before(ahead)).toBe(0);
  expect(before(extracted)).toBeGreaterThan(0);
  // Without, all of it is waited for.
  expect(before(waited)).toBeGreaterThanOrEqual(before(extracted));

  const on = await run({ ...steps, prefetch: Prefetch.ON });
  expect(modelsOf(on)).toEqual(modelsOf(off));
  expect((await planOf(on)).cache?.prefetch).toBe(true);
  const value = await metricsOf(on);
  expect(value(ahead)).toBeGreaterThan(epochs);
  // The first batch of an epoch is never ahead of another.
  expect(value(ahead)).toBeLessThanOrEqual(epochs * (batchesPerEpoch - 1));
  expect(value(extracted)).toBeGreaterThan(0);
  for (const job of [off, on]) expectTimesByRole(job);

  const capacity = steps.batchesPerStep;
  const smallest = await run({ ...steps, prefetch: Prefetch.ON, capacity });
  expect(modelsOf(smallest), 'the smallest queue').toEqual(modelsOf(off));
});

/**
 * Each executor tells the time of what it does, and none of what it does not. That it adds up is
 * shown by native/test/core/executor/accounts_test.cc on a clock of its own, and measured by
 * `npm run bench -- accounts`.
 */
function expectTimesByRole(job: Job): void {
  const laps = job.epochs.flatMap(({ executorTimes }) => executorTimes);
  const of = (role: ExecutorRole) => laps.filter((times) => times.role === role);
  // Once an epoch, but that one look may see the ends of several, which the last one's times tell.
  for (const role of [ExecutorRole.SAMPLER, ExecutorRole.TRAINER]) {
    expect(of(role).length).toBeGreaterThan(0);
    expect(of(role).length).toBeLessThanOrEqual(epochs);
  }
  for (const { durationNs } of laps) expect(durationNs).toBeGreaterThan(0n);
  // The look that sees an epoch's end may have counted all batches of the next one: sums tell.
  const total = (role: ExecutorRole, key: 'sampleNs' | 'trainNs' | 'applyNs' | 'extractNs') =>
    of(role).reduce((sum, each) => sum + each[key], 0n);
  expect(total(ExecutorRole.SAMPLER, 'sampleNs')).toBeGreaterThan(0n);
  for (const key of ['trainNs', 'applyNs', 'extractNs'] as const) {
    expect(total(ExecutorRole.TRAINER, key), key).toBeGreaterThan(0n);
  }
  for (const others of of(ExecutorRole.SAMPLER)) {
    expect([others.extractNs, others.trainNs, others.applyNs]).toEqual([0n, 0n, 0n]);
    expect([others.waitDequeueNs, others.waitDueNs, others.waitExtractNs]).toEqual([0n, 0n, 0n]);
  }
  for (const others of of(ExecutorRole.TRAINER)) {
    expect([others.sampleNs, others.copyNs, others.waitEnqueueNs]).toEqual([0n, 0n, 0n]);
  }
  expect(of(ExecutorRole.TRAINER).some(({ evaluateNs }) => evaluateNs > 0n)).toBe(true);
}

test('AUTO prefetches from disk, and not where training keeps all cores busy', async () => {
  const inMemory = await run({ prefetch: Prefetch.AUTO });
  expect((await planOf(inMemory)).cache?.prefetchExplanation).toContain('busy');
  expect((await metricsOf(inMemory))(ahead)).toBe(0);
  const onDisk = await run({ prefetch: Prefetch.AUTO, hostMemoryBytes: 1n });
  expect((await planOf(onDisk)).cache?.prefetchExplanation).toContain('disk');
  expect((await metricsOf(onDisk))(ahead)).toBeGreaterThan(0);
  expect(modelsOf(onDisk)).toEqual(modelsOf(inMemory));
});
