import { afterAll, beforeAll, expect, test } from 'vitest';
import { EvaluationMethod } from '../../src/api/gen/gnnd/v1/evaluation_pb.ts';
import { Prefetch } from '../../src/api/gen/gnnd/v1/features_pb.ts';
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
 * moments, sometimes with the daemon. GNND_SEED repeats a run, GNND_CASES says how many specs.
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
    features: { standardize: random.chance(0.3) },
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

const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Hits executors until the job has ended, and answers what was done to them. */
async function disturb(id: string, random: Random): Promise<string> {
  const done: string[] = [];
  let hits = random.integer(1, 6);
  let daemonDies = random.chance(0.15);
  for (;;) {
    await later(random.integer(0, 400));
    const job = await daemon.job(id);
    if (isTerminal(job)) return done.join(', ');
    // Starts have few tries; what dies in them is for faults.test.ts.
    if (job.state !== JobState.RUNNING || (job.progress?.epoch ?? 0) < 1) continue;
    if (daemonDies) {
      daemonDies = false;
      await replaceDaemon();
      done.push('the daemon died');
      continue;
    }
    const pids = executorPids(daemon.pid);
    if (hits === 0 || pids.length === 0) continue;
    hits -= 1;
    const name = random.chance(0.85) ? 'SIGKILL' : 'SIGSTOP';
    try {
      process.kill(random.pick(pids), name);
      done.push(name);
    } catch {
      // It had come to its end.
    }
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

test.each(Array.from({ length: cases }, (_, index) => index))(
  'random spec %d: random crews and kills end alike',
  async (index) => {
    const random = randomOf(seed + index);
    const spec = randomSpec(random);
    const repeat = `GNND_SEED=${seed + index} GNND_CASES=1`;
    const expected = endOf(await daemon.train(`spec-${index}`, { ...spec, ...pair }));
    for (let turn = 0; turn < crewsPerSpec; turn += 1) {
      const id = `spec-${index}-${turn}`;
      const chosen = randomCrew(random);
      await daemon.createJob(id, { ...spec, ...chosen });
      const hits = await disturb(id, random);
      const job = await daemon.succeeded(id);
      const what = `${repeat}: ${JSON.stringify(chosen)}: ${hits}`;
      expect(endOf(job), what).toEqual(expected);
    }
  },
  600_000,
);
