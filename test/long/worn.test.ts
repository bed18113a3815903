import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { evaluationsOf, modelsOf, pair, type SpecInit } from '../support/crews.ts';
import { executorPids, TestDaemon } from '../support/daemon.ts';

/**
 * What interruptions cost, in batches: one job loses twenty executors and three daemons, rests
 * twice, and goes on on other devices. Its model is that of one that was let alone.
 */

const cpuDevices = 4;
const batchesPerEpoch = 35;
const everySteps = 50;
let daemon: TestDaemon;

const spec: SpecInit = {
  dataset: 'cora',
  model: { type: ModelType.GRAPHSAGE, hiddenDim: 16, dropout: 0.5 },
  sampling: { fanouts: [10, 5] },
  training: { epochs: 300, batchSize: 4, staleness: 2, batchesPerStep: 1, threadsPerTrainer: 1 },
  restart: { executorRestarts: 1000, maxAttempts: 100 },
  checkpoint: { everyEpochs: 0, everySteps: BigInt(everySteps), keepLast: 2 },
  ...pair,
};

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices, datasets: ['cora'] });
});
afterAll(() => daemon.stop());

type Blow = 'executor' | 'daemon' | 'rest';

/** In the order in which they come, each so many steps after the one before. */
const blows: readonly Blow[] = [
  ...(['executor', 'executor', 'executor', 'executor', 'daemon', 'executor', 'executor'] as const),
  ...(['rest', 'executor', 'executor', 'executor', 'executor', 'daemon', 'executor'] as const),
  ...(['executor', 'executor', 'executor', 'rest', 'executor', 'executor', 'executor'] as const),
  ...(['daemon', 'executor', 'executor', 'executor'] as const),
];
const count = (blow: Blow) => blows.filter((each) => each === blow).length;

const committedOf = ({ progress }: Job) => Number(progress?.version ?? 0);
const isRunning = (job: Job) => job.state === JobState.RUNNING && job.progress !== undefined;

/** Batches that were committed when an attempt began. */
function begunAt(job: Job): number {
  const { epochs = 0, batches = 0n } = job.attempts.at(-1)?.resumed ?? {};
  return epochs * batchesPerEpoch + Number(batches);
}

test('twenty dead executors, three dead daemons, two rests: the same model', async () => {
  expect([count('executor'), count('daemon'), count('rest')]).toEqual([20, 3, 2]);
  const undisturbed = await daemon.train('undisturbed', spec);
  const steps = Number(undisturbed.epochs.at(-1)?.version);
  await daemon.createJob('worn', spec);
  const lost: Record<Blow, number[]> = { executor: [], daemon: [], rest: [] };
  const devices: string[] = [];
  for (const [index, blow] of blows.entries()) {
    const due = (index * steps) / (blows.length + 1);
    const at = (job: Job) => isRunning(job) && committedOf(job) >= due;
    const before = await daemon.until('worn', at);
    if (blow === 'executor') {
      const pids = executorPids(daemon.pid);
      const pid = pids[index % pids.length];
      if (pid !== undefined) process.kill(pid, 'SIGKILL');
      const { uid } = before;
      await daemon.until(
        'worn',
        (job) => job.uid === uid && committedOf(job) > committedOf(before),
      );
      continue;
    }
    if (blow === 'daemon') {
      daemon.client.close();
      await daemon.kill('SIGKILL');
      daemon = await TestDaemon.start({ cpuDevices, folder: daemon.folder });
    } else {
      await rest(devices);
    }
    const attempt = before.attempts.length;
    const after = await daemon.until(
      'worn',
      (job) => isRunning(job) && job.attempts.length > attempt,
    );
    lost[blow].push(Math.max(0, committedOf(before) - begunAt(after)));
  }
  const job = await daemon.succeeded('worn');
  expect(modelsOf(job)).toEqual(modelsOf(undisturbed));
  expect(evaluationsOf(job)).toEqual(evaluationsOf(undisturbed));
  expect(job.result?.parametersSha256).toBe(undisturbed.result?.parametersSha256);
  // Delivered or made a second time, because who had them died.
  lost.executor.push(...job.epochs.map(({ retries }) => Number(retries)).filter((n) => n > 0));
  const again = lost.executor.reduce((sum, n) => sum + n, 0);
  const killed = job.attempts.reduce((sum, { exits }) => sum + exits.length, 0);
  process.stdout.write(`${JSON.stringify({ steps, again, killed, devices, ...lost })}\n`);
  // A Sampler has at most two batches in hand, a Trainer one and the next one.
  expect(again).toBeLessThanOrEqual(2 * count('executor'));
  expect(lost.rest).toEqual([0, 0]);
  expect(new Set(devices).size).toBeGreaterThan(1);
}, 900_000);

/** Suspended; and when it goes on, another job has the devices that it had. */
async function rest(devices: string[]): Promise<void> {
  const { suspendJob, resumeJob, deleteJob } = JobService.method;
  const name = 'jobs/worn';
  const held = async () => {
    const all = (await daemon.devices()).devices.filter(({ job }) => job === name);
    return all.map((device) => device.name).join(' ');
  };
  devices.push(await held());
  await daemon.call(suspendJob, { name });
  await daemon.until('worn', ({ state }) => state === JobState.SUSPENDED);
  await daemon.createJob('other', { ...spec, training: { ...spec.training, epochs: 100_000 } });
  await daemon.until('other', isRunning);
  await daemon.call(resumeJob, { name });
  await daemon.until('worn', isRunning);
  devices.push(await held());
  await daemon.call(deleteJob, { name: 'jobs/other', force: true });
}
