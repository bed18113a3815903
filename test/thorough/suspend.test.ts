import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { type Job, JobIntent, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { evaluationsOf, modelsOf, pair, type SpecInit } from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';

/** Jobs that rest, go on, and are tried again: none of it shows in their models. */

let daemon: TestDaemon;

const epochs = 40;
const spec: SpecInit = {
  dataset: 'cora',
  model: { type: ModelType.GRAPHSAGE, hiddenDim: 16 },
  sampling: { fanouts: [10, 5] },
  training: { epochs, batchSize: 4, staleness: 2, batchesPerStep: 1, threadsPerTrainer: 1 },
  ...pair,
  // No image but those of the suspensions.
  checkpoint: { everyEpochs: 0, everySteps: 0n, everyMs: 0n },
};
let undisturbed: Job;

beforeAll(async () => {
  daemon = await TestDaemon.start({ datasets: ['cora'], cpuDevices: 2 });
  undisturbed = await daemon.train('undisturbed', spec);
});

const { suspendJob, resumeJob, retryJob, cancelJob } = JobService.method;
const named = (id: string) => ({ name: `jobs/${id}` });
const inState = (state: JobState) => (job: Job) => job.state === state;
const { SUSPENDED, RUNNING, PENDING } = JobState;

function imagesOf({ uid }: Job): readonly string[] {
  const folder = join(daemon.folder, 'state', 'jobs', uid, 'images');
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.image')) : [];
}

const inEpoch = (epoch: number) => (job: Job) =>
  job.state === RUNNING && (job.progress?.epoch ?? 0) >= epoch;

/** Lets the daemon die and start again. */
async function restart(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  daemon.client.close();
  await daemon.kill(signal);
  daemon = await TestDaemon.start({ folder: daemon.folder, cpuDevices: 2 });
}

function expectSameModel(job: Job): void {
  expect(modelsOf(job)).toEqual(modelsOf(undisturbed));
  expect(evaluationsOf(job)).toEqual(evaluationsOf(undisturbed));
  expect(job.result?.parametersSha256).toBe(undisturbed.result?.parametersSha256);
}

test('suspended twice, killed, its daemon killed: the same model', async () => {
  const id = 'often';
  await daemon.createJob(id, { ...spec, restart: { maxAttempts: 2, executorRestarts: 0 } });
  await daemon.until(id, inEpoch(2));
  const asked = await daemon.call(suspendJob, named(id));
  expect(asked).toMatchObject({ state: JobState.SUSPENDING, intent: JobIntent.SUSPEND });
  const rests = await daemon.until(id, inState(SUSPENDED));
  expect(rests).toMatchObject({ reason: Reason.USER_SUSPENDED });
  expect(rests.message).toContain(`from ${imagesOf(rests)[0]}`);
  const devices = (await daemon.devices()).devices.map(({ job }) => job);
  expect(devices).toEqual(['', '']);
  // A second request changes nothing.
  expect((await daemon.call(suspendJob, named(id))).revision).toBe(rests.revision);
  await restart('SIGKILL');
  expect(await daemon.job(id)).toMatchObject({ state: SUSPENDED, revision: rests.revision });

  await daemon.call(resumeJob, named(id));
  const first = await daemon.until(id, inEpoch(5));
  expect(first.attempts.at(-1)?.resumed?.epochs).toBeGreaterThanOrEqual(2);
  await daemon.call(suspendJob, named(id));
  // Before it rests: what it wants is stored, and the daemon that comes does it.
  await restart('SIGKILL');
  const again = await daemon.until(id, inState(SUSPENDED));
  expect(again.attempts).toHaveLength(2);

  await daemon.call(resumeJob, named(id));
  const running = await daemon.until(id, inEpoch(4));
  process.kill(running.progress?.executors[0]?.pid ?? 0, 'SIGKILL');
  const job = await daemon.succeeded(id);
  expect(job.attempts.map(({ endReason }) => endReason)).toEqual([
    Reason.USER_SUSPENDED,
    expect.toSatisfy((reason) =>
      [Reason.USER_SUSPENDED, Reason.DAEMON_RESTARTED].includes(reason as Reason),
    ),
    Reason.EXECUTOR_CRASHED,
    Reason.COMPLETED,
  ]);
  expectSameModel(job);
});

test('a queued job rests at once, and is queued again', async () => {
  await daemon.createJob('holder', { ...spec, training: { ...spec.training, epochs: 100_000 } });
  await daemon.until('holder', inState(RUNNING));
  await daemon.createJob('waits', spec);
  const rests = await daemon.call(suspendJob, named('waits'));
  expect(rests).toMatchObject({ state: SUSPENDED, attempts: [] });
  expect(rests.message).toContain('begins at the beginning');
  expect(await daemon.call(resumeJob, named('waits'))).toMatchObject({
    state: PENDING,
    intent: JobIntent.RUN,
    reason: Reason.WAITING_FOR_DEVICES,
  });
  // The other makes room, and has it again when this one has ended.
  await daemon.call(suspendJob, named('holder'));
  const job = await daemon.succeeded('waits');
  expectSameModel(job);
  await daemon.call(resumeJob, named('holder'));
  const back = await daemon.until('holder', inState(RUNNING));
  expect(back.attempts.at(-1)?.resumed).toBeDefined();
  await daemon.call(suspendJob, named('holder'));
  await daemon.until('holder', inState(SUSPENDED));
  const ended = await daemon.call(cancelJob, named('holder'));
  expect(ended.state).toBe(JobState.CANCELLED);
});

test('resumed while it is being stopped, it goes on at once', async () => {
  await daemon.createJob('wavers', spec);
  await daemon.until('wavers', inEpoch(3));
  await daemon.call(suspendJob, named('wavers'));
  await daemon.call(resumeJob, named('wavers'));
  const job = await daemon.succeeded('wavers');
  expect(job.attempts[1]?.resumed?.epochs).toBeGreaterThanOrEqual(3);
  expectSameModel(job);
});

test('a cancelled job is tried again from its newest image, or from its beginning', async () => {
  const withImages = { ...spec, checkpoint: { everyEpochs: 1, keepLast: 2 } };
  await daemon.createJob('retried', withImages);
  await daemon.until('retried', (now) => inEpoch(3)(now) && imagesOf(now).length > 0);
  await daemon.call(cancelJob, named('retried'));
  await expect(daemon.call(suspendJob, named('retried'))).rejects.toThrow('cannot be suspended');
  await daemon.until('retried', inState(JobState.CANCELLED));
  await expect(daemon.call(suspendJob, named('retried'))).rejects.toThrow('CANCELLED');
  await expect(daemon.call(resumeJob, named('retried'))).rejects.toThrow('CANCELLED');
  const retried = await daemon.call(retryJob, named('retried'));
  expect(retried.endTime).toBeUndefined();
  await daemon.until('retried', inEpoch(4));
  await daemon.call(cancelJob, named('retried'));
  const before = await daemon.until('retried', inState(JobState.CANCELLED));
  expect(before.attempts[1]?.resumed).toBeDefined();
  await daemon.call(retryJob, { ...named('retried'), fromBeginning: true });
  const job = await daemon.succeeded('retried');
  expect(job.attempts[2]?.resumed).toBeUndefined();
  expectSameModel(job);
  await expect(daemon.call(retryJob, named('retried'))).rejects.toThrow('not one SUCCEEDED');
});

test('a job of higher priority takes the devices of a preemptible one, which goes on', async () => {
  await daemon.createJob('yields', { ...spec, preemptible: true });
  await daemon.until('yields', inEpoch(3));
  await daemon.createJob('urgent', { ...spec, priority: 200 });
  const waits = await daemon.until('yields', inState(PENDING));
  expect(waits.attempts[0]).toMatchObject({ endReason: Reason.PREEMPTED });
  expectSameModel(await daemon.succeeded('urgent'));
  const job = await daemon.succeeded('yields');
  expect(job.attempts[1]?.resumed?.epochs).toBeGreaterThanOrEqual(3);
  expectSameModel(job);
});
