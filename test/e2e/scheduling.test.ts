import type { MessageInitShape } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { beforeAll, describe, expect, test } from 'vitest';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import { DeviceState } from '../../src/api/gen/gnnd/v1/host_service_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { type JobPlan, PlanWay } from '../../src/api/gen/gnnd/v1/job_plan_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import {
  PlacementPolicy,
  type PlacementSpecSchema,
  type ResourcesSpecSchema,
  StandbyPolicy,
} from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import { TestDaemon } from '../support/daemon.ts';
import { refusalOf } from '../support/refusal.ts';

/** How devices are split on the real system, what the plan says of it, and who then trained. */

const deviceCount = 4;
const epochs = 4;
const endless = 1_000_000;
const batchesPerEpoch = 35;
let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: deviceCount, datasets: ['cora'] });
});

function spec(
  placement: MessageInitShape<typeof PlacementSpecSchema>,
  resources: MessageInitShape<typeof ResourcesSpecSchema>,
  epochsAsked = epochs,
) {
  return {
    dataset: 'cora',
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 16 },
    sampling: { fanouts: [10, 5] },
    training: { epochs: epochsAsked, batchSize: 4, staleness: 2, threadsPerTrainer: 1 },
    placement,
    resources,
  };
}

function planOf(id: string): Promise<JobPlan> {
  return daemon.call(JobService.method.getJobPlan, { name: `jobs/${id}` });
}

async function run(id: string, job: ReturnType<typeof spec>): Promise<{ job: Job; plan: JobPlan }> {
  await daemon.createJob(id, job);
  return { job: await daemon.succeeded(id), plan: await planOf(id) };
}

/** Roles by device, Samplers first, as `SAMPLER cpu:0`. */
function seatsOf(plan: JobPlan): readonly string[] {
  return plan.executors.map(({ role, device }) => `${ExecutorRole[role]} ${device}`);
}

/** Batches of the whole job by the device that trained them. */
function trainedBy(job: Job): Readonly<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (const { batchesByDevice } of job.epochs) {
    for (const [device, batches] of Object.entries(batchesByDevice)) {
      sums[device] = (sums[device] ?? 0) + Number(batches);
    }
  }
  return Object.fromEntries(Object.entries(sums).filter(([, batches]) => batches > 0));
}

function choiceOf(plan: JobPlan, policy: PlacementPolicy) {
  const choice = plan.choices.find((candidate) => candidate.policy === policy);
  if (choice === undefined) throw new Error(`no choice of ${PlacementPolicy[policy]}`);
  return choice;
}

