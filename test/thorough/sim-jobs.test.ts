import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { EvaluationMethod } from '../../src/api/gen/gnnd/v1/evaluation_pb.ts';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import { Standardize } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import {
  InferenceFormat,
  InferenceOutput,
  JobKind,
} from '../../src/api/gen/gnnd/v1/inference_pb.ts';
import { JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import {
  DeviceChoice,
  PlacementPolicy,
  StandbyPolicy,
} from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import { SamplingAlgorithm } from '../../src/api/gen/gnnd/v1/sampling_pb.ts';
import { Precision } from '../../src/api/gen/gnnd/v1/training_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import {
  crew,
  expectEveryBatchOnce,
  expectSame,
  jobsOn,
  midEpoch,
  modelsOf,
  pair,
  type SpecInit,
  signal,
} from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import { links, linksOfDegrees, linksOfJointNegatives } from '../support/elastic-specs.ts';

/**
 * Whole jobs on simulated devices (docs/gpu.md): their Samplers sample with the kernels of GPUs,
 * which run as fibers, and the models are bit for bit those of CPU devices.
 */

const simulated = ['--sim-devices', '0,1,2', '--sim-memory-bytes', '200000000'];
let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 2, datasets: ['cora'], flags: simulated });
});
const batchesPerEpoch = 7;
const common: SpecInit = {
  dataset: 'cora',
  model: { type: ModelType.GRAPHSAGE, hiddenDim: 16, dropout: 0.5 },
  sampling: { fanouts: [10, 5] },
  training: { batchSize: 20, epochs: 4, randomSeed: 7n },
  timeouts: { stallMs: 5000n },
};
const on = (spec: SpecInit, where: SpecInit): SpecInit => ({ ...spec, ...where });
/** A crew of simulated devices. */
function sim(members: SpecInit): SpecInit {
  return { ...members, resources: { ...members.resources, deviceKind: DeviceChoice.SIM } };
}

/** As many batches as of nodes. */
const ofLinks = (spec: SpecInit): SpecInit => ({
  ...spec,
  training: { randomSeed: 7n, batchSize: 650, epochs: 3, staleness: 1, batchesPerStep: 2 },
  timeouts: { stallMs: 5000n },
});

const noCache = { trainerRows: 0n, rowBytes: 0n, reservedBytes: 0n };

const { run } = jobsOn(() => daemon, batchesPerEpoch);

describe('a job on simulated devices makes the models of CPU devices', () => {
  const { KHOP_UNIFORM, LABOR, RANDOM_WALK } = SamplingAlgorithm;
  const specs: Readonly<Record<string, SpecInit>> = {
    'uniform, with a cache': { ...common, cache: { ratio: 0.2 } },
    GCN: { ...common, model: { type: ModelType.GCN, hiddenDim: 16 } },
    'LABOR, standardised, two batches a step': {
      ...common,
      sampling: { algorithm: LABOR, fanouts: [10, 5] },
      features: { standardize: Standardize.ON },
      training: { ...common.training, batchesPerStep: 2 },
    },
    'random walks': {
      ...common,
      model: { type: ModelType.PINSAGE, hiddenDim: 16 },
      sampling: { algorithm: RANDOM_WALK },
    },
    'GATv2, rows and products in bfloat16': {
      ...common,
      model: { type: ModelType.GATV2, hiddenDim: 16, heads: 2, attentionDropout: 0.3 },
      training: { ...common.training, precision: Precision.BFLOAT16 },
    },
    'history beside a cache, two batches a step': {
      ...common,
      cache: { ratio: 0.2 },
      training: { ...common.training, batchesPerStep: 2 },
      history: { staleSteps: 3n, gradientShare: 0.9 },
    },
    'links, a scalar product': ofLinks(links),
    'links of a perceptron, joint negatives, LABOR': ofLinks(linksOfJointNegatives),
    'links of a matrix, negatives by degree, GCN': ofLinks(linksOfDegrees),
    'whole rows': { ...common, sampling: { algorithm: KHOP_UNIFORM, fanouts: [-1, 5] } },
  };

  test.each(Object.entries(specs))('%s', async (_, spec) => {
    const expected = await run(on(spec, pair));
    const models = modelsOf(expected);
    expect(new Set(models).size).toBe(models.length);
    expectSame(await run(on(spec, sim(pair))), expected);
  });
});

