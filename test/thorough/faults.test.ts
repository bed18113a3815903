import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import { type Job, JobPhase, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { PlacementPolicy } from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { daemonExit } from '../../src/base/exit-codes.ts';
import { executorPids, TestDaemon } from '../support/daemon.ts';
import { holdingsOf, unlistedFiles } from '../support/leftovers.ts';

/** Faults outside steady training: before it, at its end, and over several jobs. */

let daemon: TestDaemon;

beforeAll(async () => {
  // Idle topologies are not kept, so that every descriptor counts.
  daemon = await TestDaemon.start({ datasets: ['cora'], flags: ['--topology-idle-ms', '0'] });
});

/** The next daemon on the same state. */
async function restart(): Promise<void> {
  const flags = ['--topology-idle-ms', '0'];
  daemon = await TestDaemon.start({ folder: daemon.folder, flags });
}

function spec(epochs: number) {
  return {
    dataset: 'cora',
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 16 },
    sampling: { fanouts: [10, 5] },
    training: { epochs, batchSize: 4, staleness: 1, batchesPerStep: 1, threadsPerTrainer: 1 },
    resources: { devices: 2 },
    // A plan that is measured could have both devices do both, and then nobody is a Trainer.
    placement: { policy: PlacementPolicy.FIXED, samplers: 1 },
  };
}

const isIn = (phase: JobPhase) => (job: Job) => job.phase === phase;
const isTraining = ({ state, progress }: Job) =>
  state === JobState.RUNNING && (progress?.executors.length ?? 0) > 0;

/** Waits until a job calibrates and has an executor: what loaded its dataset is gone by then. */
async function anExecutor(id: string): Promise<number> {
  let pid: number | undefined;
  await daemon.until(id, ({ phase }) => {
    pid = phase === JobPhase.CALIBRATING ? executorPids(daemon.pid)[0] : undefined;
    return pid !== undefined;
  });
  return pid ?? 0;
}

function cancel(id: string) {
  return daemon.call(JobService.method.cancelJob, { name: `jobs/${id}` });
}

const isCancelled = ({ state }: Job) => state === JobState.CANCELLED;

const leftFiles = () => unlistedFiles(join(daemon.folder, 'state'));

test('jobs and cancels leave no descriptor, segment or unlisted file behind', async () => {
  const { result } = await daemon.train('undisturbed', spec(2));
  expect(result?.parametersSha256).toMatch(/^[0-9a-f]{64}$/);
  const before = holdingsOf(daemon.pid);
  for (let i = 0; i < 2; i++) await daemon.train(`job-${i}`, spec(1));
  const phases = [JobPhase.CALIBRATING, JobPhase.STARTING, JobPhase.TRAINING];
  for (const [i, phase] of phases.entries()) {
    await daemon.createJob(`cancelled-${i}`, spec(10_000));
    await daemon.until(`cancelled-${i}`, isIn(phase));
    await cancel(`cancelled-${i}`);
    const job = await daemon.until(`cancelled-${i}`, isCancelled);
    expect(job.reason).toBe(Reason.USER_CANCELLED);
    expect(executorPids(daemon.pid)).toEqual([]);
    expect(holdingsOf(daemon.pid).memory).toBe(0);
  }
  // The job's devices are free for the next job.
  await daemon.train('next', spec(1));
  const after = holdingsOf(daemon.pid);
  expect(after.memory).toBe(0);
  expect(after.all).toBeLessThanOrEqual(before.all);
  await expect.poll(leftFiles, { timeout: 10_000 }).toEqual([]);
});

test('an executor that is stopped while it starts is killed after stall_ms', async () => {
  await daemon.createJob('stopped', { ...spec(2), timeouts: { stallMs: 5000n } });
  process.kill(await anExecutor('stopped'), 'SIGSTOP');
  const job = await daemon.succeeded('stopped');
  const exits = job.attempts.flatMap((attempt) => attempt.exits);
  expect(exits.map(({ reason }) => reason)).toContain(Reason.EXECUTOR_STALLED);
});

