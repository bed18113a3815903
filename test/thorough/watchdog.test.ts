import { beforeAll, expect, test } from 'vitest';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { pair, type SpecInit } from '../support/crews.ts';
import { executorPids, TestDaemon } from '../support/daemon.ts';
import { frozen, until } from '../support/until.ts';

/** Processes that are stopped: who is killed for it, and who is not. */

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ datasets: ['cora'], cpuDevices: 2 });
});

const stallMs = 1000;
const timeouts = { stallMs: BigInt(stallMs) };

const spec = (epochs: number): SpecInit => ({
  dataset: 'cora',
  model: { type: ModelType.GRAPHSAGE, hiddenDim: 16 },
  sampling: { fanouts: [10, 5] },
  training: { epochs, batchSize: 4, staleness: 1, batchesPerStep: 1, threadsPerTrainer: 1 },
  ...pair,
});

const isTraining = ({ state, progress }: Job) =>
  state === JobState.RUNNING && (progress?.executors.length ?? 0) > 0;

test('a daemon that was frozen for longer than stall_ms kills nobody', async () => {
  await daemon.createJob('frozen', { ...spec(100), timeouts });
  const before = await daemon.until('frozen', isTraining);
  const pids = [daemon.pid, ...(before.progress?.executors ?? []).map(({ pid }) => pid)];
  // The executors come back a little later than the daemon.
  await frozen(pids, 2 * stallMs);
  const job = await daemon.succeeded('frozen');
  expect(job.attempts).toHaveLength(1);
  expect(job.attempts[0]).toMatchObject({ exits: [], executorRestarts: 0 });
});

test('a stalled executor leaves where its threads were', async () => {
  await daemon.createJob('dumped', { ...spec(100), timeouts });
  const before = await daemon.until('dumped', isTraining);
  const pid = before.progress?.executors[0]?.pid ?? 0;
  process.kill(pid, 'SIGSTOP');
  const job = await daemon.succeeded('dumped');
  // On a host that pauses for a second, another executor may have ended silent, too.
  const exit = job.attempts[0]?.exits.find(({ logTail }) => logTail.includes(`gnnd.dump ${pid} `));
  expect(exit?.reason).toBe(Reason.EXECUTOR_STALLED);
  expect(exit?.logTail).toMatch(/gnnd\.dump \d+ gave no sign of life/);
  expect(exit?.logTail).toMatch(/^thread \d+.*: \S+, T, in \S+, call /m);
});

test('a Preparer that is stopped is killed after stall_ms', async () => {
  const alone = await TestDaemon.start({ datasets: ['citeseer'], cpuDevices: 2 });
  try {
    await alone.createJob('loads', { ...spec(2), dataset: 'citeseer', timeouts });
    const preparer = await until(() => executorPids(alone.pid)[0], { everyMs: 2 });
    process.kill(preparer, 'SIGSTOP');
    const job = await alone.succeeded('loads');
    expect(job.attempts[0]).toMatchObject({ endReason: Reason.EXECUTOR_STALLED });
    expect(job.attempts[0]?.message).toMatch(/was stopped for 1\.0 s: killed/);
  } finally {
    await alone.stop();
  }
});
