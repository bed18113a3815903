import { beforeAll, describe, expect, test } from 'vitest';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import { CachePolicy } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import type { Job } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { PlacementPolicy, StandbyPolicy } from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import { SamplingAlgorithm } from '../../src/api/gen/gnnd/v1/sampling_pb.ts';
import { executorPids, TestDaemon } from '../support/daemon.ts';
import { until } from '../support/until.ts';

/** Caching moves rows, never bits: with any policy and any size the same model comes out. */

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 3, datasets: ['cora'] });
});

const numNodes = 2708;
const rowBytes = 1433 * 4;

interface CacheFields {
  readonly policy?: CachePolicy;
  readonly presampleEpochs?: number;
  readonly ratio?: number;
  readonly standbyRatio?: number;
}

function spec(
  cache: CacheFields,
  { fanouts = [5, 3], standby = StandbyPolicy.OFF, deviceMemoryBytes = 0n } = {},
) {
  return {
    dataset: 'cora',
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 8, dropout: 0.3 },
    sampling: { fanouts },
    cache,
    training: { epochs: 3, batchSize: 10, staleness: 1, randomSeed: 3n, threadsPerTrainer: 1 },
    resources: { devices: 2, deviceMemoryBytes },
    placement: { policy: PlacementPolicy.FIXED, samplers: 1, standby },
  };
}

let serial = 0;

function run(...given: Parameters<typeof spec>): Promise<Job> {
  serial += 1;
  return daemon.train(`cache-${serial}`, spec(...given));
}

function planOf(job: Job) {
  return daemon.call(JobService.method.getJobPlan, { name: job.name });
}

/** Rows and bytes that an ended job looked for, by tier and result; it had slot 0. */
async function lookups(job: Job): Promise<ReadonlyMap<string, number>> {
  let text = '';
  // Scrapes that come soon after one another get the same text.
  while (!text.includes(`uid="${job.uid}"`)) text = await daemon.scrape();
  const found = text.matchAll(
    /^gnnd_cache_(rows|bytes)_total\{job_slot="0",tier="(\w+)",result="(\w+)"\} (\d+)$/gm,
  );
  return new Map(
    [...found].map(([, unit, tier, result, n]) => [`${unit} ${tier} ${result}`, Number(n)]),
  );
}

/** Rows are gathered one by one, or read while they are aggregated. */
const ways = { gathered: [5, 3], aggregated: [2, 1] } as const;
const without = new Map<keyof typeof ways, Job>();
/** What the one without a cache that gathers rows looked for. */
let off: ReadonlyMap<string, number>;

beforeAll(async () => {
  for (const way of ['aggregated', 'gathered'] as const) {
    without.set(way, await run({ ratio: 0 }, { fanouts: [...ways[way]] }));
  }
  off = await lookups(without.get('gathered') ?? expect.unreachable());
});

// Each policy, each size and each way in one of them.
test.each([
  ['COMBINED', 0.1, 'gathered'],
  ['PRESC', 0.001, 'aggregated'],
  ['PROBABILITY', 0.5, 'gathered'],
  ['DEGREE', 1, 'aggregated'],
  ['RANDOM', 0.1, 'aggregated'],
  ['OPTIMAL', 1, 'gathered'],
] as const)(
  'the order of %s and a cache of %d of all rows change nothing but where rows come from: %s',
  async (name, ratio, way) => {
    const policy = CachePolicy[name];
    const job = await run({ policy, ratio }, { fanouts: [...ways[way]] });
    const expected = without.get(way)?.result?.parametersSha256;
    expect(expected).toMatch(/^[0-9a-f]{64}$/);
    expect(job.result?.parametersSha256).toBe(expected);
    const cache = (await planOf(job)).cache;
    expect(cache?.policy).toBe(policy);
    expect(Number(cache?.trainerRows)).toBe(Math.floor(ratio * numNodes));
    const read = await lookups(job);
    expect(read.get('rows DEVICE HIT')).toBeGreaterThan(0);
    if (ratio === 1) expect(read.get('rows DEVICE MISS')).toBe(0);
  },
);

