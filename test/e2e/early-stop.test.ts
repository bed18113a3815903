import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  Determinism,
  ExecutorRole,
  type Job,
  JobState,
  ModelType,
  PlacementPolicy,
  StandbyPolicy,
} from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import type { SpecInit } from '../support/crews.ts';
import { repository, TestDaemon } from '../support/daemon.ts';

/** Jobs that end before their last epoch: after the same one, whoever works on them. */

const batches = 35;
const patienceEpochs = 8;
const plannedEpochs = 300;

let daemon: TestDaemon;
let undisturbed: Job;

function crew(samplers: number, trainers: number, standby = StandbyPolicy.OFF): SpecInit {
  return {
    resources: { devices: samplers + trainers },
    placement: { policy: PlacementPolicy.FIXED, samplers, standby },
  };
}

function spec(placed: SpecInit): SpecInit {
  return {
    dataset: 'cora',
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 16, dropout: 0.5 },
    sampling: { fanouts: [10, 5] },
    training: {
      epochs: plannedEpochs,
      batchSize: 4,
      staleness: 1,
      randomSeed: 7n,
      threadsPerTrainer: 1,
      optimizer: { learningRate: 0.001 },
      earlyStop: { patienceEpochs, minDelta: 0 },
      determinism: Determinism.STRICT,
    },
    restart: { executorRestarts: 100 },
    ...placed,
  };
}

/** What every epoch ended with: as many as were trained. */
function modelsOf(job: Job): readonly string[] {
  return job.epochs.map(({ parametersSha256 }) => parametersSha256);
}

/** The first epoch, from 1, after which the last `patienceEpochs` accuracies brought nothing. */
function expectedEnd(accuracies: readonly number[]): number {
  return (
    accuracies.findIndex((_, epoch) => {
      const waited = accuracies.slice(0, epoch + 1);
      return epoch - waited.indexOf(Math.max(...waited)) >= patienceEpochs;
    }) + 1
  );
}

function expectStopped(job: Job): void {
  const { result, message } = job;
  const accuracies = job.epochs.map(({ valAccuracy }) => valAccuracy ?? Number.NaN);
  const best = accuracies.indexOf(Math.max(...accuracies));
  expect(job.epochs.map(({ epoch }) => epoch)).toEqual([...accuracies.keys()]);
  expect(job.epochs).toHaveLength(expectedEnd(accuracies));
  expect(job.epochs.length).toBeLessThan(plannedEpochs);
  for (const report of job.epochs) expect(Number(report.batches)).toBe(batches);
  expect(job.reason).toBe(Reason.COMPLETED);
  expect(message).toBe(
    `stopped early after epoch ${accuracies.length}: no better validation accuracy ` +
      `for ${patienceEpochs} epochs; best epoch ${best + 1}`,
  );
  expect(job.attempts.at(-1)?.message).toBe(message);
  expect(result).toMatchObject({
    epochs: accuracies.length,
    bestEpoch: best,
    bestValAccuracy: accuracies[best],
    testAccuracyBest: undisturbed.result?.testAccuracyBest,
    testAccuracyLast: undisturbed.result?.testAccuracyLast,
    parametersSha256: job.epochs.at(-1)?.parametersSha256,
  });
  expectCheckpoint(job, best);
}

/** Both files hold the parameters that their epochs ended with. */
function expectCheckpoint(job: Job, best: number): void {
  const folder = job.result?.checkpointDir ?? '';
  const manifest = JSON.parse(readFileSync(join(folder, 'MANIFEST.json'), 'utf8'));
  expect(manifest.epochs).toBe(job.epochs.length);
  for (const [file, epoch] of [
    ['last.safetensors', job.epochs.length - 1],
    ['best.safetensors', best],
  ] as const) {
    const { sha256, parametersSha256 } = manifest.files[file];
    const bytes = readFileSync(join(folder, file));
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(sha256);
    expect(parametersSha256).toBe(job.epochs[epoch]?.parametersSha256);
  }
}

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 5 });
  await daemon.import('cora', join(repository, 'test', 'fixtures', 'cora.npz'));
  await daemon.createJob('pair', spec(crew(1, 1)));
  undisturbed = await daemon.succeeded('pair');
});

afterAll(async () => {
  await daemon.stop();
});

test('a job stops after its patience, says so, and reports its best and its last epoch', () => {
  expectStopped(undisturbed);
  expect(undisturbed.epochs.length).toBeGreaterThan(patienceEpochs);
});

test.each([
  ['three Samplers and a Trainer', crew(3, 1)],
  ['two Samplers and three Trainers, standby ALWAYS', crew(2, 3, StandbyPolicy.ALWAYS)],
  ['one device alternating', { resources: { devices: 1 } }],
])('%s stop after the same epoch with the same parameters', async (name, placed) => {
  const id = name.replace(/[^a-z]+/gi, '-').toLowerCase();
  await daemon.createJob(id, spec(placed));
  const job = await daemon.succeeded(id);
  expectStopped(job);
  expect(modelsOf(job)).toEqual(modelsOf(undisturbed));
});

test('executors killed on the way, also while they evaluate, change no end', async () => {
  await daemon.createJob('killed', spec(crew(2, 2)));
  const killed = new Set<number>();
  const kill = (role: ExecutorRole, pid: number) => {
    if (pid <= 1 || killed.has(pid)) return;
    killed.add(pid);
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It had come to its end.
    }
    return role;
  };
  let evaluators = 0;
  let epoch = 0;
  const job = await daemon.until('killed', ({ state, progress }) => {
    for (const { role, pid, stage } of progress?.executors ?? []) {
      if (stage === 'EVALUATE' && evaluators < 6 && kill(role, pid) !== undefined) evaluators += 1;
    }
    if (progress !== undefined && progress.epoch >= epoch + 4) {
      epoch = progress.epoch;
      const [first] = progress.executors.filter(({ role }) => role === ExecutorRole.SAMPLER);
      if (first !== undefined) kill(first.role, first.pid);
    }
    return state === JobState.SUCCEEDED;
  });
  expect(killed.size).toBeGreaterThan(0);
  expect(job.attempts).toHaveLength(1);
  expectStopped(job);
  expect(modelsOf(job)).toEqual(modelsOf(undisturbed));
});

test('a job whose daemon is killed stops after the same epoch when it runs again', async () => {
  const first = await TestDaemon.start();
  await first.import('cora', join(repository, 'test', 'fixtures', 'cora.npz'));
  await first.createJob('again', spec(crew(1, 1)));
  await first.until('again', ({ progress }) => (progress?.epoch ?? 0) >= patienceEpochs);
  first.client.close();
  await first.kill('SIGKILL');
  const second = await TestDaemon.start({ folder: first.folder });
  try {
    const job = await second.succeeded('again');
    expect(job.attempts.map(({ endReason }) => endReason)).toEqual([
      Reason.DAEMON_RESTARTED,
      Reason.COMPLETED,
    ]);
    expectStopped(job);
    expect(modelsOf(job)).toEqual(modelsOf(undisturbed));
  } finally {
    await second.stop();
  }
});
