import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EvaluationMethod } from '../../src/api/gen/gnnd/v1/evaluation_pb.ts';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import { Prefetch } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import type { Job } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { StandbyPolicy } from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import { SamplingAlgorithm } from '../../src/api/gen/gnnd/v1/sampling_pb.ts';
import {
  Determinism,
  LrScheduleType,
  OptimizerType,
  Precision,
  StalenessCompensation,
} from '../../src/api/gen/gnnd/v1/training_pb.ts';
import {
  crew,
  evaluationsOf,
  expectEveryBatchOnce,
  killEvaluators,
  midEpoch,
  modelsOf,
  otherCrews,
  pair,
  type SpecInit,
  signal,
} from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import { expectStopped } from '../support/early-stop.ts';
import { checkHistory } from '../support/ledger-history.ts';
import { tamperings } from '../support/tampering.ts';

/**
 * Elastic determinism (docs/architecture.md): the final parameters depend on the spec and the
 * dataset, not on who sampled, who trained, who died or who helped out. All crews and kills are
 * here, on specs that have all that could come between; test/long draws others.
 */

let daemon: TestDaemon;
/** What happened to the segments of all jobs here. */
let traces: string;

beforeAll(async () => {
  traces = mkdtempSync(join(tmpdir(), 'gnnd-traces-'));
  const env = { GNND_LEDGER_TRACE: traces };
  daemon = await TestDaemon.start({ cpuDevices: 5, datasets: ['cora'], env });
});

afterAll(async () => {
  await daemon.stop();
  rmSync(traces, { recursive: true, force: true });
});

const { SAMPLER, TRAINER } = ExecutorRole;
const { NONE, PREDICT } = StalenessCompensation;
const batchSize = 4;
const batchesPerEpoch = 35;
const patienceEpochs = 6;
const plannedEpochs = 300;

const common: SpecInit = {
  dataset: 'cora',
  timeouts: { stallMs: 2000n },
  restart: { executorRestarts: 100 },
};
const training = { batchSize, randomSeed: 7n };
const sage = { type: ModelType.GRAPHSAGE, hiddenDim: 16, dropout: 0.5 };

/** Each takes part in the bits, or in when and where work is done. */
const everything: SpecInit = {
  ...common,
  model: { type: ModelType.GATV2, hiddenDim: 16, heads: 2, dropout: 0.5, attentionDropout: 0.3 },
  sampling: {
    algorithm: SamplingAlgorithm.LABOR,
    fanouts: [10, 5],
    labor: { dependencyWindow: 4 },
  },
  features: { standardize: true },
  cache: { ratio: 0.1, standbyRatio: 0.3, prefetch: Prefetch.ON },
  training: {
    ...training,
    epochs: plannedEpochs,
    staleness: 2,
    stalenessCompensation: PREDICT,
    batchesPerStep: 3,
    optimizer: { type: OptimizerType.ADAMW, learningRate: 0.003, clipNorm: 2 },
    lrSchedule: { type: LrScheduleType.COSINE, warmupEpochs: 2 },
    earlyStop: { patienceEpochs, minDelta: 0 },
    determinism: Determinism.STRICT,
    balanceClasses: true,
  },
  // In chunks that lie in a file, whose number and order no crew decides.
  evaluation: { method: EvaluationMethod.EXACT, maxBytes: 1n },
};

const serial: SpecInit = {
  ...common,
  model: sage,
  sampling: { fanouts: [10, 5] },
  // Enough epochs to be caught in the middle.
  training: {
    ...training,
    epochs: 24,
    staleness: 0,
    batchesPerStep: 1,
    precision: Precision.BFLOAT16,
  },
  evaluation: { everyEpochs: 3, method: EvaluationMethod.SAMPLED, fanouts: [4, 3] },
};

/** The final model of each block below. */
const finals = new Set<string | undefined>();
let jobs = 0;

async function run(spec: SpecInit, disturb?: (id: string) => Promise<unknown>): Promise<Job> {
  jobs += 1;
  const id = `job-${jobs}`;
  await daemon.createJob(id, spec);
  await disturb?.(id);
  const job = await daemon.succeeded(id);
  expectEveryBatchOnce(job, batchesPerEpoch);
  return job;
}

async function undisturbed(spec: SpecInit): Promise<Job> {
  const job = await run({ ...spec, ...pair });
  const models = modelsOf(job);
  expect(new Set(models).size).toBe(models.length);
  expect(finals).not.toContain(models.at(-1));
  finals.add(models.at(-1));
  return job;
}

function expectSame(job: Job, expected: Job): void {
  expect(modelsOf(job)).toEqual(modelsOf(expected));
  expect(evaluationsOf(job)).toEqual(evaluationsOf(expected));
  expect(job.message).toBe(expected.message);
}

