import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CheckpointService } from '../../src/api/gen/gnnd/v1/checkpoint_service_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { pair, type SpecInit } from '../support/crews.ts';
import { repository, TestDaemon } from '../support/daemon.ts';
import { ringGraph } from '../support/ring-graph.ts';

/**
 * State directories that earlier versions wrote: a dataset, a job that SUCCEEDED with its
 * checkpoint, one that was running when its daemon was killed and one that rests, both with an
 * image. A new version opens all of it. WRITE_STATE=v12 adds test/fixtures/state-v12.tar.gz.
 */

const fixtures = join(repository, 'test', 'fixtures');
const written = readdirSync(fixtures).filter((name) => /^state-v\d+\.tar\.gz$/.test(name));
/** What stands in a fixture for the folder that it was made in. */
const placeholder = '/fixture';
const epochs = 400;
const batchesPerEpoch = 20;
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gnnd-state-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const spec = (count: number): SpecInit => ({
  dataset: 'ring',
  model: { type: ModelType.GRAPHSAGE, hiddenDim: 8 },
  sampling: { fanouts: [3, 2] },
  training: { epochs: count, batchSize: 5, staleness: 1, batchesPerStep: 1, threadsPerTrainer: 1 },
  checkpoint: { everySteps: 7n, keepLast: 1 },
  ...pair,
});

function tar(...args: readonly string[]): void {
  const { status, stderr } = spawnSync('tar', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

/** Folders are stored as absolute paths. */
function moveStore(state: string, from: string, to: string): void {
  const store = new Sqlite(join(state, 'store', 'gnnd.db'));
  for (const column of ['jobs.result', 'datasets.path']) {
    const [table, name] = column.split('.');
    store.prepare(`UPDATE ${table} SET ${name} = replace(${name}, ?, ?)`).run(from, to);
  }
  store.close();
}

test.runIf(process.env['WRITE_STATE'])('a fixture is written', async () => {
  const source = join(folder, 'ring');
  mkdirSync(source);
  for (const [name, bytes] of Object.entries(ringGraph.files)) {
    writeFileSync(join(source, name), bytes);
  }
  const daemon = await TestDaemon.start({ folder: join(folder, 'd'), cpuDevices: 4 });
  await daemon.import('ring', source);
  await daemon.train('done', spec(3));
  const isWell = ({ progress }: Job) => (progress?.epoch ?? 0) >= 20;
  for (const id of ['rests', 'interrupted']) {
    await daemon.createJob(id, spec(epochs));
    await daemon.until(id, isWell);
    if (id === 'rests') await daemon.call(JobService.method.suspendJob, { name: 'jobs/rests' });
    if (id === 'rests') await daemon.until(id, ({ state }) => state === JobState.SUSPENDED);
  }
  daemon.client.close();
  await daemon.kill('SIGKILL');
  const state = join(daemon.folder, 'state');
  moveStore(state, daemon.folder, placeholder);
  const target = join(fixtures, `state-${process.env['WRITE_STATE']}.tar.gz`);
  tar('-C', state, '--exclude=attempts', '-czf', target, 'store', 'datasets', 'jobs');
});

test.each(written)('%s: its jobs go on from their images, its checkpoint is read', async (name) => {
  const state = join(folder, 'state');
  mkdirSync(state);
  tar('-C', state, '-xzf', join(fixtures, name));
  moveStore(state, placeholder, folder);
  const daemon = await TestDaemon.start({ folder, cpuDevices: 4 });
  try {
    const done = await daemon.job('done');
    expect(done.state).toBe(JobState.SUCCEEDED);
    const { listCheckpoints } = CheckpointService.method;
    const { checkpoints } = await daemon.call(listCheckpoints, { name: 'jobs/done' });
    expect(checkpoints.map(({ parametersSha256 }) => parametersSha256)).toContain(
      done.result?.parametersSha256,
    );
    expect((await daemon.job('rests')).state).toBe(JobState.SUSPENDED);
    await daemon.call(JobService.method.resumeJob, { name: 'jobs/rests' });
    for (const id of ['rests', 'interrupted']) {
      const job = await daemon.succeeded(id);
      expect(job.attempts.map(({ endReason }) => endReason)).toEqual([
        id === 'rests' ? Reason.USER_SUSPENDED : Reason.DAEMON_RESTARTED,
        Reason.COMPLETED,
      ]);
      expect(job.attempts[1]?.resumed?.epochs).toBeGreaterThan(0);
      expect(job.epochs.map(({ epoch }) => epoch)).toEqual([...Array(epochs).keys()]);
      for (const { batches } of job.epochs) expect(Number(batches)).toBe(batchesPerEpoch);
    }
    // A job begins with the parameters of the old one.
    const from = { ...spec(2), training: { ...spec(2).training, startFrom: 'done@best' } };
    await daemon.train('begins', from);
  } finally {
    await daemon.stop();
  }
});
