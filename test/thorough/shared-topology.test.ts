import { readdirSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { SamplingAlgorithm } from '../../src/api/gen/gnnd/v1/sampling_pb.ts';
import { executorPids, TestDaemon } from '../support/daemon.ts';
import { until } from '../support/until.ts';

/** One topology per host in shared memory, whoever samples from it. */

let daemon: TestDaemon;
const flags = ['--topology-idle-ms', '1000'];

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 4, datasets: ['cora', 'citeseer'], flags });
});

function spec(dataset: string, randomSeed: bigint, epochs = 1_000_000) {
  return {
    dataset,
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 8 },
    sampling: { fanouts: [5, 5], algorithm: SamplingAlgorithm.KHOP_UNIFORM },
    training: { epochs, batchSize: 16, randomSeed, threadsPerTrainer: 1 },
    resources: { devices: 2 },
  };
}

/** Inodes of the topologies that a process holds descriptors of. */
function topologiesOf(pid: number): readonly number[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).flatMap((fd) => {
    try {
      const path = join(folder, fd);
      return readlinkSync(path).includes('memfd:gnnd-topology') ? [statSync(path).ino] : [];
    } catch {
      return [];
    }
  });
}

const isTraining = ({ state, progress }: Job) =>
  state === JobState.RUNNING && (progress?.epoch ?? 0) > 0;

async function cancel(id: string): Promise<void> {
  await daemon.call(JobService.method.cancelJob, { name: `jobs/${id}` });
  await daemon.until(id, ({ state }) => state === JobState.CANCELLED);
}

async function segments(): Promise<number> {
  const text = await (await fetch(`http://${daemon.metrics}/metrics`)).text();
  return Number(/^gnnd_shm_segments\{kind="TOPOLOGY"\} (\d+)$/m.exec(text)?.[1]);
}

/** What loading a dataset left in the log folder of a job's first attempt. */
async function loaded(id: string): Promise<boolean> {
  const { uid } = await daemon.job(id);
  const folder = join(daemon.folder, 'state', 'jobs', uid, 'attempts', '1', 'log');
  return readdirSync(folder).includes('load.log');
}

test('two jobs on one dataset share one topology, which outlives them', async () => {
  // At once: one of them has it made.
  await Promise.all([
    daemon.createJob('first', spec('cora', 1n)),
    daemon.createJob('second', spec('cora', 2n)),
  ]);
  for (const id of ['first', 'second']) await daemon.until(id, isTraining);
  const [own, ...others] = topologiesOf(daemon.pid);
  expect(others).toEqual([]);
  const pids = executorPids(daemon.pid);
  expect(pids.length).toBeGreaterThanOrEqual(4);
  for (const pid of pids) expect(topologiesOf(pid)).toEqual([own]);
  expect(await segments()).toBe(1);
  expect([await loaded('first'), await loaded('second')].sort()).toEqual([false, true]);

  await cancel('first');
  expect(topologiesOf(daemon.pid)).toEqual([own]);
  await cancel('second');
  // A third one finds it in time and makes none.
  await daemon.createJob('third', spec('cora', 3n, 1));
  await daemon.succeeded('third');
  expect(await loaded('third')).toBe(false);
  await until(() => topologiesOf(daemon.pid).length === 0);
  expect(await segments()).toBe(0);
});

test('another dataset has its own, and a killed daemon leaves none behind', async () => {
  await daemon.createJob('cora', spec('cora', 1n));
  await daemon.createJob('citeseer', spec('citeseer', 1n));
  for (const id of ['cora', 'citeseer']) await daemon.until(id, isTraining);
  expect(new Set(topologiesOf(daemon.pid)).size).toBe(2);
  const pids = executorPids(daemon.pid);
  const gone = (pid: number) => {
    try {
      process.kill(pid, 0);
      return false;
    } catch {
      return true;
    }
  };
  process.kill(daemon.pid, 'SIGKILL');
  // A topology has no name: it lives as long as a process that holds it.
  await until(() => [daemon.pid, ...pids].every(gone));
  daemon = await TestDaemon.start({ folder: daemon.folder, cpuDevices: 4, flags });
  for (const id of ['cora', 'citeseer']) await cancel(id);
});
