import { status } from '@grpc/grpc-js';
import { beforeAll, expect, test } from 'vitest';
import { EvaluationMethod } from '../../src/api/gen/gnnd/v1/evaluation_pb.ts';
import type { Job } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import {
  PlacementPolicy,
  StandbyPolicy,
  TopologySource,
} from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import { SamplingAlgorithm } from '../../src/api/gen/gnnd/v1/sampling_pb.ts';
import { Precision } from '../../src/api/gen/gnnd/v1/training_pb.ts';
import { evaluationsOf, modelsOf, type SpecInit } from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import { refusalOf } from '../support/refusal.ts';

/**
 * Where a graph lies changes no model: in memory, or topology and features in their files, with
 * what is read asked for ahead. How many reads that takes is shown by
 * native/test/core/executor/reading_ahead_test.cc, what it gives by `npm run bench -- huge`.
 */

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 4, datasets: ['cora'] });
});

const inMemory: SpecInit = {
  dataset: 'cora',
  model: { type: ModelType.GRAPHSAGE, hiddenDim: 32, dropout: 0.5 },
  sampling: { fanouts: [10, 5] },
  cache: { ratio: 0.1 },
  training: { epochs: 3, batchSize: 14, staleness: 1, batchesPerStep: 2, randomSeed: 5n },
  evaluation: { method: EvaluationMethod.SAMPLED },
  resources: { devices: 4, topology: TopologySource.MEMORY },
  placement: { policy: PlacementPolicy.FIXED, samplers: 2, standby: StandbyPolicy.ALWAYS },
};
/** One byte of memory for features: all of them count as read from disk. */
const onDisk: SpecInit = {
  ...inMemory,
  resources: { devices: 4, topology: TopologySource.FILE, hostMemoryBytes: 1n },
};

let serial = 0;

function run(spec: SpecInit): Promise<Job> {
  serial += 1;
  return daemon.train(`on-disk-${serial}`, spec);
}

test.each([
  ['GRAPHSAGE, aggregated as it is read', {}],
  ['GRAPHSAGE, copied for its input dropout', { model: { inputDropout: 0.1 } }],
  ['GCN', { model: { type: ModelType.GCN } }],
  ['bfloat16', { training: { precision: Precision.BFLOAT16 } }],
  ['without a cache', { cache: { ratio: 0 } }],
] as const)('files and memory make one model: %s', async (_, changes) => {
  const changed = (spec: SpecInit): SpecInit => ({
    ...spec,
    model: { ...spec.model, ...('model' in changes ? changes.model : {}) },
    training: { ...spec.training, ...('training' in changes ? changes.training : {}) },
    cache: { ...spec.cache, ...('cache' in changes ? changes.cache : {}) },
  });
  const memory = await run(changed(inMemory));
  const disk = await run(changed(onDisk));
  expect(modelsOf(disk)).toEqual(modelsOf(memory));
  expect(new Set(modelsOf(disk)).size).toBe(3);
  expect(evaluationsOf(disk)).toEqual(evaluationsOf(memory));
});

test('a job says where its graph is, before it is made and afterwards', async () => {
  const small = await run({ ...inMemory, resources: { devices: 4 } });
  expect(small.memory).toMatchObject({
    topology: TopologySource.MEMORY,
    featuresOnDisk: false,
    readAheadBytes: 0n,
  });
  const createJob = JobService.method.createJob;
  const preview = await daemon.call(createJob, { spec: onDisk, validateOnly: true });
  const job = await run(onDisk);
  for (const { memory } of [preview, job]) {
    expect(memory).toMatchObject({ topology: TopologySource.FILE, featuresOnDisk: true });
    expect(memory?.featuresBytes).toBe(2708n * 1433n * 4n);
    expect(memory?.topologyBytes).toBe(2709n * 8n + 10556n * 4n);
    expect(memory?.readAheadBytes).toBeGreaterThan(0n);
    expect(memory?.parts.find(({ field }) => field === 'cache.ratio')?.bytes).toBeGreaterThan(0n);
    expect(memory?.atMostBytes).toBeGreaterThan(memory?.surelyBytes ?? 0n);
  }
  const said = daemon.logs.split('\n').filter((line) => line.includes('attempt.memory'));
  expect(said.at(-1)).toContain('FILE');
});

test('a job that cannot fit the host is refused by field', async () => {
  const wide = {
    ...inMemory,
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 4096, layers: 8 },
    sampling: { fanouts: Array(8).fill(2) },
    training: { ...inMemory.training, batchSize: 1, batchesPerStep: 64, staleness: 8 },
  };
  const refusal = await refusalOf(daemon.createJob('wide', wide));
  expect(refusal).toMatchObject({ code: status.INVALID_ARGUMENT, reason: 'SPEC_INVALID' });
  expect(refusal.fields).toEqual({
    'spec.model.hidden_dim': expect.stringMatching(/at least .* of the host's .* GiB/),
  });
});

test('tables to sample by edge weight are in memory', async () => {
  const weighted = {
    ...onDisk,
    sampling: { algorithm: SamplingAlgorithm.KHOP_WEIGHTED, fanouts: [10, 5] },
  };
  const refusal = await refusalOf(daemon.createJob('weighted', weighted));
  expect(refusal.fields['spec.resources.topology']).toContain('KHOP_WEIGHTED');
});
