import { beforeAll, describe, expect, test } from 'vitest';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import { CachePlacement } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { DeviceChoice, StandbyPolicy } from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import {
  crew,
  evaluationsOf,
  jobsOn,
  modelsOf,
  pair,
  type SpecInit,
  signal,
} from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';

/**
 * Jobs whose Trainers hold feature rows for each other (docs/placement.md), on simulated devices:
 * wherever a row lies, the models are those of a plain cache and of none.
 */

const flags = ['--sim-devices', '4', '--sim-memory-bytes', '200000000'];
const linked = { GNND_SIM_PEERS: '1-2:NVLINK,1-3:NVLINK,2-3:NVLINK' };
const batchesPerEpoch = 7;
const common: SpecInit = {
  dataset: 'cora',
  model: { hiddenDim: 16, dropout: 0.5 },
  sampling: { fanouts: [10, 5] },
  training: { batchSize: 20, epochs: 6, randomSeed: 7n },
  timeouts: { stallMs: 5000n },
};

let daemon: TestDaemon;
let models: readonly string[];
let evaluations: ReturnType<typeof evaluationsOf>;
const jobs = jobsOn(() => daemon, batchesPerEpoch);

/** On simulated devices; the first ones sample. */
function sim(members: SpecInit, cache: SpecInit['cache'], pinnedFeaturesBytes?: bigint): SpecInit {
  const resources = { ...members.resources, deviceKind: DeviceChoice.SIM };
  const pinned = pinnedFeaturesBytes === undefined ? {} : { pinnedFeaturesBytes };
  return { ...common, ...members, cache, resources: { ...resources, ...pinned } };
}

async function run(of: TestDaemon, spec: SpecInit, disturb?: (id: string) => Promise<unknown>) {
  const job = await (of === daemon ? jobs : jobsOn(() => of, batchesPerEpoch)).run(spec, disturb);
  const { cache } = await of.call(JobService.method.getJobPlan, { name: job.name });
  return { job, placement: cache?.placement };
}

function expectSameModels(job: Job) {
  expect(modelsOf(job)).toEqual(models);
  expect(evaluationsOf(job)).toEqual(evaluations);
}

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 2, datasets: ['cora'], flags, env: linked });
  const { job } = await run(daemon, { ...common, ...pair });
  models = modelsOf(job);
  evaluations = evaluationsOf(job);
});
describe('Trainers on linked devices', () => {
  const cache = { ratio: 0.1 };

  test.each([
    ['two, and the host copies what they lack', 2, 0n],
    ['two, which read the rest in its memory', 2, undefined],
    ['three', 3, undefined],
  ])("read each other's rows: %s", async (_, trainers, pinned) => {
    const { job, placement } = await run(daemon, sim(crew(1, trainers), cache, pinned));
    expectSameModels(job);
    expect(placement?.explanation).toMatch(`${trainers} devices read each other's rows`);
    expect(placement?.devices.map(({ device }) => device)).toEqual(
      ['sim:1', 'sim:2', 'sim:3'].slice(0, trainers),
    );
    for (const { copiedRows, dealtRows, expected, measured } of placement?.devices ?? []) {
      expect(copiedRows + dealtRows).toBe(270n);
      expect(dealtRows).toBeGreaterThan(0n);
      const sum = (shares = expected) =>
        (shares?.own ?? 0) + (shares?.peer ?? 0) + (shares?.host ?? 0);
      expect(sum()).toBeCloseTo(1);
      if (measured === undefined) continue; // trained no batch
      expect(sum(measured)).toBeCloseTo(1);
      expect(measured.peer).toBeGreaterThan(0);
      // Batches are few, and which Trainer computes how many is open.
      expect(Math.abs(measured.host - (expected?.host ?? 0))).toBeLessThan(0.1);
      expect(Number(measured.waitNs)).toBeGreaterThan(0);
    }
  });

  test('have a cache each where that is asked for', async () => {
    const spec = sim(crew(1, 2), { ...cache, placement: CachePlacement.NONE });
    const { job, placement } = await run(daemon, spec);
    expectSameModels(job);
    expect(placement).toMatchObject({ explanation: 'none, as asked for', devices: [] });
  });

  test('and none at all, leave the same', async () => {
    expectSameModels((await run(daemon, sim(crew(1, 2), { ratio: 0 }))).job);
  });

  test('are helped by standby Trainers, whose caches are plain', async () => {
    const spec = sim(crew(1, 2, StandbyPolicy.ALWAYS), cache);
    const { job, placement } = await run(daemon, spec);
    expectSameModels(job);
    expect(placement?.devices.length).toBe(2);
  });

  test('go on when one of them dies in mid-epoch, and its successor shares again', async () => {
    const long = { ...common.training, epochs: 40 };
    const expected = await run(daemon, { ...common, ...pair, training: long });
    const spec = { ...sim(crew(1, 2), cache, 0n), training: long };
    const { job, placement } = await run(daemon, spec, async (id) => {
      const { progress } = await daemon.until(
        id,
        ({ state, progress: now }) =>
          state === JobState.RUNNING &&
          now !== undefined &&
          now.epoch >= 2 &&
          now.executors.length === 3,
      );
      const trainer = progress?.executors.find(({ role }) => role === ExecutorRole.TRAINER);
      signal(trainer?.pid, 'SIGKILL');
    });
    expect(job.attempts.flatMap(({ exits }) => exits)).not.toEqual([]);
    expect(modelsOf(job)).toEqual(modelsOf(expected.job));
    expect(placement?.devices.every(({ measured }) => (measured?.peer ?? 0) > 0)).toBe(true);
  });

  test('tell how they came by rows, by the way', async () => {
    const spec = sim(crew(1, 2), cache, 0n);
    const long = { ...spec, training: { ...common.training, epochs: 40 } };
    await daemon.createJob('ways', long);
    await daemon.until('ways', ({ progress }) => (progress?.epoch ?? 0) >= 3);
    const text = await daemon.scrape();
    await daemon.succeeded('ways');
    const value = (name: string, labels: string) =>
      Number(new RegExp(`^${name}\\{[^}]*${labels}\\} (\\S+)$`, 'm').exec(text)?.[1]);
    for (const device of ['sim:1', 'sim:2']) {
      for (const way of ['CACHE', 'PEER', 'STAGED']) {
        const rows = value('gnnd_device_feature_rows_total', `device="${device}",way="${way}"`);
        expect(rows, `${device} ${way}`).toBeGreaterThan(0);
      }
      const wait = value('gnnd_device_row_wait_seconds_total', `device="${device}"`);
      expect(wait).toBeGreaterThan(0);
    }
    expect(value('gnnd_cache_rows_total', 'tier="PEER",result="HIT"')).toBeGreaterThan(0);
  });
});

describe('a plain cache is what there is', () => {
  test('of one Trainer, of whom no plan speaks', async () => {
    const { job, placement } = await run(daemon, sim(crew(1, 1), { ratio: 0.1 }));
    expectSameModels(job);
    expect(placement).toBe(undefined);
  });

  test.each([
    ['without links', {}, [], /no two Trainers' devices/],
    ['over links that are slower than the host', linked, ['--link-rates', 'NVLINK:9'], /no faster/],
  ])('%s', async (_, env, more, why) => {
    const options = { cpuDevices: 2, datasets: ['cora'] as const, env };
    const other = await TestDaemon.start({ ...options, flags: [...flags, ...more] });
    const { job, placement } = await run(other, sim(crew(1, 2), { ratio: 0.1 }));
    expectSameModels(job);
    expect(placement?.devices).toEqual([]);
    expect(placement?.explanation).toMatch(why);
    await other.stop();
  });
});