describe.each([
  ['S = 2 predicted, G = 3, stopped early, with all there is', everything],
  ['S = 0 in bfloat16, with evaluations on samples', serial],
])('%s', (_, spec) => {
  let expected: Job;

  beforeAll(async () => {
    expected = await undisturbed(spec);
  });

  test.each(Object.entries(otherCrews))('%s train the same model', async (_name, other) => {
    expectSame(await run({ ...spec, ...other }), expected);
  });

  test.each([
    ['a Sampler', [SAMPLER]],
    ['a Trainer', [TRAINER]],
    ['both', [SAMPLER, TRAINER]],
  ] as const)('kill -9 of %s in mid-epoch changes nothing', async (_name, roles) => {
    const job = await run({ ...spec, ...pair }, async (id) => {
      const pids = await midEpoch(daemon, id);
      for (const role of roles) signal(pids.get(role), 'SIGKILL');
    });
    expect(job.attempts).toHaveLength(1);
    expect(job.attempts[0]?.exits.map(({ signal: name }) => name)).toEqual(
      roles.map(() => 'SIGKILL'),
    );
    expectSame(job, expected);
  });

  test('Trainers killed in the midst of evaluations change none of them', async () => {
    // Evaluations on samples may be too short to be seen; others are, in one of a few jobs.
    let triesLeft = spec === everything ? 5 : 1;
    let killed = 0;
    while (triesLeft > 0 && killed === 0) {
      triesLeft -= 1;
      const job = await run({ ...spec, ...crew(1, 3) }, async (id) => {
        killed = await killEvaluators(daemon, id, 5);
      });
      expect(job.attempts).toHaveLength(1);
      expectSame(job, expected);
    }
    if (spec === everything) expect(killed).toBeGreaterThan(0);
  });

  test('a Trainer stopped in mid-epoch is killed, replaced, and changes nothing', async () => {
    const job = await run({ ...spec, ...pair }, async (id) => {
      signal((await midEpoch(daemon, id)).get(TRAINER), 'SIGSTOP');
    });
    expect(job.attempts[0]?.exits[0]?.logTail).toContain('executor.started');
    expect(job.attempts[0]?.executorRestarts).toBe(1);
    expectSame(job, expected);
  });

  test.runIf(spec === everything)('its end is told with its best and its last epoch', () => {
    expectStopped(expected, patienceEpochs, plannedEpochs);
  });
});

test.each([
  ['S = 2', { staleness: 2, stalenessCompensation: NONE, batchesPerStep: 1 }],
  ['S = 2 predicted', { staleness: 2, stalenessCompensation: PREDICT, batchesPerStep: 1 }],
  ['G = 3', { staleness: 0, stalenessCompensation: NONE, batchesPerStep: 3 }],
])('%s is a model of its own, the same with many who help and die', async (_, steps) => {
  const spec = { ...serial, evaluation: {}, training: { ...training, epochs: 12, ...steps } };
  const expected = await undisturbed(spec);
  const helped = { ...spec, ...crew(2, 3, StandbyPolicy.ALWAYS) };
  const job = await run(helped, (id) => killEvaluators(daemon, id, 2));
  expectSame(job, expected);
});

describe('what all these did to their segments, as they wrote it down,', () => {
  const historiesOf = () =>
    readdirSync(traces).map((name) => ({ name, bytes: readFileSync(join(traces, name)) }));

  test('obeys the rules of the segment, change by change, to the last step', () => {
    const verdicts = historiesOf().map(({ name, bytes }) => ({ name, ...checkHistory(bytes) }));
    expect(verdicts.flatMap(({ name, violations }) => violations.map((it) => `${name}: ${it}`))) //
      .toEqual([]);
    expect(verdicts.filter(({ version, steps }) => version !== steps)).toEqual([]);
    // Each job has one, its calibration another.
    expect(verdicts.length).toBeGreaterThanOrEqual(jobs);
    const sum = (of: (verdict: (typeof verdicts)[number]) => number) =>
      verdicts.reduce((total, verdict) => total + of(verdict), 0);
    expect(sum(({ steps }) => steps)).toBeGreaterThan(jobs * 12);
    expect(sum(({ changes }) => changes)).toBeGreaterThan(sum(({ steps }) => 5 * steps));
  });

  test.each(tamperings)('would show that $what', ({ tamper }) => {
    const made = historiesOf()
      .map(({ bytes }) => ({ bytes, other: tamper(bytes) }))
      .find(({ other }) => other !== null);
    if (made?.other == null) throw new Error('no history holds anything of the kind');
    expect(checkHistory(made.bytes).violations).toEqual([]);
    expect(checkHistory(made.other).violations).not.toEqual([]);
  });
});