describe('AUTO', () => {
  const { PAPER, MINMAX, AUTO } = PlacementPolicy;

  test.each([2, 3, 4])('splits %i devices by times it measured', async (devices) => {
    const { job, plan } = await run(`auto-${devices}`, spec({ policy: AUTO }, { devices }));
    expect(plan.estimated).toBe(false);
    expect(plan.samplerBatchNs).toBeGreaterThan(0n);
    expect(plan.trainerBatchNs).toBeGreaterThan(0n);
    expect(plan.standbyBatchNs).toBeGreaterThan(0n);
    const k = Number(plan.trainerBatchNs) / Number(plan.samplerBatchNs);
    expect(plan.k / k).toBeCloseTo(1, 6);

    const paper = choiceOf(plan, PAPER);
    const ideal = Math.ceil(devices / (k + 1));
    expect(paper.samplers).toBe(Math.min(Math.max(ideal, 1), devices - 1));
    for (const { samplers, trainers, batchNs } of [paper, choiceOf(plan, MINMAX)]) {
      expect(samplers + trainers).toBe(devices);
      expect(batchNs).toBeGreaterThan(0n);
    }

    const [followed, ...others] = plan.ways;
    if (followed === undefined) throw new Error('nothing was predicted');
    expect(followed.way).toBe(plan.way);
    expect(new Set(plan.ways.map(({ way }) => way))).toEqual(
      new Set([PlanWay.SWITCHING, PlanWay.SPLIT, PlanWay.SHARING]),
    );
    // Only a clear lead makes it leave the split with switching.
    for (const { batchNs } of others) {
      expect(Number(followed.batchNs)).toBeLessThanOrEqual(Number(batchNs) * 1.06);
    }
    // S = 2: three steps are in flight.
    const computing = followed.way === PlanWay.SPLIT ? followed.trainers : devices;
    expect(followed.batchesAtOnce).toBe(Math.min(computing, 3));
    const roles = plan.executors.map(({ role }) => role);
    const count = (role: ExecutorRole) => roles.filter((each) => each === role).length;
    expect(count(ExecutorRole.SAMPLER)).toBe(followed.samplers);
    expect(count(ExecutorRole.TRAINER)).toBe(followed.trainers);
    expect(count(ExecutorRole.STANDBY)).toBe(
      followed.way === PlanWay.SPLIT ? 0 : followed.samplers,
    );
    expect(plan.explanation).toContain('predicted');
    // The predicted time stands beside the measured time.
    expect(plan.measurement?.epochs).toBeGreaterThan(0);
    expect(plan.measurement?.batchNs).toBeGreaterThan(0n);
    expect(job.pace).toMatchObject({
      way: followed.way,
      predictedBatchNs: followed.batchNs,
      measured: { batchNs: plan.measurement?.batchNs },
    });
    expect(job.epochs).toHaveLength(epochs);
  });

  test.each([2, 3])('FIXED to all %i devices: each samples and trains in turn', async (devices) => {
    const placement = { policy: PlacementPolicy.FIXED, samplers: devices };
    const { job, plan } = await run(`sharing-${devices}`, spec(placement, { devices }));
    const { SAMPLER, STANDBY } = ExecutorRole;
    expect(plan.executors.map(({ role }) => role)).toEqual([
      ...new Array<ExecutorRole>(devices).fill(SAMPLER),
      ...new Array<ExecutorRole>(devices).fill(STANDBY),
    ]);
    expect(plan.way).toBe(PlanWay.SHARING);
    const trained = Object.values(trainedBy(job)).reduce((sum, batches) => sum + batches, 0);
    expect(trained).toBe(epochs * batchesPerEpoch);
    const split = { policy: PlacementPolicy.FIXED, samplers: 1, standby: StandbyPolicy.OFF };
    const other = await run(`split-${devices}`, spec(split, { devices }));
    expect(job.result?.parametersSha256).toBe(other.job.result?.parametersSha256);
  });

  test('says that its plan is a guess until it has measured', async () => {
    const placement = { policy: PlacementPolicy.FIXED, samplers: 1, standby: StandbyPolicy.OFF };
    await daemon.createJob('holder', spec(placement, { devices: deviceCount }, endless));
    await daemon.until('holder', ({ state }) => state === JobState.RUNNING);
    await daemon.createJob('guessed', spec({ policy: AUTO }, { devices: 2 }));
    const before = await planOf('guessed');
    expect(before.estimated).toBe(true);
    expect([before.samplerBatchNs, before.trainerBatchNs, before.k]).toEqual([0n, 0n, 0]);
    expect(before.executors.length).toBeGreaterThanOrEqual(2);
    expect(before.explanation).toContain('calibration has yet to measure');
    expect(before.queueCapacity).toBeGreaterThan(0);
    expect(before.parameterCount).toBe(2n * 1433n * 16n + 16n + 2n * 16n * 7n + 7n);

    await daemon.call(JobService.method.cancelJob, { name: 'jobs/holder' });
    await daemon.succeeded('guessed');
    const after = await planOf('guessed');
    expect(after.estimated).toBe(false);
    expect(after.samplerBatchNs).toBeGreaterThan(0n);
    expect(after.parameterCount).toBe(before.parameterCount);
  });

  test('with standby AUTO ends with every batch trained once', async () => {
    const placement = { policy: AUTO, standby: StandbyPolicy.AUTO };
    const { job, plan } = await run('standby-auto', spec(placement, { devices: 2 }));
    expect(plan.explanation).toContain('standby');
    const trained = Object.values(trainedBy(job)).reduce((sum, batches) => sum + batches, 0);
    expect(trained).toBe(epochs * batchesPerEpoch);
  });
});