describe('evaluations of a Trainer on a simulated device', () => {
  /** The job, and how many chunks there were, in all and computed by its device. */
  async function chunksOf(of: TestDaemon, id: string, spec: SpecInit) {
    const job = await of.train(id, on(spec, sim(pair)));
    const text = await of.scrape();
    const slot = slotOf(text, id);
    const count = (name: string, labels = '') => {
      const series = new RegExp(`^${name}\\{[^}]*job_slot="${slot}"[^}]*${labels}\\} (\\S+)$`, 'm');
      return Number(series.exec(text)?.[1]);
    };
    return {
      job,
      chunks: count('gnnd_evaluated_chunks_total'),
      onDevice: count('gnnd_device_evaluated_chunks_total', 'device="sim:1"'),
      seconds: count('gnnd_device_stage_seconds_total', 'device="sim:1",stage="EVALUATE"'),
    };
  }

  test.each([
    ['exact', EvaluationMethod.EXACT],
    ['sampled', EvaluationMethod.SAMPLED],
  ])('are computed there, %s ones too, with the metrics of CPU devices', async (name, method) => {
    const spec = { ...common, evaluation: { everyEpochs: 1, method } };
    const expected = await run(on(spec, pair));
    const { job, chunks, onDevice, seconds } = await chunksOf(daemon, `evaluated-${name}`, spec);
    expectSame(job, expected);
    expect(chunks).toBeGreaterThan(0);
    expect(onDevice).toBe(chunks);
    expect(seconds).toBeGreaterThan(0);
  });

  test('are those of the host where it has no room for them, which its log says', async () => {
    const flags = ['--sim-devices', '0,1', '--sim-memory-bytes', '48000000'];
    const small = await TestDaemon.start({ cpuDevices: 2, datasets: ['cora'], flags });
    const spec = { ...common, cache: { ratio: 0 } };
    const expected = await run(on(spec, pair));
    const { job, chunks, onDevice } = await chunksOf(small, 'no-room', spec);
    expectSame(job, expected);
    expect(chunks).toBeGreaterThan(0);
    expect(onDevice).toBe(0);
    await small.stop();
  });
});

test('an inference on a simulated device writes the rows of one on the CPU', async () => {
  await daemon.train('predicts', on(common, pair));
  const digests = async (id: string, resources: SpecInit['resources']) => {
    const outputs = [InferenceOutput.LOGITS];
    const inference = { job: 'predicts', outputs, formats: [InferenceFormat.NPY] };
    const job = await daemon.train(id, { kind: JobKind.INFERENCE, inference, resources });
    const folder = job.result?.predictions?.folder ?? '';
    return createHash('sha256')
      .update(readFileSync(join(folder, 'logits.npy')))
      .digest('hex');
  };
  const expected = await digests('predicted-cpu', { devices: 1 });
  const where = { deviceKind: DeviceChoice.SIM, devices: 2 };
  expect(await digests('predicted-sim', where)).toBe(expected);
  const text = await daemon.scrape();
  const slot = slotOf(text, 'predicted-sim');
  const series = new RegExp(
    `^gnnd_device_evaluated_chunks_total\\{[^}]*job_slot="${slot}"[^}]*\\} (\\d+)$`,
    'gm',
  );
  const chunks = [...text.matchAll(series)].map(([, count]) => Number(count));
  expect(chunks.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0);
});

