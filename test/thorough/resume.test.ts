import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import {
  batchesOnDevices,
  evaluationsOf,
  expectEveryBatchOnce,
  modelsOf,
  pair,
  type SpecInit,
} from '../support/crews.ts';
import { executorPids, TestDaemon } from '../support/daemon.ts';
import { until } from '../support/until.ts';

/** Interrupted jobs go on from their newest image, and end like one that never was. */

let daemon: TestDaemon;

const epochs = 40;
const batchesPerEpoch = 35;

/** Long enough to be interrupted, with images every few batches. */
const spec: SpecInit = {
  dataset: 'cora',
  model: { type: ModelType.GRAPHSAGE, hiddenDim: 16 },
  sampling: { fanouts: [10, 5] },
  training: { epochs, batchSize: 4, staleness: 2, batchesPerStep: 1, threadsPerTrainer: 1 },
  // Nothing is to be measured first.
  ...pair,
  checkpoint: { everyEpochs: 1, everySteps: 7n, keepLast: 3 },
};
let undisturbed: Job;

beforeAll(async () => {
  daemon = await TestDaemon.start({ datasets: ['cora'] });
  undisturbed = await daemon.train('undisturbed', spec);
});

const imagesFolder = ({ uid }: Job) => join(daemon.folder, 'state', 'jobs', uid, 'images');

/** Newest first. */
function imagesOf(job: Job): readonly string[] {
  const folder = imagesFolder(job);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith('.image'))
    .sort()
    .reverse();
}

/** Starts the job and kills the daemon when there is an image of it. */
async function killedInMidJob(id: string, wanted: SpecInit = spec): Promise<Job> {
  await daemon.createJob(id, wanted);
  const job = await daemon.until(
    id,
    (now) => (now.progress?.epoch ?? 0) >= 2 && imagesOf(now).length > 0,
  );
  daemon.client.close();
  await daemon.kill('SIGKILL');
  return job;
}

async function restart(): Promise<void> {
  daemon = await TestDaemon.start({ folder: daemon.folder });
}

function expectSameModel(job: Job, other: Job): void {
  expect(modelsOf(job)).toEqual(modelsOf(other));
  expect(evaluationsOf(job)).toEqual(evaluationsOf(other));
  expect(job.result?.parametersSha256).toBe(other.result?.parametersSha256);
}

/** What the attempt that went on has trained: all batches from the image on, and no others. */
function expectOnlyTheRest(job: Job): void {
  const { epochs: over = 0, batches = 0n } = job.attempts.at(-1)?.resumed ?? {};
  const trained = job.epochs.slice(over).reduce((sum, report) => sum + batchesOnDevices(report), 0);
  expect(trained).toBe((epochs - over) * batchesPerEpoch - Number(batches));
}

test('an undisturbed job leaves no image', async () => {
  expect(undisturbed.attempts.map(({ resumed }) => resumed)).toEqual([undefined]);
  await gone(imagesFolder(undisturbed));
});

test('kill -9 of the daemon costs what came after the newest image, and no bit', async () => {
  const before = await killedInMidJob('killed');
  const newest = imagesOf(before)[0] ?? '';
  expect(newest).toMatch(/^epoch-\d{8}-batch-\d{10}\.image$/);
  await restart();
  const running = await daemon.until('killed', ({ state }) => state === JobState.RUNNING);
  expect(running.message).toContain(`from ${newest}`);
  const job = await daemon.succeeded('killed');
  expect(job.attempts.map(({ endReason }) => endReason)).toEqual([
    Reason.DAEMON_RESTARTED,
    Reason.COMPLETED,
  ]);
  expect(job.attempts[0]?.resumed).toBeUndefined();
  const { resumed } = job.attempts[1] ?? {};
  expect(resumed).toMatchObject({ image: newest, otherBuild: false });
  expect(resumed?.epochs).toBe(Number(newest.slice(6, 14)));
  expectSameModel(job, undisturbed);
  expectEveryBatchOnce(job, batchesPerEpoch);
  expectOnlyTheRest(job);
  expect(daemon.logs).toContain('"msg":"attempt.resumed"');
  await gone(imagesFolder(job));
});

test('a damaged image is passed over, and one of another build is told of', async () => {
  const before = await killedInMidJob('damaged');
  const folder = imagesFolder(before);
  const [sound = ''] = imagesOf(before);
  const bytes = readFileSync(join(folder, sound));
  // The image now looks as if a gnnd that was built otherwise had written it.
  bytes.write('another', 16);
  const end = bytes.length - 32;
  createHash('sha256').update(bytes.subarray(0, end)).digest().copy(bytes, end);
  writeFileSync(join(folder, sound), bytes);
  const [newest, second] = [39, 38].map((epoch) => `epoch-000000${epoch}-batch-0000000000.image`);
  writeFileSync(join(folder, second ?? ''), bytes.subarray(0, 1000));
  bytes.fill(7, 5000, 6000);
  writeFileSync(join(folder, newest ?? ''), bytes);
  await restart();
  const job = await daemon.succeeded('damaged');
  expect(job.attempts[1]?.resumed).toMatchObject({ image: sound, otherBuild: true });
  expectSameModel(job, undisturbed);
  expectOnlyTheRest(job);
  const refused = daemon.logs.split('\n').filter((line) => line.includes('"image.refused"'));
  expect(refused.map((line) => JSON.parse(line).image)).toEqual([newest, second]);
});

test('with no sound image the job begins at the beginning', async () => {
  const before = await killedInMidJob('lost');
  for (const name of imagesOf(before)) writeFileSync(join(imagesFolder(before), name), '');
  await restart();
  const job = await daemon.succeeded('lost');
  expect(job.attempts[1]?.resumed).toBeUndefined();
  expectSameModel(job, undisturbed);
  expectEveryBatchOnce(job, batchesPerEpoch);
});

