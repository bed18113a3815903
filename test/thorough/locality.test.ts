import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Job } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { LocalitySchedule } from '../../src/api/gen/gnnd/v1/sampling_pb.ts';
import { Determinism } from '../../src/api/gen/gnnd/v1/training_pb.ts';
import { runCli } from '../../src/cli/program.ts';
import { expectSame, jobsOn, modelsOf, pair, type SpecInit } from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import {
  batchesPerEpoch,
  gcnSampling,
  localityOfGcn,
  localityOfSage,
  sageSampling,
} from '../support/elastic-specs.ts';
import { createTestIo } from '../unit/cli/test-io.ts';

/**
 * Neighbours whose rows are held are drawn more often. How much more is frozen with each epoch, so
 * that the model is one whoever goes on. Crews and kills are in determinism.test.ts.
 */

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 5, datasets: ['cora'] });
});

const jobs = jobsOn(() => daemon, batchesPerEpoch);

/** Share of the rows that batches wanted that caches held. */
function hitRateOf({ epochs: reports }: Job): number {
  const times = reports.flatMap(({ executorTimes }) => executorTimes);
  const hits = times.reduce((sum, { cachedRows }) => sum + Number(cachedRows), 0);
  return hits / times.reduce((sum, one) => sum + Number(one.cachedRows + one.readRows), 0);
}

describe.each([
  ['GraphSAGE', localityOfSage, sageSampling, 4],
  ['GCN, a whole hop between, each node once', localityOfGcn, gcnSampling, 8],
])('%s', (_, spec, sampling, scale) => {
  let expected: Job;

  beforeAll(async () => {
    expected = await jobs.run({ ...spec, ...pair });
  });

  test('more rows are held than without; a scale of 1 is the job without', async () => {
    const without = await jobs.run({ ...spec, sampling, ...pair });
    expect(modelsOf(without).at(-1)).not.toBe(modelsOf(expected).at(-1));
    expect(hitRateOf(expected)).toBeGreaterThan(hitRateOf(without) + 0.02);
    const one = { ...sampling, locality: { maxScale: 1 } };
    expectSame(await jobs.run({ ...spec, sampling: one, ...pair }), without);
    expect(expected.epochs.every(({ localityScale }) => localityScale === scale)).toBe(true);
    expect(without.epochs.every(({ localityScale }) => localityScale === 1)).toBe(true);
  });
});

test('scales that follow from times are recorded, and stay when the daemon dies', async () => {
  const spec: SpecInit = {
    ...localityOfSage,
    ...pair,
    training: { ...localityOfSage.training, epochs: 60, determinism: Determinism.RELAXED },
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
  await daemon.createJob(id, { ...localityOfSage, ...pair });
  await daemon.succeeded(id);
  const { io, stdout } = createTestIo();
  expect(await runCli(['--address', daemon.address, 'job', 'get', id, '-o', 'table'], io)).toBe(0);
  expect(stdout()).toMatch(/SCALE +EXTRACT +STALLED/);
  expect(await daemon.scrape()).toMatch(/gnnd_locality_scale\{job_slot="\d+"\} [1-8]/);
});
