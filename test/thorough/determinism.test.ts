import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import type { Job } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { StandbyPolicy } from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import { StalenessCompensation } from '../../src/api/gen/gnnd/v1/training_pb.ts';
import { temporaryFolder } from '../support/at-end.ts';
import {
  crew,
  expectSame,
  jobsOn,
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
import {
  batchesPerEpoch,
  everything,
  historyOfAllLevels,
  historyOfOneLevel,
  links,
  linksOfDegrees,
  linksOfJointNegatives,
  localityOfGcn,
  localityOfSage,
  patienceEpochs,
  plannedEpochs,
  serial,
  training,
} from '../support/elastic-specs.ts';
import { checkHistory } from '../support/ledger-history.ts';
import { tamperings } from '../support/tampering.ts';

/**
 * Elastic determinism (docs/architecture.md): the final parameters depend on the spec and the
 * dataset, not on who sampled, who trained, who died or who helped out. All crews and kills are
 * here, on specs that have all that could come between; test/long draws others.
 */

let daemon: TestDaemon;
/** What happened to the segments of all jobs here. */
const traces = temporaryFolder('gnnd-traces-');

beforeAll(async () => {
  const env = { GNND_LEDGER_TRACE: traces };
  daemon = await TestDaemon.start({ cpuDevices: 5, datasets: ['cora'], env });
});

const { SAMPLER, TRAINER } = ExecutorRole;
const { NONE, PREDICT } = StalenessCompensation;
const jobs = jobsOn(() => daemon, batchesPerEpoch);
/** The final model of each block below. */
const finals = new Set<string | undefined>();

async function undisturbed(spec: SpecInit): Promise<Job> {
  const job = await jobs.run({ ...spec, ...pair });
  const models = modelsOf(job);
  expect(new Set(models).size).toBe(models.length);
  expect(finals).not.toContain(models.at(-1));
  finals.add(models.at(-1));
  return job;
}

describe.each([
  ['S = 2 predicted, G = 3, stopped early, with all there is', everything],
  ['S = 0 in bfloat16, with evaluations on samples', serial],
  ['a history of one level, a step a batch', historyOfOneLevel],
  ['a history of all levels, three batches a step, a small buffer', historyOfAllLevels],
  ['links, two negatives each', links],
  ['links of a perceptron, joint negatives', linksOfJointNegatives],
  ['links of a matrix, negatives by degree', linksOfDegrees],
  ['favoured neighbours, GraphSAGE', localityOfSage],
  ['favoured neighbours, GCN, a whole hop between, each node once', localityOfGcn],
])('%s', (_, spec) => {
  const hasEvaluations = spec.evaluation !== undefined;
  let expected: Job;

  beforeAll(async () => {
    expected = await undisturbed(spec);
  });

  test.each(Object.entries(otherCrews))('%s train the same model', async (_name, other) => {
    expectSame(await jobs.run({ ...spec, ...other }), expected);
  });

  test.each([
    ['a Sampler', [SAMPLER]],
    ['a Trainer', [TRAINER]],
    ['both', [SAMPLER, TRAINER]],
  ] as const)('kill -9 of %s in mid-epoch changes nothing', async (_name, roles) => {
    expectSame(await jobs.killed(spec, roles), expected);
  });

  test.runIf(hasEvaluations)(
    'Trainers killed in the midst of evaluations change none of them',
    async () => {
      // Evaluations on samples may be too short to be seen; others are, in one of a few jobs.
      let triesLeft = spec === everything ? 5 : 1;
      let killed = 0;
      while (triesLeft > 0 && killed === 0) {
        triesLeft -= 1;
        const job = await jobs.run({ ...spec, ...crew(1, 3) }, async (id) => {
          killed = await killEvaluators(daemon, id, 5);
        });
        expect(job.attempts).toHaveLength(1);
        expectSame(job, expected);
      }
      if (spec === everything) expect(killed).toBeGreaterThan(0);
    },
  );

  test.runIf(hasEvaluations)(
    'a Trainer stopped in mid-epoch is killed, replaced, and changes nothing',
    async () => {
      const job = await jobs.run({ ...spec, ...pair }, async (id) => {
        signal((await midEpoch(daemon, id)).get(TRAINER), 'SIGSTOP');
      });
      expect(job.attempts[0]?.exits[0]?.logTail).toContain('executor.started');
      expect(job.attempts[0]?.executorRestarts).toBe(1);
      expectSame(job, expected);
    },
  );

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
  const job = await jobs.run(helped, (id) => killEvaluators(daemon, id, 2));
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
    expect(verdicts.length).toBeGreaterThanOrEqual(jobs.count());
    const sum = (of: (verdict: (typeof verdicts)[number]) => number) =>
      verdicts.reduce((total, verdict) => total + of(verdict), 0);
    expect(sum(({ steps }) => steps)).toBeGreaterThan(jobs.count() * 12);
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
