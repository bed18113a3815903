import { afterAll, beforeAll, expect, test } from 'vitest';
import { EvaluationMethod } from '../../src/api/gen/gnnd/v1/evaluation_pb.ts';
import { Prefetch, Standardize } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { StandbyPolicy } from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import { StalenessCompensation } from '../../src/api/gen/gnnd/v1/training_pb.ts';
import { crew, evaluationsOf, modelsOf, pair, type SpecInit } from '../support/crews.ts';
import { executorPids, isTerminal, TestDaemon } from '../support/daemon.ts';
import { options, specOf } from '../support/options.ts';
import { type Random, randomOf } from '../support/random.ts';

/**
 * Random specs, each trained by random crews of which members are killed and stopped at random
 * steps, sometimes with the daemon. GNND_SEED repeats a run, GNND_CASES says how many specs.
 */

const seed = Number(process.env['GNND_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const cases = Number(process.env['GNND_CASES'] ?? 20);
const crewsPerSpec = 3;
const cpuDevices = 5;
let daemon: TestDaemon;

beforeAll(async () => {
  process.stdout.write(`GNND_SEED=${seed} GNND_CASES=${cases}\n`);
  daemon = await TestDaemon.start({ cpuDevices, datasets: ['cora'] });
});

afterAll(() => daemon.stop());

// PinSAGE takes too long on cora; crews.test.ts has it.
const drawn = Object.values(options).filter(
  ({ dataset, model }) => dataset !== 'ring' && model.type !== ModelType.PINSAGE,
);

function randomSpec(random: Random): SpecInit {
  const option = random.pick(drawn);
  const epochs = random.integer(4, 24);
  const batchesPerStep = random.integer(1, 3);
  const everyEpochs = random.integer(1, 3);
  const stopsEarly = random.chance(0.3);
  const predict = random.chance(0.5);
  return {
    ...specOf(option),
    features: { standardize: random.chance(0.3) ? Standardize.ON : Standardize.OFF },
    cache: {
      ratio: random.pick([0, 0.001, 0.1, 1]),
      prefetch: random.pick([Prefetch.OFF, Prefetch.ON]),
    },
    training: {
      epochs: stopsEarly ? 60 : epochs,
      batchSize: random.integer(4, 20),
      batchesPerStep,
      staleness: random.integer(0, 3),
      stalenessCompensation: predict ? StalenessCompensation.PREDICT : StalenessCompensation.NONE,
      randomSeed: BigInt(random.integer(0, 2 ** 40)),
      threadsPerTrainer: 1,
      optimizer: { learningRate: 0.005 },
      ...(stopsEarly ? { earlyStop: { patienceEpochs: random.integer(2, 6), minDelta: 0 } } : {}),
    },
    evaluation: {
      everyEpochs,
      ...random.pick([
        {},
        { method: EvaluationMethod.EXACT, maxBytes: 1n },
        { method: EvaluationMethod.SAMPLED, fanouts: [4, 3] },
      ]),
    },
    queue: random.chance(0.3) ? { capacity: random.integer(batchesPerStep, 8) } : {},
    timeouts: { stallMs: 3000n },
    restart: { executorRestarts: 1000, maxAttempts: 100 },
  };
}

function randomCrew(random: Random): SpecInit {
  if (random.chance(0.2)) return { resources: { devices: 1 } };
  const samplers = random.integer(1, 3);
  const trainers = random.integer(1, cpuDevices - samplers);
  return crew(samplers, trainers, random.pick([StandbyPolicy.OFF, StandbyPolicy.ALWAYS]));
}

type Blow = 'SIGKILL' | 'SIGSTOP' | 'the daemon dies';

/** What is to be done to a job, and when: in steps, whatever the machine takes for one. */
interface Hit {
  /** Share of all steps of the job, 0 to 1. */
  readonly at: number;
  readonly blow: Blow;
  /** Picks one of the executors that live then, 0 to 1. */
  readonly whom: number;
}

function randomHits(random: Random): readonly Hit[] {
  const ofExecutors = Array.from(
    { length: random.integer(1, 6) },
    (): Hit => ({
      at: random.unit(),
      blow: random.chance(0.85) ? 'SIGKILL' : 'SIGSTOP',
      whom: random.unit(),
    }),
  );
  const ofDaemon: readonly Hit[] = random.chance(0.15)
    ? [{ at: random.unit(), blow: 'the daemon dies', whom: 0 }]
    : [];
  return [...ofExecutors, ...ofDaemon].sort((a, b) => a.at - b.at);
}

/** Hits a job of so many steps until it has ended, and answers what met it. */
async function disturb(id: string, hits: readonly Hit[], steps: number): Promise<readonly Blow[]> {
  const done: Blow[] = [];
  const left = [...hits];
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    const job = await daemon.job(id);
    if (isTerminal(job)) return done;
    const next = left[0];
    if (next === undefined) {
      await daemon.succeeded(id);
      continue;
    }
    // Starts have few tries; what dies in them is for faults.test.ts.
    const { epoch = 0, version = 0n } = job.progress ?? {};
    if (job.state !== JobState.RUNNING || epoch < 1 || Number(version) < next.at * steps) continue;
    if (await strike(next)) {
      left.shift();
      done.push(next.blow);
    }
  }
}

/** False where nobody was there to be hit. */
async function strike({ blow, whom }: Hit): Promise<boolean> {
  if (blow === 'the daemon dies') {
    await replaceDaemon();
    return true;
  }
  const pids = executorPids(daemon.pid);
  const pid = pids[Math.floor(whom * pids.length)];
  try {
    return pid !== undefined && process.kill(pid, blow);
  } catch {
    // It had come to its end.
    return false;
  }
}

async function replaceDaemon(): Promise<void> {
  daemon.client.close();
  await daemon.kill('SIGKILL');
  daemon = await TestDaemon.start({ cpuDevices, folder: daemon.folder });
}

function endOf(job: Job) {
  return { models: modelsOf(job), evaluations: evaluationsOf(job), message: job.message };
}

const planned: Blow[] = [];
const met: Blow[] = [];

test.each(Array.from({ length: cases }, (_, index) => index))(
  'random spec %d: random crews and kills end alike',
  async (index) => {
    // All is drawn before anything runs: a seed stands for one plan.
    const random = randomOf(seed + index);
    const spec = randomSpec(random);
    const turns = Array.from({ length: crewsPerSpec }, () => ({
      chosen: randomCrew(random),
      hits: randomHits(random),
    }));
    const undisturbed = await daemon.train(`spec-${index}`, { ...spec, ...pair });
    const expected = endOf(undisturbed);
    const steps = Number(undisturbed.epochs.at(-1)?.version ?? 0);
    for (const [turn, { chosen, hits }] of turns.entries()) {
      const id = `spec-${index}-${turn}`;
      await daemon.createJob(id, { ...spec, ...chosen });
      const blows = await disturb(id, hits, steps);
      planned.push(...hits.map(({ blow }) => blow));
      met.push(...blows);
      const job = await daemon.succeeded(id);
      const what = `GNND_SEED=${seed + index} GNND_CASES=1: ${JSON.stringify({ chosen, hits })}`;
      expect(endOf(job), `${what}: ${blows.join(', ')}`).toEqual(expected);
    }
  },
  600_000,
);

test('most hits met their job before its end', () => {
  const count = (blows: readonly Blow[], blow: Blow) =>
    blows.filter((each) => each === blow).length;
  for (const blow of ['SIGKILL', 'SIGSTOP', 'the daemon dies'] as const) {
    process.stdout.write(`${blow}: ${count(met, blow)} of ${count(planned, blow)}\n`);
  }
  expect(met.length).toBeGreaterThan(planned.length / 2);
});