test('a trial executor that dies costs an attempt, not the result', async () => {
  const { result } = await daemon.job('undisturbed');
  await daemon.createJob('killed', spec(2));
  process.kill(await anExecutor('killed'), 'SIGKILL');
  const job = await daemon.succeeded('killed');
  expect(job.attempts.at(-1)?.endReason).toBe(Reason.COMPLETED);
  expect(job.attempts.flatMap(({ exits }) => exits).length).toBeGreaterThan(0);
  expect(job.result?.parametersSha256).toBe(result?.parametersSha256);
});

test('an exhausted restart budget fails the job and names the last reason', async () => {
  const restart = { executorRestarts: 1, maxAttempts: 1 };
  await daemon.createJob('doomed', { ...spec(10_000), restart });
  const killed = new Set<number>();
  const job = await daemon.until('doomed', (now) => {
    if (isTraining(now)) {
      for (const { role, pid } of now.progress?.executors ?? []) {
        if (role !== ExecutorRole.TRAINER || pid === 0 || killed.has(pid)) continue;
        killed.add(pid);
        process.kill(pid, 'SIGKILL');
      }
    }
    return now.state === JobState.FAILED;
  });
  expect(killed.size).toBe(2);
  expect(job.reason).toBe(Reason.RESTART_BUDGET_EXHAUSTED);
  expect(job.message).toMatch(/EXECUTOR_(KILLED|CRASHED|SIGNALED)/);
  expect(job.attempts).toHaveLength(1);
  expect(executorPids(daemon.pid)).toEqual([]);
});

test.each([
  ['at once', null],
  ['during calibration', JobPhase.CALIBRATING],
])('SIGTERM %s after a job came exits 0 and leaves nothing', async (name, phase) => {
  const id = name.replace(' ', '-');
  await daemon.createJob(id, spec(10_000));
  if (phase !== null) await daemon.until(id, isIn(phase));
  daemon.client.close();
  expect(await daemon.kill('SIGTERM')).toBe(daemonExit.OK);
  expect(executorPids(daemon.pid)).toEqual([]);
  await expect.poll(leftFiles, { timeout: 10_000 }).toEqual([]);
  await restart();
  await cancel(id);
  await daemon.until(id, isCancelled);
});

test('after kill -9 in calibration the higher priority goes first; no file is left', async () => {
  await daemon.createJob('low', spec(2));
  await daemon.createJob('high', { ...spec(2), priority: 500 });
  const { uid } = await daemon.until('low', isIn(JobPhase.CALIBRATING));
  daemon.client.close();
  await daemon.kill('SIGKILL');
  // The folder looks as if the daemon had died while the checkpoint was written.
  const torn = join(daemon.folder, 'state', 'jobs', uid, `checkpoint.tmp-${daemon.pid}`);
  mkdirSync(torn, { recursive: true });
  writeFileSync(join(torn, 'model.safetensors'), 'torn');

  await restart();
  const low = await daemon.succeeded('low');
  const high = await daemon.job('high');
  expect(high.state).toBe(JobState.SUCCEEDED);
  expect(high.revision).toBeLessThan(low.revision);
  expect(low.attempts.map(({ endReason }) => endReason)).toEqual([
    Reason.DAEMON_RESTARTED,
    Reason.COMPLETED,
  ]);
  expect(low.result?.parametersSha256).toBe(high.result?.parametersSha256);
  // Images go right after the job has ended.
  await expect.poll(leftFiles, { timeout: 10_000 }).toEqual([]);
});

test('a checkpoint that cannot be written fails its job and not the daemon', async () => {
  await daemon.createJob('unwritable', { ...spec(20), restart: { maxAttempts: 1 } });
  const { uid } = await daemon.until('unwritable', isTraining);
  // A file where the job's folder must be: nothing can be made below it, not even by root.
  const jobFolder = join(daemon.folder, 'state', 'jobs', uid);
  rmSync(jobFolder, { recursive: true, force: true });
  writeFileSync(jobFolder, '');
  const job = await daemon.until('unwritable', ({ state }) => state === JobState.FAILED);
  expect(job.reason).toBe(Reason.RESTART_BUDGET_EXHAUSTED);
  expect(job.message).toContain('CHECKPOINT_WRITE_FAILED');
  await daemon.train('after-all', spec(1));
});
