import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { DeviceChoice } from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import {
  crew,
  evaluationsOf,
  jobsOn,
  midEpoch,
  modelsOf,
  pair,
  type SpecInit,
} from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import { batchesPerEpoch, linksOf } from '../support/elastic-specs.ts';

/**
 * Elastic determinism of links: each head with each kind of negatives makes the same parameters
 * after every epoch, and the same metrics, by each of these crews and through each of these
 * disturbances. docs/links.md has the table.
 */

const start = { cpuDevices: 4, flags: ['--sim-devices', '0,1', '--sim-memory-bytes', '200000000'] };
let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ ...start, datasets: ['cora'] });
});

const { SAMPLER, TRAINER } = ExecutorRole;
const jobs = jobsOn(() => daemon, batchesPerEpoch);

function hasImage({ uid }: Job): boolean {
  const folder = join(daemon.folder, 'state', 'jobs', uid, 'images');
  return existsSync(folder) && readdirSync(folder).some((name) => name.endsWith('.image'));
}

/** Kills the daemon when the job has an image, and starts another. */
async function killDaemon(id: string): Promise<void> {
  await midEpoch(daemon, id);
  await daemon.until(id, hasImage);
  daemon.client.close();
  await daemon.kill('SIGKILL');
  daemon = await TestDaemon.start({ ...start, folder: daemon.folder });
}

async function suspendAndResume(id: string): Promise<void> {
  const named = { name: `jobs/${id}` };
  await midEpoch(daemon, id);
  await daemon.call(JobService.method.suspendJob, named);
  await daemon.until(id, ({ state }) => state === JobState.SUSPENDED);
  await daemon.call(JobService.method.resumeJob, named);
}

function expectSameModel(job: Job, expected: Job): void {
  expect(modelsOf(job)).toEqual(modelsOf(expected));
  expect(evaluationsOf(job)).toEqual(evaluationsOf(expected));
  expect(job.result?.parametersSha256).toBe(expected.result?.parametersSha256);
}

/** A job that went on from an image, in an attempt of its own. */
async function resumed(spec: SpecInit, disturb: (id: string) => Promise<void>): Promise<Job> {
  const job = await jobs.run({ ...spec, ...pair }, disturb);
  expect(job.attempts).toHaveLength(2);
  expect(job.attempts[1]?.resumed?.epochs).toBeGreaterThan(0);
  return job;
}

const ways: Readonly<Record<string, (spec: SpecInit) => Promise<Job>>> = {
  '2 Trainers': (spec) => jobs.run({ ...spec, ...crew(1, 2) }),
  '3 Trainers': (spec) => jobs.run({ ...spec, ...crew(1, 3) }),
  'a killed Trainer': (spec) => jobs.killed(spec, [TRAINER]),
  'a killed Sampler': (spec) => jobs.killed(spec, [SAMPLER]),
  'a killed daemon': (spec) => resumed(spec, killDaemon),
  'suspended and resumed': (spec) => resumed(spec, suspendAndResume),
};

const heads = ['MLP', 'BILINEAR'] as const;
const kinds = ['UNIFORM', 'DEGREE', 'JOINT'] as const;
const table = heads.flatMap((head) => kinds.map((negatives) => [head, negatives] as const));
const finals = new Set<string | undefined>();

describe.each(table)('%s, negatives %s', (head, negatives) => {
  const spec = linksOf(head, negatives);
  let expected: Job;

  beforeAll(async () => {
    expected = await jobs.run({ ...spec, ...pair });
    const models = modelsOf(expected);
    expect(new Set(models).size).toBe(models.length);
    expect(finals).not.toContain(models.at(-1));
    finals.add(models.at(-1));
  });

  test.each(Object.entries(ways))('%s: the model of 1 Trainer', async (_, way) => {
    expectSameModel(await way(spec), expected);
  });

  // Kernels run as fibers, some fifteen times as long as on cores.
  test('simulated devices: the model of 1 Trainer after an epoch', async () => {
    const brief = { ...spec, training: { ...spec.training, epochs: 1 }, ...pair };
    const resources = { devices: 2, deviceKind: DeviceChoice.SIM };
    const simulated = await jobs.run({ ...brief, resources });
    expect(modelsOf(simulated)).toHaveLength(1);
    expectSameModel(simulated, await jobs.run(brief));
  });
});
