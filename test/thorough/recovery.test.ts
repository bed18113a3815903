import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { daemonExit } from '../../src/base/exit-codes.ts';
import { evaluationsOf, expectEveryBatchOnce, modelsOf } from '../support/crews.ts';
import { executorPids, spawnDaemon, TestDaemon } from '../support/daemon.ts';
import { expectStopped } from '../support/early-stop.ts';
import { processesWithSegments } from '../support/leftovers.ts';
import { until } from '../support/until.ts';

/** What is left when the daemon dies, and what a new one makes of it. */

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ datasets: ['cora'] });
});

/** The next daemon on the same state. */
async function restart(): Promise<void> {
  daemon = await TestDaemon.start({ folder: daemon.folder });
}

const patienceEpochs = 8;
const plannedEpochs = 300;
const batchesPerEpoch = 35;

function spec(epochs: number) {
  return {
    dataset: 'cora',
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 16 },
    sampling: { fanouts: [10, 5] },
    training: { epochs, batchSize: 4, staleness: 1, batchesPerStep: 1, threadsPerTrainer: 1 },
    resources: { devices: 2 },
  };
}

/** Ends when eight epochs have brought nothing. */
const stopsEarly = {
  ...spec(plannedEpochs),
  training: {
    ...spec(plannedEpochs).training,
    optimizer: { learningRate: 0.001 },
    earlyStop: { patienceEpochs, minDelta: 0 },
  },
};

const inMidTraining = ({ state, progress }: Job) =>
  state === JobState.RUNNING && (progress?.epoch ?? 0) >= 2;

const lockFiles = { 'as it is': () => {}, 'whose LOCK was removed': () => rmSync(lockPath()) };
const lockPath = () => join(daemon.folder, 'state', 'LOCK');

test.each(Object.entries(lockFiles))(
  'a second daemon on a state directory %s is refused at once',
  async (_, change) => {
    const wasThere = existsSync(lockPath());
    change();
    const second = spawnDaemon(daemon.folder);
    let said = '';
    second.stderr?.on('data', (data) => {
      said += data;
    });
    const code = await new Promise((resolve) => second.once('close', resolve));
    expect(code).toBe(daemonExit.STATE_DIR);
    expect(wasThere).toBe(true);
    const holder = existsSync(lockPath()) ? daemon.pid : 'unknown';
    expect(said).toContain(`another daemon (pid ${holder}) uses the state directory`);
    expect((await daemon.devices()).devices).toHaveLength(2);
  },
);

test('a job cancelled in mid-epoch ends CANCELLED and frees its devices for the next', async () => {
  await daemon.createJob('long', spec(10_000));
  await daemon.createJob('waiting', spec(2));
  const waiting = await daemon.until('waiting', ({ message }) => message !== '');
  expect(waiting.reason).toBe(Reason.WAITING_FOR_DEVICES);
  expect(waiting.message).toContain('long');
  await daemon.until('long', inMidTraining);
  await daemon.call(JobService.method.cancelJob, { name: 'jobs/long' });
  const long = await daemon.until('long', ({ state }) => state === JobState.CANCELLED);
  expect(long.reason).toBe(Reason.USER_CANCELLED);
  expect(long.attempts[0]?.endReason).toBe(Reason.USER_CANCELLED);
  await daemon.succeeded('waiting');
  expect(executorPids(daemon.pid)).toEqual([]);
});

test('a higher priority goes first, then the older job', async () => {
  const ids = ['first', 'urgent', 'older', 'newer'];
  await daemon.createJob('first', spec(10_000));
  await daemon.createJob('older', spec(1));
  await daemon.createJob('newer', spec(1));
  await daemon.createJob('urgent', { ...spec(1), priority: 500 });
  await daemon.call(JobService.method.cancelJob, { name: 'jobs/first' });
  for (const id of ids.slice(1)) await daemon.succeeded(id);
  const revisions = await Promise.all(ids.map(async (id) => (await daemon.job(id)).revision));
  expect([...revisions].sort((a, b) => Number(a - b))).toEqual(revisions);
});

test('kill -9 of the daemon leaves nothing; the job runs again to the same end', async () => {
  const undisturbed = await daemon.train('undisturbed', stopsEarly);
  expectStopped(undisturbed, patienceEpochs, plannedEpochs);
  await daemon.createJob('killed', stopsEarly);
  const before = await daemon.until('killed', inMidTraining);
  const pids = executorPids(daemon.pid);
  expect(pids.length).toBeGreaterThanOrEqual(2);
  expect(processesWithSegments().length).toBeGreaterThanOrEqual(3);

  daemon.client.close();
  await daemon.kill('SIGKILL');
  const daemonPid = daemon.pid;
  const ours = new Set([...pids, daemonPid]);
  await until(() => executorPids(daemonPid).length === 0);
  await until(() => !processesWithSegments().some((pid) => ours.has(pid)));
  expect(readdirSync('/dev/shm').filter((name) => name.includes('gnnd'))).toEqual([]);

  await restart();
  const job = await daemon.succeeded('killed');
  expect(job.uid).toBe(before.uid);
  expect(job.attempts.map(({ endReason }) => endReason)).toEqual([
    Reason.DAEMON_RESTARTED,
    Reason.COMPLETED,
  ]);
  expectStopped(job, patienceEpochs, plannedEpochs);
  expectEveryBatchOnce(job, batchesPerEpoch);
  expect(modelsOf(job)).toEqual(modelsOf(undisturbed));
  expect(evaluationsOf(job)).toEqual(evaluationsOf(undisturbed));
  expect((await daemon.job('undisturbed')).result).toEqual(undisturbed.result);
});

test('SIGTERM stops executors, exits 0 and leaves the job for the next daemon', async () => {
  await daemon.createJob('drained', spec(24));
  await daemon.until('drained', inMidTraining);
  daemon.client.close();
  expect(await daemon.kill('SIGTERM')).toBe(daemonExit.OK);
  expect(executorPids(daemon.pid)).toEqual([]);
  expect(existsSync(join(daemon.folder, 'gnnd.sock'))).toBe(false);

  await restart();
  const job = await daemon.succeeded('drained');
  expect(job.attempts[0]?.endReason).toBe(Reason.DAEMON_SHUTDOWN);
  expect(job.attempts).toHaveLength(2);
});
