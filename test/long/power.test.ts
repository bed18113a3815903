import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { readCheckpoint } from '../../src/files/checkpoint.ts';
import {
  type Operation,
  operationsOf,
  sayRecord,
  writeCrashImage,
} from '../support/crash-images.ts';
import { evaluationsOf, modelsOf, pair, type SpecInit } from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import { faultsLibrary } from '../support/faults.ts';
import { unlistedFiles } from '../support/leftovers.ts';
import { type Random, randomOf } from '../support/random.ts';
import { ringGraph } from '../support/ring-graph.ts';
import { skipped } from '../support/skipped.ts';

/**
 * The power fails while a daemon is at work: its state directory, as the disk may have it then,
 * of which all processes' writes, syncs and names were recorded. As root: executors are given no
 * LD_PRELOAD, so a mount namespace has an /etc/ld.so.preload.
 */

const cases = 16;

function spec(epochs: number, randomSeed: bigint): SpecInit {
  return {
    ...{ dataset: 'ring', randomSeed },
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 8 },
    sampling: { fanouts: [3, 3] },
    training: { epochs, batchSize: 4, staleness: 1, batchesPerStep: 1, threadsPerTrainer: 1 },
    checkpoint: { everyEpochs: 1, everySteps: 9n, keepLast: 2 },
    ...pair,
  };
}

/** What the client of the daemon was told, in the order of the record; the last of a job holds. */
type Acknowledged = 'EXISTS' | 'SUCCEEDED' | 'CANCELLED' | 'DELETING' | 'GONE';
const heading = 'acknowledged: ';

function acknowledgedIn(operations: readonly Operation[]): ReadonlyMap<string, Acknowledged> {
  const told = operations.flatMap((it) => (it.kind === 'SAY' ? [it.text] : []));
  const ours = told.filter((text) => text.startsWith(heading));
  return new Map(ours.map((text) => JSON.parse(text.slice(heading.length))));
}

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'gnnd-power-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Puts the library before all processes that the shell becomes, or that it starts. */
function preloaded(library: string): string {
  const layer = join(root, 'layer');
  return [
    `mkdir ${layer}`,
    `mount -t tmpfs layer ${layer}`,
    `mkdir ${layer}/upper ${layer}/work`,
    `mount -t overlay -o lowerdir=/etc,upperdir=${layer}/upper,workdir=${layer}/work etc /etc`,
    `echo ${library} > /etc/ld.so.preload`,
  ].join(' && ');
}

/** A day of a daemon: jobs that end, that are cancelled, deleted, that rest and go on. */
async function work(daemon: TestDaemon, record: string): Promise<ReadonlyMap<string, Job>> {
  const { cancelJob, deleteJob, suspendJob, resumeJob } = JobService.method;
  const say = (job: string, what: Acknowledged) =>
    appendFileSync(record, sayRecord(heading + JSON.stringify([job, what])));
  const submit = async (id: string, epochs: number, randomSeed: bigint) => {
    await daemon.createJob(id, spec(epochs, randomSeed));
    say(id, 'EXISTS');
  };
  const ended = new Map<string, Job>();
  const succeeds = async (id: string) => {
    ended.set(id, await daemon.succeeded(id));
    say(id, 'SUCCEEDED');
  };
  const reaches = (id: string, epoch: number) =>
    daemon.until(id, ({ progress }) => (progress?.epoch ?? 0) >= epoch);

  await daemon.import('ring', join(root, 'graph'));
  await submit('first', 3, 1n);
  await submit('cancelled', 500, 2n);
  await submit('long', 200, 3n);
  await succeeds('first');
  await reaches('cancelled', 1);
  await daemon.call(cancelJob, { name: 'jobs/cancelled' });
  await daemon.until('cancelled', ({ state }) => state === JobState.CANCELLED);
  say('cancelled', 'CANCELLED');
  await reaches('long', 2);
  await daemon.call(suspendJob, { name: 'jobs/long' });
  await submit('second', 4, 4n);
  await succeeds('second');
  await daemon.until('long', ({ state }) => state === JobState.SUSPENDED);
  say('first', 'DELETING');
  await daemon.call(deleteJob, { name: 'jobs/first' });
  say('first', 'GONE');
  await daemon.call(resumeJob, { name: 'jobs/long' });
  await submit('third', 2, 5n);
  await succeeds('long');
  await succeeds('third');
  return ended;
}

