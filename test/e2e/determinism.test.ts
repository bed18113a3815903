import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  EvaluationMethod,
  ExecutorRole,
  type Job,
  JobState,
  ModelType,
  PlacementPolicy,
  StalenessCompensation,
  StandbyPolicy,
} from '../../src/api/gen/gnnd/v1/job_pb.ts';
import type { SpecInit } from '../support/crews.ts';
import { repository, TestDaemon } from '../support/daemon.ts';

/**
 * Elastic determinism (docs/architecture.md): the final parameters depend on the spec and the
 * dataset, not on who sampled, who trained, who died or who helped out.
 */

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 5 });
  await daemon.import('cora', join(repository, 'test', 'fixtures', 'cora.npz'));
});

afterAll(async () => {
  await daemon.stop();
});

// Enough to be caught in the middle on an idle machine, too.
const epochs = 36;
const trainNodes = 140;
const batchSize = 4;
const batches = Math.ceil(trainNodes / batchSize);

const { NONE, PREDICT } = StalenessCompensation;

interface Crew {
  readonly devices: number;
  readonly samplers: number;
  readonly standby: StandbyPolicy;
}

interface Steps {
  readonly staleness: number;
  readonly stalenessCompensation: StalenessCompensation;
  readonly batchesPerStep: number;
  readonly evaluation?: NonNullable<SpecInit['evaluation']>;
}

/** Everything that decides bits, and nothing else, is the same in every job. */
function spec(crew: Crew, { evaluation, ...steps }: Steps) {
  return {
    ...(evaluation === undefined ? {} : { evaluation }),
    dataset: 'cora',
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 16, dropout: 0.5 },
    sampling: { fanouts: [10, 5] },
    training: { epochs, batchSize, ...steps, randomSeed: 7n, threadsPerTrainer: 1 },
    resources: { devices: crew.devices },
    placement: {
      policy: crew.devices === 1 ? PlacementPolicy.AUTO : PlacementPolicy.FIXED,
      ...(crew.devices === 1 ? {} : { samplers: crew.samplers }),
      standby: crew.standby,
    },
    timeouts: { stallMs: 2000n },
    restart: { executorRestarts: 20 },
  };
}

const { EXACT: exact, SAMPLED: sampled } = EvaluationMethod;
const pair: Crew = { devices: 2, samplers: 1, standby: StandbyPolicy.OFF };
const crews: Readonly<Record<string, Crew>> = {
  '3 Samplers and 1 Trainer': { devices: 4, samplers: 3, standby: StandbyPolicy.OFF },
  '1 Sampler and 3 Trainers': { devices: 4, samplers: 1, standby: StandbyPolicy.OFF },
  '2 Samplers and 3 Trainers, standby ALWAYS': {
    devices: 5,
    samplers: 2,
    standby: StandbyPolicy.ALWAYS,
  },
  'one device alternating': { devices: 1, samplers: 1, standby: StandbyPolicy.AUTO },
};

let serial = 0;

async function run(
  crew: Crew,
  steps: Steps,
  disturb?: (id: string) => Promise<void>,
): Promise<Job> {
  serial += 1;
  const id = `job-${serial}`;
  await daemon.createJob(id, spec(crew, steps));
  await disturb?.(id);
  const job = await daemon.succeeded(id);
  expectEveryBatchOnce(job);
  return job;
}

function expectEveryBatchOnce(job: Job): void {
  expect(job.epochs.map(({ epoch }) => epoch)).toEqual([...Array(epochs).keys()]);
  for (const report of job.epochs) {
    expect(Number(report.batches)).toBe(batches);
    const byDevice = Object.values(report.batchesByDevice).reduce((sum, n) => sum + Number(n), 0);
    expect(byDevice).toBe(batches);
    expect(report.ledgerDigest).toMatch(/^[0-9a-f]{16}$/);
  }
  expect(job.epochs.at(-1)?.parametersSha256).toBe(job.result?.parametersSha256);
}

/** What every epoch ended with: equal in all runs of one spec, not only at the end. */
function modelsOf(job: Job): readonly string[] {
  return job.epochs.map(({ parametersSha256 }) => parametersSha256);
}

/** What evaluations came to, which all Trainers and standby Trainers share. */
function evaluationsOf({ epochs: reports, result }: Job) {
  return {
    val: reports.map(({ valAccuracy }) => valAccuracy),
    best: [result?.bestEpoch, result?.bestValAccuracy],
    test: [result?.testAccuracyLast, result?.testAccuracyBest],
  };
}

