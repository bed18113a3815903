import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { OptimizerType } from '../../src/api/gen/gnnd/v1/training_pb.ts';
import { modelsOf, pair, type SpecInit } from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';

/** Jobs that begin with the parameters of another one. */

let daemon: TestDaemon;
let first: Job;

/** Plain descent has no memory: after three epochs three more are six. */
const spec: SpecInit = {
  dataset: 'cora',
  model: { type: ModelType.GRAPHSAGE, hiddenDim: 16, dropout: 0 },
  sampling: { fanouts: [-1, -1] },
  training: {
    epochs: 3,
    batchSize: 140,
    threadsPerTrainer: 1,
    optimizer: { type: OptimizerType.SGD, learningRate: 0.05, weightDecay: 0 },
  },
  ...pair,
};

function from(startFrom: string, epochs = 3): SpecInit {
  return { ...spec, training: { ...spec.training, epochs, startFrom } };
}

beforeAll(async () => {
  daemon = await TestDaemon.start({ datasets: ['cora'], cpuDevices: 2 });
  first = await daemon.train('first', spec);
});

test('a job goes on from the last parameters of another one', async () => {
  const again = await daemon.train('again', from('first@last'));
  expect(again.effectiveSpec?.training?.startParametersSha256).toBe(first.result?.parametersSha256);
  // The loss goes on falling from where it was; the fresh job's begins higher.
  const [begin = 0] = again.epochs.map(({ loss }) => loss);
  expect(begin).toBeLessThan(first.epochs.at(-1)?.loss ?? 0);
  expect(modelsOf(again)[0]).not.toBe(modelsOf(first)[0]);
  const other = await daemon.train('other', from('first@3'));
  expect(modelsOf(other)).toEqual(modelsOf(again));
});

test('it keeps them when that one goes, and through a killed daemon', async () => {
  await daemon.train('gone', spec);
  const name = 'jobs/begins';
  await daemon.createJob('begins', {
    ...from('gone@last', 40),
    checkpoint: { everyEpochs: 0, everyMs: 0n },
  });
  await daemon.call(JobService.method.suspendJob, { name });
  await daemon.until('begins', ({ state }) => state === JobState.SUSPENDED);
  await daemon.call(JobService.method.deleteJob, { name: 'jobs/gone' });
  daemon.client.close();
  await daemon.kill('SIGKILL');
  daemon = await TestDaemon.start({ folder: daemon.folder, cpuDevices: 2 });
  await daemon.call(JobService.method.resumeJob, { name });
  const job = await daemon.succeeded('begins');
  const whole = await daemon.train('whole', from('first@last', 40));
  expect(modelsOf(job)).toEqual(modelsOf(whole));
});

test('from an image of a job that is not over', async () => {
  await daemon.createJob('running', { ...from('', 100_000), checkpoint: { everyEpochs: 1 } });
  // The newest image is of an epoch or two before: far enough for a loss that is clearly lower.
  const hasLearned = (now: Job) => imagesOf(now).length > 0 && now.numEpochs > 30;
  const job = await daemon.until('running', hasLearned);
  const begun = await daemon.call(JobService.method.createJob, {
    jobId: 'begun',
    spec: from('running@last'),
  });
  await daemon.call(JobService.method.cancelJob, { name: 'jobs/running' });
  expect(begun.effectiveSpec?.training?.startParametersSha256).toMatch(/^[0-9a-f]{64}$/);
  const ended = await daemon.succeeded('begun');
  expect(ended.epochs[0]?.loss).toBeLessThan(first.epochs[0]?.loss ?? 0);
  expect(job.state).toBe(JobState.RUNNING);
});

test('what does not fit is refused by its field, and leaves nothing', async () => {
  const folders = () => readdirSync(join(daemon.folder, 'state', 'jobs')).sort();
  const before = folders();
  const refused = async (wanted: SpecInit) => {
    const error = await daemon.createJob('refused', wanted).catch((caught: Error) => caught);
    return error instanceof Error ? error.message : 'it was created';
  };
  const wide = { ...from('first@last'), model: { ...spec.model, hiddenDim: 32 } };
  expect(await refused(wide)).toContain('shapes of job first');
  for (const name of ['nobody@last', 'first', 'first@2x', 'first@17']) {
    expect(await refused(from(name))).toContain('a field that cannot be');
  }
  expect(folders()).toEqual(before);
});

function imagesOf({ uid }: Job): readonly string[] {
  const folder = join(daemon.folder, 'state', 'jobs', uid, 'images');
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.image')) : [];
}