describe('whoever works on it', () => {
  let models: readonly string[];

  beforeAll(async () => {
    models = modelsOf(await run(on(common, pair)));
  });

  const split = { policy: PlacementPolicy.FIXED, samplers: 1, standby: StandbyPolicy.OFF };
  const crews: Readonly<Record<string, SpecInit>> = {
    '2 Samplers and 1 Trainer': sim(crew(2, 1)),
    'standby Trainers ALWAYS': sim(crew(2, 1, StandbyPolicy.ALWAYS)),
    'one device alternating': sim({ resources: { devices: 1 } }),
    'products in TF32, which are float32 where no GPU is': {
      ...sim(pair),
      training: { ...common.training, precision: Precision.TF32 },
    },
    'as the plan has it': sim({ resources: { devices: 3 } }),
    'a simulated Sampler, a Trainer of the CPU': {
      resources: { deviceNames: ['sim:1', 'cpu:0'] },
      placement: split,
    },
    'a Sampler of the CPU': { resources: { deviceNames: ['cpu:0', 'sim:1'] }, placement: split },
  };

  test.each(Object.entries(crews))('%s', async (name, members) => {
    // Where the CPU only samples, nobody asks for its bits; simulated Trainers have the same here.
    expect(modelsOf(await run(on(common, members))), name).toEqual(models);
  });

  test('and whoever dies', async () => {
    const long = { ...common, training: { ...common.training, epochs: 40 } };
    const expected = modelsOf(await run(on(long, pair)));
    const job = await run(on(long, sim(pair)), async (id) => {
      signal((await midEpoch(daemon, id)).get(ExecutorRole.SAMPLER), 'SIGKILL');
    });
    expect(job.attempts.flatMap(({ exits }) => exits)).not.toEqual([]);
    expect(modelsOf(job)).toEqual(expected);
  });
});

function slotOf(text: string, id: string): string {
  const info = new RegExp(`^gnnd_job_info\\{[^}]*gnnd_job="${id}"[^}]*\\}`, 'm').exec(text)?.[0];
  return /job_slot="(\d+)"/.exec(info ?? '')?.[1] ?? 'none';
}

function told(text: string, device: string, name: string, label: string): number {
  const series = new RegExp(`^${name}\\{[^}]*device="${device}",${label}\\} (\\d+)$`, 'm');
  return Number(series.exec(text)?.[1]);
}

test('what executors hold of devices, and what is copied, is told by device', async () => {
  const long = { ...common, training: { ...common.training, epochs: 40 } };
  await daemon.createJob('held', on(long, sim(crew(2, 1))));
  await daemon.until('held', ({ progress }) => (progress?.epoch ?? 0) >= 2);
  const text = await daemon.scrape();
  await daemon.succeeded('held');
  for (const device of ['sim:0', 'sim:1']) {
    const held = (name: string, label: string) => told(text, device, name, label);
    // 64-bit row starts and 32-bit neighbours.
    const topologyBytes = 8 * (2708 + 1) + 4 * 10_556;
    expect(held('gnnd_device_memory_bytes', 'use="TOPOLOGY"')).toBeGreaterThanOrEqual(
      topologyBytes,
    );
    expect(held('gnnd_device_memory_bytes', 'use="WORKSPACE"')).toBeGreaterThan(0);
    expect(held('gnnd_device_copy_bytes_total', 'direction="IN"')).toBeGreaterThan(topologyBytes);
    expect(held('gnnd_device_copy_bytes_total', 'direction="OUT"')).toBeGreaterThan(0);
  }
  // The Trainer is on the third one.
  for (const use of ['CACHE', 'WORKSPACE', 'MODEL']) {
    expect(told(text, 'sim:2', 'gnnd_device_memory_bytes', `use="${use}"`), use).toBeGreaterThan(0);
  }
});