/** A daemon that finds `state` as the disk had it. */
async function comesBack(
  folder: string,
  acknowledged: ReadonlyMap<string, Acknowledged>,
  ended: ReadonlyMap<string, Job>,
): Promise<number> {
  const daemon = await TestDaemon.start({ folder, cpuDevices: 4 });
  let resumed = 0;
  try {
    for (const [id, what] of acknowledged) {
      const job = await daemon.job(id).catch(() => null);
      if (what === 'GONE') expect(job, id).toBeNull();
      if (what === 'GONE' || (what === 'DELETING' && job === null)) continue;
      if (job === null) throw new Error(`${id} is lost`);
      if (what === 'SUCCEEDED') expect(JobState[job.state], id).toBe('SUCCEEDED');
      if (what === 'CANCELLED') expect(JobState[job.state], id).toBe('CANCELLED');
    }
    const listed = await daemon.call(JobService.method.listJobs, {});
    for (const { state, name } of listed.jobs) {
      const id = name.slice('jobs/'.length);
      // Told to end, which is acknowledged or was not.
      if (id === 'cancelled') {
        if (state !== JobState.CANCELLED) await cancel(daemon, name);
        continue;
      }
      if (state === JobState.SUSPENDED) await daemon.call(JobService.method.resumeJob, { name });
      const job = await daemon.succeeded(id);
      resumed += job.attempts.some((attempt) => attempt.resumed !== undefined) ? 1 : 0;
      const meant = ended.get(id);
      if (meant === undefined) throw new Error(`${id} was never asked for`);
      expect(modelsOf(job), id).toEqual(modelsOf(meant));
      expect(evaluationsOf(job), id).toEqual(evaluationsOf(meant));
      expect(job.result?.parametersSha256).toBe(meant.result?.parametersSha256);
      const checkpoint = join(folder, 'state', 'jobs', job.uid, 'checkpoint');
      for (const kind of ['LAST', 'BEST'] as const) await readCheckpoint(checkpoint, kind);
    }
    expect(unlistedFiles(join(folder, 'state'))).toEqual([]);
  } catch (error) {
    throw new Error(`${String(error)}\n${daemon.logs.slice(-3000)}`, { cause: error });
  } finally {
    await daemon.stop();
  }
  return resumed;
}

async function cancel(daemon: TestDaemon, name: string): Promise<void> {
  await daemon.call(JobService.method.cancelJob, { name });
  await daemon.until(name.slice('jobs/'.length), ({ state }) => state === JobState.CANCELLED);
}

const mayMount = spawnSync('unshare', ['-m', 'true']).status === 0;

test('whenever the power fails, what was told is there, and jobs end as they should', async () => {
  const library = faultsLibrary();
  if (!mayMount || library === null) {
    skipped('a record of all that a daemon writes', 'it needs root and a C compiler');
    return;
  }
  const graph = join(root, 'graph');
  mkdirSync(graph);
  for (const [name, bytes] of Object.entries(ringGraph.files))
    writeFileSync(join(graph, name), bytes);
  const folder = join(root, 'daemon');
  const state = join(folder, 'state');
  const record = join(root, 'record');
  const daemon = await TestDaemon.start({
    ...{ folder, cpuDevices: 4, within: ['unshare', '-m'], before: preloaded(library) },
    env: { GNND_FAULT_IO: state, GNND_FAULT_RECORD: record },
  });
  const ended = await work(daemon, record);
  await daemon.stop(true);

  const operations = operationsOf(readFileSync(record));
  const images = operations.filter((it) => it.kind === 'RENAME' && it.to.endsWith('.image'));
  expect(images.length).toBeGreaterThan(5);
  const firstJob = operations.findIndex((it) => it.kind === 'SAY' && it.text.startsWith(heading));
  let resumed = 0;
  for (let i = 0; i < cases; i += 1) {
    const seed = Number(process.env['GNND_SEED'] ?? Math.floor(Math.random() * 2 ** 31)) + i;
    const random: Random = randomOf(seed);
    // Each from its part of the day, the last from its end.
    const span = (operations.length - firstJob) / cases;
    const end = Math.floor(firstJob + span * (i + random.unit())) + 1;
    const image = join(root, `image-${i}`);
    writeCrashImage(operations, { root: state, folder: join(image, 'state'), end, random });
    try {
      resumed += await comesBack(image, acknowledgedIn(operations.slice(0, end)), ended);
    } catch (error) {
      throw new Error(`case ${i}, GNND_SEED=${seed - i}: ${String(error)}`, { cause: error });
    }
  }
  // Not all jobs begin from the beginning.
  expect(resumed).toBeGreaterThan(cases / 4);
}, 600_000);
