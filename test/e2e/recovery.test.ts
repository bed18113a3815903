import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { type Job, JobState, ModelType } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { daemonExit } from '../../src/base/exit-codes.ts';
import { executorPids, repository, spawnDaemon, TestDaemon } from '../support/daemon.ts';

/** What is left when the daemon dies, and what a new one makes of it. */

let folder = '';
let running: TestDaemon | null = null;

afterEach(async () => {
  await running?.stop(true);
  running = null;
  rmSync(folder, { recursive: true, force: true });
});

async function start(): Promise<TestDaemon> {
  running = await TestDaemon.start(folder === '' ? {} : { folder });
  folder = running.folder;
  return running;
}

async function startWithCora(): Promise<TestDaemon> {
  folder = '';
  const daemon = await start();
  await daemon.import('cora', join(repository, 'test', 'fixtures', 'cora.npz'));
  return daemon;
}

function spec(epochs: number, dataset = 'cora') {
  return {
    dataset,
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 16 },
    sampling: { fanouts: [10, 5] },
    training: { epochs, batchSize: 4, staleness: 1, batchesPerStep: 1, threadsPerTrainer: 1 },
    resources: { devices: 2 },
  };
}

const inMidTraining = ({ state, progress }: Job) =>
  state === JobState.RUNNING && (progress?.epoch ?? 0) >= 2;

/** Waits for a condition that another process brings about; fails after `timeoutMs`. */
async function eventually(holds: () => boolean, timeoutMs: number): Promise<boolean> {
  const deadline = Date.now() + timeoutMs;
  while (!holds()) {
    if (Date.now() > deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return true;
}

/** Mappings of our segments in any process: memfds named gnnd. */
function processesWithSegments(): readonly string[] {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const maps = readFileSync(`/proc/${name}/maps`, 'utf8');
      return maps.includes('memfd:gnnd') && !maps.includes('node_modules/.bin/vitest');
    } catch {
      return false;
    }
  });
}

test('kill -9 of the daemon leaves nothing; the job runs again to the same end', async () => {
  const first = await startWithCora();
  await first.createJob('undisturbed', spec(20));
  const undisturbed = await first.succeeded('undisturbed');
  await first.createJob('killed', spec(20));
  await first.until('killed', inMidTraining);
  const before = await first.job('killed');
  const pids = executorPids(first.pid);
  expect(pids.length).toBeGreaterThanOrEqual(2);
  const segmentsBefore = processesWithSegments();
  expect(segmentsBefore.length).toBeGreaterThanOrEqual(3);

  await first.kill('SIGKILL');
  const daemonPid = first.pid;
  const ours = new Set([...pids, daemonPid].map(String));
  const gone = () =>
    executorPids(daemonPid).length === 0 && !processesWithSegments().some((pid) => ours.has(pid));
  expect(await eventually(gone, 2000)).toBe(true);
  expect(readdirSync('/dev/shm').filter((name) => name.includes('gnnd'))).toEqual([]);

  const second = await start();
  const job = await second.succeeded('killed');
  expect(job.uid).toBe(before.uid);
  expect(job.attempts.map(({ endReason }) => endReason)).toEqual([
    Reason.DAEMON_RESTARTED,
    Reason.COMPLETED,
  ]);
  expect(job.result?.parametersSha256).toBe(undisturbed.result?.parametersSha256);
  expect((await second.job('undisturbed')).result).toEqual(undisturbed.result);
});

test('SIGTERM stops executors, exits 0 and leaves the job for the next daemon', async () => {
  const first = await startWithCora();
  await first.createJob('drained', spec(40));
  await first.until('drained', inMidTraining);
  first.client.close();
  expect(await first.kill('SIGTERM')).toBe(daemonExit.OK);
  expect(executorPids(first.pid)).toEqual([]);
  expect(existsSync(join(folder, 'gnnd.sock'))).toBe(false);

  const second = await start();
  const job = await second.succeeded('drained');
  expect(job.attempts[0]?.endReason).toBe(Reason.DAEMON_SHUTDOWN);
  expect(job.attempts).toHaveLength(2);
});

test('a second daemon on the same state directory is refused at once', async () => {
  const first = await startWithCora();
  const second = spawnDaemon(folder);
  let said = '';
  second.stderr?.on('data', (data) => {
    said += data;
  });
  const code = await new Promise((resolve) => second.once('close', resolve));
  expect(code).toBe(daemonExit.STATE_DIR);
  expect(said).toContain(`pid ${first.pid}`);
  expect((await first.devices()).devices).toHaveLength(2);
});

test('a job cancelled in mid-epoch ends CANCELLED and frees its devices for the next', async () => {
  const daemon = await startWithCora();
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
  const daemon = await startWithCora();
  await daemon.createJob('first', spec(60));
  await daemon.createJob('older', spec(1));
  await daemon.createJob('newer', spec(1));
  await daemon.createJob('urgent', { ...spec(1), priority: 500 });
  const ends = new Map<string, bigint>();
  for (const id of ['first', 'urgent', 'older', 'newer']) {
    const job = await daemon.succeeded(id);
    ends.set(id, job.startTime?.seconds ?? 0n);
    expect(job.revision).toBeGreaterThan(0n);
  }
  const revisions = await Promise.all(
    ['first', 'urgent', 'older', 'newer'].map(async (id) => (await daemon.job(id)).revision),
  );
  expect([...revisions].sort((a, b) => Number(a - b))).toEqual(revisions);
});