describe("rows in the host's memory that devices read by themselves", () => {
  const rows = 2708;
  const rowBytes = 4 * 1433;
  const spec: SpecInit = {
    ...common,
    cache: { ratio: 0.2 },
    training: { ...common.training, epochs: 12 },
  };
  let models: readonly string[];

  beforeAll(async () => {
    models = modelsOf(await run(on(spec, pair)));
  });

  /** The job's models and cache plan, and how the Trainer's device came by rows. */
  async function seen(of: TestDaemon, id: string, resources: SpecInit['resources']) {
    const members = sim(pair);
    const where = { ...members, resources: { ...members.resources, ...resources } };
    await of.createJob(id, on(spec, where));
    await of.until(id, ({ progress }) => (progress?.epoch ?? 0) >= 2);
    const text = await of.scrape();
    const way = (name: string) =>
      told(text, 'sim:1', 'gnnd_device_feature_rows_total', `way="${name}"`);
    const ways = { CACHE: way('CACHE'), BUS: way('BUS'), STAGED: way('STAGED') };
    const registered = /^gnnd_device_registered_bytes\{[^}]*device="sim:1"\} (\d+)$/m.exec(text);
    const job = await of.succeeded(id);
    expectEveryBatchOnce(job, batchesPerEpoch);
    const { cache } = await of.call(JobService.method.getJobPlan, { name: `jobs/${id}` });
    return { models: modelsOf(job), cache, ways, registeredBytes: Number(registered?.[1]) };
  }

  test('are all of them where the host has room: none is staged', async () => {
    const { cache, ways, registeredBytes, ...job } = await seen(daemon, 'pinned', {});
    expect(job.models).toEqual(models);
    expect(cache).toMatchObject({ trainerRows: 541n, pinnedRows: BigInt(rows) });
    expect(ways.STAGED).toBe(0);
    expect(ways.CACHE).toBeGreaterThan(0);
    expect(ways.BUS).toBeGreaterThan(0);
    expect(registeredBytes).toBeGreaterThan(rows * rowBytes);
  });

  test('are as many as the spec says, and the host brings the others', async () => {
    // In whole pages, the first of which is a header.
    const pages = 1 + Math.ceil((1000 * rowBytes) / 4096);
    const asked = { pinnedFeaturesBytes: BigInt(4096 * pages) };
    const { cache, ways, ...job } = await seen(daemon, 'pinned-some', asked);
    expect(job.models).toEqual(models);
    expect(cache?.pinnedRows).toBe(1000n);
    expect(ways.BUS).toBeGreaterThan(0);
    expect(ways.STAGED).toBeGreaterThan(0);
  });

  test('are none where features may not take the memory, which the plan says', async () => {
    const { cache, ways, ...job } = await seen(daemon, 'pinned-none', { hostMemoryBytes: 8192n });
    expect(job.models).toEqual(models);
    expect(cache?.pinnedRows).toBe(0n);
    expect(cache?.pinnedExplanation).toMatch(/^none: .*of the host's memory/);
    expect(ways.BUS).toBe(0);
    expect(ways.STAGED).toBeGreaterThan(0);
  });

  test('are brought by the host where a device refuses to register them', async () => {
    // A Trainer's first is the tier.
    const env = { GNND_SIM_FAULT: 'register:1' };
    const refusing = await TestDaemon.start({
      ...{ cpuDevices: 2, datasets: ['cora'], flags: simulated, env },
    });
    const { cache, ways, ...job } = await seen(refusing, 'refused', {});
    expect(job.models).toEqual(models);
    expect(cache?.pinnedRows).toBe(BigInt(rows));
    // The split is FIXED: no trial said so.
    expect(cache?.pinnedExplanation).toMatch(/the device refused to register them/);
    expect(ways.BUS).toBe(0);
    expect(ways.STAGED).toBeGreaterThan(0);
    await refusing.stop();
  });
});