describe('FIXED', () => {
  const { FIXED } = PlacementPolicy;

  test('gets the split it asks for, and only Trainers train', async () => {
    const placement = { policy: FIXED, samplers: 3, standby: StandbyPolicy.OFF };
    const { job, plan } = await run('fixed', spec(placement, { devices: 4 }));
    expect(plan.policy).toBe(FIXED);
    expect(seatsOf(plan)).toEqual([
      'SAMPLER cpu:0',
      'SAMPLER cpu:1',
      'SAMPLER cpu:2',
      'TRAINER cpu:3',
    ]);
    expect(plan.explanation).toContain('as the job asks');
    expect(trainedBy(job)).toEqual({ 'cpu:3': epochs * batchesPerEpoch });
  });

  test('gets the devices it names', async () => {
    const placement = { policy: FIXED, samplers: 1, standby: StandbyPolicy.OFF };
    const names = { deviceNames: ['cpu:2', 'cpu:1'] };
    const { job, plan } = await run('named', spec(placement, names));
    expect(
      seatsOf(plan)
        .map((seat) => seat.split(' ')[1])
        .sort(),
    ).toEqual(['cpu:1', 'cpu:2']);
    const trainer = seatsOf(plan)
      .find((seat) => seat.startsWith('TRAINER '))
      ?.split(' ')[1];
    expect(trainedBy(job)).toEqual({ [trainer ?? '']: epochs * batchesPerEpoch });
  });

  test('with standby ALWAYS lets the device of the Sampler train, too', async () => {
    const placement = { policy: FIXED, samplers: 1, standby: StandbyPolicy.ALWAYS };
    const { job, plan } = await run('always', spec(placement, { devices: 2 }));
    expect(seatsOf(plan)).toEqual(['SAMPLER cpu:0', 'TRAINER cpu:1', 'STANDBY cpu:0']);
    expect(Object.keys(trainedBy(job)).sort()).toEqual(['cpu:0', 'cpu:1']);
  });
});

test('one device alternates: it samples, and it trains all batches', async () => {
  const { job, plan } = await run('alone', spec({}, { devices: 1 }));
  expect(seatsOf(plan)).toEqual(['SAMPLER cpu:0', 'STANDBY cpu:0']);
  expect(plan.explanation).toContain('alternates');
  expect(trainedBy(job)).toEqual({ 'cpu:0': epochs * batchesPerEpoch });
});

test('two jobs that fit beside each other run at once, on devices of their own', async () => {
  const long = spec({}, { devices: 2 }, endless);
  for (const id of ['left', 'right']) await daemon.createJob(id, long);
  for (const id of ['left', 'right']) {
    await daemon.until(id, ({ state }) => state === JobState.RUNNING);
  }
  const { devices } = await daemon.devices();
  expect(devices.map(({ state }) => state)).toEqual(Array(4).fill(DeviceState.ALLOCATED));
  expect(devices.filter(({ job }) => job === 'jobs/left')).toHaveLength(2);
  expect(devices.filter(({ job }) => job === 'jobs/right')).toHaveLength(2);
  for (const id of ['left', 'right']) {
    await daemon.call(JobService.method.cancelJob, { name: `jobs/${id}` });
    await daemon.until(id, ({ state }) => state === JobState.CANCELLED);
  }
  const free = (await daemon.devices()).devices.map(({ state }) => state);
  expect(free).toEqual(Array(4).fill(DeviceState.FREE));
});

test('more devices than there are is refused, with the field', async () => {
  const call = daemon.createJob('too-many', spec({}, { devices: deviceCount + 1 }));
  const { code, fields } = await refusalOf(call);
  expect(code).toBe(status.INVALID_ARGUMENT);
  expect(fields).toEqual({ 'spec.resources.devices': expect.stringContaining('from 1 to 4') });
});
