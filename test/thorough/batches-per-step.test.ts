import { beforeAll, describe, expect, test } from 'vitest';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import type { Job } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { DeviceChoice, StandbyPolicy } from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import {
  crew,
  evaluationsOf,
  midEpoch,
  modelsOf,
  type SpecInit,
  signal,
} from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';

/** Batches a step that a job leaves open: chosen once, and the same model whoever trains it. */

let daemon: TestDaemon;
const flags = ['--sim-devices', '0,1,2,3', '--sim-memory-bytes', '1000000000'];

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 4, datasets: ['cora'], flags });
});

/** 140 batches an epoch, which four at once leave enough steps. */
const training = { epochs: 5, batchSize: 1, threadsPerTrainer: 1 };
const common: SpecInit = {
  dataset: 'cora',
  model: { type: ModelType.GRAPHSAGE, hiddenDim: 16 },
  sampling: { fanouts: [10, 5] },
  training,
  timeouts: { stallMs: 20_000n },
};
const on = (deviceKind: DeviceChoice, devices: number): SpecInit => ({
  ...common,
  resources: { deviceKind, devices },
});
const { CPU, SIM } = DeviceChoice;

async function checked(spec: SpecInit): Promise<Job> {
  return await daemon.call(JobService.method.createJob, { spec, validateOnly: true });
}

describe('are chosen at creation', () => {
  test.each([
    [CPU, 1, 1],
    [CPU, 2, 2],
    [CPU, 4, 4],
    [SIM, 1, 1],
    [SIM, 2, 2],
    [SIM, 4, 4],
  ])('kind %i, %i devices: %i', async (kind, devices, batches) => {
    const job = await checked(on(kind, devices));
    const { batchesPerStep, optimizer } = job.effectiveSpec?.training ?? {};
    expect(batchesPerStep).toBe(batches);
    expect(optimizer?.learningRate).toBeCloseTo(0.003 * Math.min(batches, Math.sqrt(8)), 12);
    expect(job.batchesPerStepChoice).toMatch(new RegExp(`^${batches}, chosen: `));
    expect(job.warnings).toEqual([]);
  });

  test('as one where the cores of all devices compute the same batch', async () => {
    const { threadsPerTrainer: _, ...open } = training;
    const job = await checked({ ...on(CPU, 4), training: open });
    expect(job.effectiveSpec?.training?.batchesPerStep).toBe(1);
    expect(job.warnings).toEqual([]);
  });

  test('and who asks for one on four is told that three will wait', async () => {
    const spec = { ...on(SIM, 4), training: { ...training, batchesPerStep: 1 } };
    const job = await checked(spec);
    expect(job.batchesPerStepChoice).toBe('1, as asked for');
    expect(job.warnings).toEqual([
      expect.stringMatching(/^3 of 4 Trainers will wait.*training\.batches_per_step: 4 would use/),
    ]);
  });
});

describe('make the same model', () => {
  let expected: Job;
  /** The spec as it was settled, for other crews. */
  let settled: SpecInit;

  beforeAll(async () => {
    expected = await daemon.train('automatic', on(CPU, 4));
    const { batchesPerStep, optimizer } = expected.effectiveSpec?.training ?? {};
    expect(batchesPerStep).toBe(4);
    settled = {
      ...common,
      training: {
        ...training,
        batchesPerStep: batchesPerStep ?? 0,
        optimizer: { learningRate: optimizer?.learningRate ?? 0 },
      },
    };
  });

  const expectSame = (job: Job) => {
    expect(modelsOf(job)).toEqual(modelsOf(expected));
    expect(evaluationsOf(job)).toEqual(evaluationsOf(expected));
    expect(job.result?.parametersSha256).toBe(expected.result?.parametersSha256);
  };

  test('on simulated devices, where it is as automatic', async () => {
    const job = await daemon.train('simulated', on(SIM, 4));
    expect(job.effectiveSpec?.training).toEqual(expected.effectiveSpec?.training);
    expectSame(job);
  });

  test.each<[string, SpecInit]>([
    ['1 Sampler and 3 Trainers', crew(1, 3)],
    ['2 Samplers and 2 Trainers, standby ALWAYS', crew(2, 2, StandbyPolicy.ALWAYS)],
    ['one device', { resources: { devices: 1 } }],
  ])('by %s', async (name, other) => {
    const id = name.toLowerCase().replace(/[^a-z]+/g, '-');
    expectSame(await daemon.train(`crew${id}`.replace(/-$/, ''), { ...settled, ...other }));
  });

  test('when a Trainer is killed', async () => {
    await daemon.createJob('killed', { ...settled, ...crew(1, 1) });
    signal((await midEpoch(daemon, 'killed')).get(ExecutorRole.TRAINER), 'SIGKILL');
    const job = await daemon.succeeded('killed');
    expect(job.attempts[0]?.executorRestarts).toBe(1);
    expectSame(job);
  });

  test('when the daemon is killed, and the next one goes on', async () => {
    const spec = { ...on(CPU, 4), checkpoint: { everySteps: 5n } };
    await daemon.createJob('interrupted', spec);
    await daemon.until('interrupted', ({ progress }) => (progress?.epoch ?? 0) >= 2);
    daemon.client.close();
    await daemon.kill('SIGKILL');
    daemon = await TestDaemon.start({ folder: daemon.folder, cpuDevices: 4, flags });
    const job = await daemon.succeeded('interrupted');
    expect(job.attempts[1]?.resumed?.image).toMatch(/image$/);
    expect(job.batchesPerStepChoice).toBe(expected.batchesPerStepChoice);
    expectSame(job);
  });
});

test('a plan and a running job count the Trainers that wait', async () => {
  const asked = { ...common, training: { ...training, batchesPerStep: 1 }, ...crew(1, 3) };
  await daemon.train('waits', asked);
  const plan = await daemon.call(JobService.method.getJobPlan, { name: 'jobs/waits' });
  const job = await daemon.call(JobService.method.getJob, { name: 'jobs/waits' });
  for (const { warnings } of [plan, job]) {
    expect(warnings).toContainEqual(
      expect.stringMatching(/^2 of 3 Trainers will wait.*batches_per_step: 3 would use them/),
    );
  }
  expect(plan.batchesPerStepChoice).toBe('1, as asked for');
});