describe('a simulated device', () => {
  async function withFault(env: Readonly<Record<string, string>>, flags: readonly string[]) {
    return await TestDaemon.start({ cpuDevices: 2, datasets: ['cora'], flags, env });
  }

  /** Whatever strikes it once, the job's models are those of CPU devices. */
  async function survives(fault: string, reason: Reason) {
    const folder = mkdtempSync(join(tmpdir(), 'gnnd-sim-'));
    const once = join(folder, 'struck');
    const wounded = await withFault(
      { GNND_SIM_FAULT: fault, GNND_SIM_FAULT_ONCE: once },
      simulated,
    );
    const spec = { ...common, restart: { maxAttempts: 3 } };
    const expected = modelsOf(await run(on(common, pair)));
    const job = await wounded.train('struck', on(spec, sim(pair)));
    expect(modelsOf(job)).toEqual(expected);
    const exits = job.attempts.flatMap(({ exits: of }) => of.map(({ reason: why }) => why));
    expect(exits).toContain(reason);
    await wounded.stop();
    rmSync(folder, { recursive: true });
    return job;
  }

  test('that is lost in mid-epoch costs an attempt and no bit', async () => {
    const job = await survives('lost:600', Reason.DEVICE_LOST);
    expect(job.attempts.map(({ endReason }) => endReason)).toContain(Reason.DEVICE_LOST);
  });

  test.each([
    ['a device that is lost', 'torch-error:709:60', Reason.DEVICE_LOST],
    ['an illegal address', 'torch-error:700:60', Reason.DEVICE_FAILED],
    ['a launch that fails', 'torch-error:719:60', Reason.DEVICE_FAILED],
  ])('where PyTorch meets %s costs a process and no bit', async (_, fault, reason) => {
    await survives(fault, reason);
  });

  test('where PyTorch finds no memory ends its job with sizes and the fields to turn', async () => {
    const full = await withFault({ GNND_SIM_FAULT: 'torch-memory:60' }, simulated);
    await full.createJob('full', on(common, sim(pair)));
    const job = await full.until('full', ({ state }) => state === JobState.FAILED);
    expect(job.reason).toBe(Reason.DEVICE_OUT_OF_MEMORY);
    expect(job.message).toMatch(/trainer@sim:1.*torch: .*of a budget of \d+.*bytes.*are free/);
    expect(job.message).toMatch(/resources\.device_memory_bytes.*batch_size.*cache\.ratio/);
    await full.stop();
  });

  test('has room for what PyTorch takes beside a cache of automatic size', async () => {
    const memoryBytes = 24_000_000;
    const reserveBytes = 8_000_000;
    const narrow = await withFault({ GNND_SIM_RESERVE: String(reserveBytes) }, [
      ...['--sim-devices', '0,1', '--sim-memory-bytes', String(memoryBytes)],
    ]);
    const spec = { ...common, cache: { ratio: -1 } };
    const job = await narrow.train('narrow', on(spec, sim(pair)));
    expect(modelsOf(job)).toEqual(modelsOf(await run(on(common, pair))));
    const { cache } = await narrow.call(JobService.method.getJobPlan, { name: 'jobs/narrow' });
    const { trainerRows, rowBytes, reservedBytes } = { ...noCache, ...cache };
    expect(Number(reservedBytes)).toBeGreaterThanOrEqual(reserveBytes);
    expect(cache?.explanation).toContain(`${reservedBytes} bytes reserved for PyTorch`);
    // All rows would fit the device, not beside that.
    expect(Number(2708n * rowBytes)).toBeLessThan(memoryBytes);
    expect(trainerRows).toBeGreaterThan(0n);
    expect(Number(trainerRows * rowBytes)).toBeLessThan(memoryBytes - reserveBytes);
    await narrow.stop();
  });

  test('with too little memory ends its job with a sentence about it', async () => {
    // An eighth of it each.
    const devices = ['--sim-devices', '0,0,0,0,0,0,0,0', '--sim-memory-bytes', '1048576'];
    const small = await withFault({}, devices);
    const large = { sampling: { fanouts: [25, 25] }, training: { epochs: 1, batchSize: 140 } };
    await small.createJob('small', on({ ...common, ...large }, sim(pair)));
    const job = await small.until('small', ({ state }) => state === JobState.FAILED);
    expect(job.reason).toBe(Reason.DEVICE_OUT_OF_MEMORY);
    expect(job.message).toMatch(/(sampler|trainer)@sim:\d.*budget of 131072/);
    await small.stop();
  });
});