test('an attempt that fails is gone on from where its executors had come', async () => {
  const once = { ...spec, restart: { maxAttempts: 3, executorRestarts: 0 } };
  await daemon.createJob('failing', once);
  const before = await daemon.until('failing', ({ progress }) => (progress?.epoch ?? 0) >= 3);
  process.kill(before.progress?.executors[0]?.pid ?? 0, 'SIGKILL');
  const job = await daemon.succeeded('failing');
  const messages = job.attempts.map(({ message }) => message).join('\n');
  expect(
    job.attempts.map(({ endReason }) => endReason),
    messages,
  ).toEqual([Reason.EXECUTOR_CRASHED, Reason.COMPLETED]);
  const { epochs: over = 0 } = job.attempts[1]?.resumed ?? {};
  // No image was needed for that: one is written when the attempt ends.
  expect(over).toBeGreaterThanOrEqual(3);
  expectSameModel(job, undisturbed);
  expectOnlyTheRest(job);
});

test('SIGTERM costs no batch that was committed', async () => {
  const none = { ...spec, checkpoint: { everyEpochs: 0, everySteps: 0n, everyMs: 0n } };
  await daemon.createJob('drained', none);
  const before = await daemon.until('drained', ({ progress }) => (progress?.epoch ?? 0) >= 2);
  expect(imagesOf(before)).toEqual([]);
  const { epoch = 0, batchesCommitted = 0n } = before.progress ?? {};
  daemon.client.close();
  await daemon.kill('SIGTERM');
  expect(imagesOf(before)).toHaveLength(1);
  await restart();
  const job = await daemon.succeeded('drained');
  const { resumed } = job.attempts[1] ?? {};
  const committed = (resumed?.epochs ?? 0) * batchesPerEpoch + Number(resumed?.batches ?? 0);
  expect(committed).toBeGreaterThanOrEqual(epoch * batchesPerEpoch + Number(batchesCommitted));
  expectSameModel(job, undisturbed);
  expectOnlyTheRest(job);
});

test('a job whose image is its very end begins once more, and ends', async () => {
  const many = 600;
  const training = { ...spec.training, epochs: many, batchSize: 140 };
  await daemon.createJob('at-its-end', { ...spec, training, evaluation: { everyEpochs: 50 } });
  await daemon.until('at-its-end', ({ progress }) => (progress?.epoch ?? 0) >= 2);
  // Executors go on to the end; the daemon takes up so many epochs at a look, and is told to stop.
  process.kill(daemon.pid, 'SIGSTOP');
  await until(() => executorPids(daemon.pid).length === 0);
  process.kill(daemon.pid, 'SIGTERM');
  process.kill(daemon.pid, 'SIGCONT');
  daemon.client.close();
  await daemon.kill('SIGTERM');
  await restart();
  const job = await daemon.succeeded('at-its-end');
  expect(job.attempts.map(({ endReason }) => endReason)).toEqual([
    Reason.DAEMON_SHUTDOWN,
    Reason.COMPLETED,
  ]);
  expect(job.attempts[1]?.resumed?.epochs).toBe(many);
  expect(job.epochs.map(({ epoch }) => epoch)).toEqual([...Array(many).keys()]);
});

test('models over rows go on, too', async () => {
  const { sampling, placement, ...rest } = spec;
  const rows: SpecInit = {
    ...rest,
    model: { type: ModelType.SIGN, hiddenDim: 16 },
    propagation: { hops: 2 },
    training: { epochs, batchSize: 4, staleness: 1, batchesPerStep: 2, threadsPerTrainer: 1 },
  };
  const whole = await daemon.train('rows', rows);
  await killedInMidJob('rows-killed', rows);
  await restart();
  const job = await daemon.succeeded('rows-killed');
  expect(job.attempts[1]?.resumed?.image).toMatch(/image$/);
  expectSameModel(job, whole);
  expectOnlyTheRest(job);
});

test('where no image can be written the job goes on, and says so', async () => {
  const slow = { ...spec, checkpoint: { everySteps: 7n } };
  await daemon.createJob('full', slow);
  const created = await daemon.job('full');
  // A file takes the place of the folder, so that every write there fails.
  mkdirSync(join(imagesFolder(created), '..'), { recursive: true });
  writeFileSync(imagesFolder(created), '');
  const told = await daemon.until('full', ({ message }) => message.includes('last image'));
  expect(told.state).toBe(JobState.RUNNING);
  expect(told.message).toContain('Not a directory');
  const job = await daemon.succeeded('full');
  expect(job.message).toBe('');
  expectSameModel(job, undisturbed);
  expect(daemon.logs).toContain('"image.failed"');
});

test('images stay with a job that is cancelled, and go with one that is deleted', async () => {
  await daemon.createJob('endless', { ...spec, training: { ...spec.training, epochs: 100_000 } });
  const job = await daemon.until('endless', (now) => imagesOf(now).length > 0);
  const name = 'jobs/endless';
  await daemon.call(JobService.method.cancelJob, { name });
  await daemon.until('endless', ({ state }) => state === JobState.CANCELLED);
  expect(imagesOf(job)).not.toEqual([]);
  await daemon.call(JobService.method.deleteJob, { name });
  await gone(imagesFolder(job));
});

test('what a daemon could not remove, the next one does', async () => {
  const stale = imagesFolder(undisturbed);
  mkdirSync(stale, { recursive: true });
  writeFileSync(join(stale, 'epoch-00000001-batch-0000000000.image'), '');
  daemon.client.close();
  await daemon.kill('SIGKILL');
  await restart();
  await gone(stale);
});

const gone = (path: string) => until(() => !existsSync(path));