test('samples of any algorithm may be cached', async () => {
  const sampling = { algorithm: SamplingAlgorithm.RANDOM_WALK };
  const model = { type: ModelType.GRAPHSAGE, layers: 2, hiddenDim: 8 };
  const hashes: (string | undefined)[] = [];
  for (const ratio of [0, 0.2]) {
    const id = `walks-${ratio * 10}`;
    const job = await daemon.train(id, { ...spec({ ratio }), sampling, model });
    hashes.push(job.result?.parametersSha256);
    if (ratio > 0) expect((await lookups(job)).get('rows DEVICE HIT')).toBeGreaterThan(0);
  }
  expect(hashes[1]).toBe(hashes[0]);
});

test('standby Trainers have a cache of their own size, and records serve both', async () => {
  const job = await run({ ratio: 0.2, standbyRatio: 0.6 }, { standby: StandbyPolicy.ALWAYS });
  expect(job.result?.parametersSha256).toBe(without.get('gathered')?.result?.parametersSha256);
  const cache = (await planOf(job)).cache;
  expect(Number(cache?.trainerRows)).toBe(Math.floor(0.2 * numNodes));
  expect(Number(cache?.standbyRows)).toBe(Math.floor(0.6 * numNodes));
});

describe('a job with a cache of its own order', () => {
  let job: Job;
  let on: ReadonlyMap<string, number>;

  beforeAll(async () => {
    job = await run({ ratio: 0.3, presampleEpochs: 3 });
    on = await lookups(job);
  });

  test('tiers add up: each input row is looked for once, moved bytes are the misses', () => {
    const rows = (tier: string, result: string) => on.get(`rows ${tier} ${result}`) ?? 0;
    const hitRate = rows('DEVICE', 'HIT') / (rows('DEVICE', 'HIT') + rows('DEVICE', 'MISS'));
    expect(hitRate).toBeGreaterThan(0.4);
    expect(off.get('rows DEVICE HIT')).toBe(0);
    // The same batches, so the same rows.
    expect(off.get('rows HOST HIT')).toBe(rows('DEVICE', 'HIT') + rows('HOST', 'HIT'));
    expect(on.get('bytes HOST HIT')).toBe(rows('HOST', 'HIT') * rowBytes);
    const missed = (1 - hitRate) * (off.get('bytes HOST HIT') ?? 0);
    expect(on.get('bytes HOST HIT')).toBeCloseTo(missed, 0);
    expect(rows('DISK', 'HIT')).toBe(0);
  });

  test('an order is made once and serves later jobs', async () => {
    const first = (await planOf(job)).cache;
    const second = (await planOf(await run({ ratio: 0.9, presampleEpochs: 3 }))).cache;
    expect(Number(first?.rankMs)).toBeGreaterThan(0);
    expect(Number(second?.rankMs)).toBe(0);
  });
});

test('an automatic ratio is none without a budget, and fills one that is given', async () => {
  const none = (await planOf(await run({}))).cache;
  expect(Number(none?.trainerRows)).toBe(0);
  expect(none?.explanation).toContain('same memory');
  // Beside some 80 MB that an evaluation takes of it.
  const budget = 104n * 1024n * 1024n;
  const job = await run({}, { deviceMemoryBytes: budget });
  const cache = (await planOf(job)).cache;
  const rows = Number(cache?.trainerRows);
  expect(rows, cache?.explanation).toBeGreaterThan(0);
  expect(rows * rowBytes).toBeLessThan(Number(budget));
});

test('a job that is cancelled while nodes are ranked leaves nothing running', async () => {
  await daemon.createJob('cancelled', {
    ...spec({ policy: CachePolicy.OPTIMAL, ratio: 0.5 }),
    training: { epochs: 1_000_000, batchSize: 1, threadsPerTrainer: 1, randomSeed: 99n },
  });
  await daemon.until('cancelled', ({ startTime }) => startTime !== undefined);
  await daemon.call(JobService.method.cancelJob, { name: 'jobs/cancelled' });
  await until(async () => (await daemon.job('cancelled')).endTime);
  expect(executorPids(daemon.pid)).toEqual([]);
});

test('executors say what share of their rows the cache held', async () => {
  await daemon.createJob('shown', {
    ...spec({ ratio: 1 }),
    training: { epochs: 2000, batchSize: 10, threadsPerTrainer: 1 },
  });
  const job = await daemon.until('shown', ({ progress }) =>
    (progress?.executors ?? []).some(({ cacheHitRate }) => cacheHitRate > 0),
  );
  const trainer = job.progress?.executors.find(({ role }) => role === ExecutorRole.TRAINER);
  expect(trainer?.cacheHitRate).toBe(1);
  await daemon.call(JobService.method.cancelJob, { name: 'jobs/shown' });
});