/** Waits until the job is in the middle of an epoch, then answers the pids by role. */
async function midEpoch(id: string): Promise<ReadonlyMap<ExecutorRole, number>> {
  const job = await daemon.until(
    id,
    ({ state, progress }) =>
      state === JobState.RUNNING &&
      progress !== undefined &&
      progress.epoch >= 2 &&
      progress.batchesCommitted > 0n &&
      progress.executors.length === 2,
  );
  return new Map(job.progress?.executors.map(({ role, pid }) => [role, pid]) ?? []);
}

function signal(pid: number | undefined, name: NodeJS.Signals): void {
  if (pid === undefined || pid <= 1) throw new Error('no such executor');
  process.kill(pid, name);
}

/** The final model of each block below. */
const finals = new Set<string | undefined>();

const jobs: readonly (readonly [string, Steps])[] = [
  ['S = 0', { staleness: 0, stalenessCompensation: NONE, batchesPerStep: 1 }],
  ['S = 2', { staleness: 2, stalenessCompensation: NONE, batchesPerStep: 1 }],
  ['S = 2, predicted', { staleness: 2, stalenessCompensation: PREDICT, batchesPerStep: 1 }],
  ['G = 3', { staleness: 0, stalenessCompensation: NONE, batchesPerStep: 3 }],
  [
    'evaluations of every third epoch in a file',
    {
      staleness: 1,
      stalenessCompensation: PREDICT,
      batchesPerStep: 1,
      evaluation: { everyEpochs: 3, method: exact, maxBytes: 1n },
    },
  ],
  [
    'evaluations on samples',
    {
      staleness: 1,
      stalenessCompensation: NONE,
      batchesPerStep: 1,
      evaluation: { method: sampled, fanouts: [4, 3] },
    },
  ],
];

describe.each(jobs)('%s', (_, steps) => {
  let expected: readonly string[] = [];
  let evaluated: ReturnType<typeof evaluationsOf>;

  beforeAll(async () => {
    const job = await run(pair, steps);
    expected = modelsOf(job);
    evaluated = evaluationsOf(job);
    expect(new Set(expected).size).toBe(epochs);
    expect(finals).not.toContain(expected.at(-1));
    finals.add(expected.at(-1));
    for (const sha256 of expected) expect(sha256).toMatch(/^[0-9a-f]{64}$/);
  });

  test.each(Object.entries(crews))('%s train the same model', async (_name, crew) => {
    const job = await run(crew, steps);
    expect(modelsOf(job)).toEqual(expected);
    expect(evaluationsOf(job)).toEqual(evaluated);
  });

  test.each([
    ['a Sampler', [ExecutorRole.SAMPLER]],
    ['a Trainer', [ExecutorRole.TRAINER]],
    ['both', [ExecutorRole.SAMPLER, ExecutorRole.TRAINER]],
  ] as const)('kill -9 of %s in mid-epoch changes nothing', async (_name, roles) => {
    const job = await run(pair, steps, async (id) => {
      const pids = await midEpoch(id);
      for (const role of roles) signal(pids.get(role), 'SIGKILL');
    });
    expect(job.attempts).toHaveLength(1);
    expect(job.attempts[0]?.exits.map(({ signal: name }) => name)).toEqual(
      roles.map(() => 'SIGKILL'),
    );
    expect(modelsOf(job)).toEqual(expected);
    expect(evaluationsOf(job)).toEqual(evaluated);
  });

  test('a Trainer killed in the midst of evaluations changes none of them', async () => {
    const job = await run(crews['1 Sampler and 3 Trainers'] ?? pair, steps, async (id) => {
      const killed = new Set<number>();
      await daemon.until(id, ({ state, progress }) => {
        for (const { role, pid, stage } of progress?.executors ?? []) {
          if (stage !== 'EVALUATE' || killed.size >= 4 || killed.has(pid)) continue;
          expect(role).toBe(ExecutorRole.TRAINER);
          killed.add(pid);
          signal(pid, 'SIGKILL');
        }
        return state === JobState.SUCCEEDED || killed.size >= 4;
      });
    });
    expect(modelsOf(job)).toEqual(expected);
    expect(evaluationsOf(job)).toEqual(evaluated);
  });

  test('a Trainer stopped in mid-epoch is killed, replaced, and changes nothing', async () => {
    const job = await run(pair, steps, async (id) => {
      signal((await midEpoch(id)).get(ExecutorRole.TRAINER), 'SIGSTOP');
    });
    expect(job.attempts[0]?.exits[0]?.logTail).toContain('executor.started');
    expect(job.attempts[0]?.executorRestarts).toBe(1);
    expect(modelsOf(job)).toEqual(expected);
  });
});
