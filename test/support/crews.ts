import type { MessageInitShape } from '@bufbuild/protobuf';
import { expect } from 'vitest';
import type { Metric } from '../../src/api/gen/gnnd/v1/epoch_report_pb.ts';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import type { JobSpec, JobSpecSchema } from '../../src/api/gen/gnnd/v1/job_spec_pb.ts';
import { PlacementPolicy, StandbyPolicy } from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import type { TestDaemon } from './daemon.ts';

/** Who works on a job, and what happens to them: none of it may show in the model. */

export type SpecInit = Exclude<MessageInitShape<typeof JobSpecSchema>, JobSpec>;

export function crew(
  samplers: number,
  trainers: number,
  standby: StandbyPolicy = StandbyPolicy.OFF,
): SpecInit {
  return {
    resources: { devices: samplers + trainers },
    placement: { policy: PlacementPolicy.FIXED, samplers, standby },
  };
}

export const pair: SpecInit = crew(1, 1);

/** Other crews, which need a daemon of five devices. */
export const otherCrews: Readonly<Record<string, SpecInit>> = {
  '3 Samplers and 1 Trainer': crew(3, 1),
  '1 Sampler and 3 Trainers': crew(1, 3),
  '2 Samplers and 3 Trainers, standby ALWAYS': crew(2, 3, StandbyPolicy.ALWAYS),
  'one device alternating': { resources: { devices: 1 } },
};

/** What every epoch ended with: equal in all runs of one spec, not only at the end. */
export function modelsOf(job: Job): readonly string[] {
  return job.epochs.map(({ parametersSha256 }) => parametersSha256);
}

/** What evaluations came to, which all Trainers and standby Trainers share. */
export function evaluationsOf({ epochs, result }: Job) {
  return {
    val: epochs.map(({ valMetrics }) => valuesOf(valMetrics)),
    best: [result?.bestEpoch, valuesOf(result?.bestValMetrics)],
    test: [valuesOf(result?.testMetricsLast), valuesOf(result?.testMetricsBest)],
  };
}

function valuesOf(metrics: readonly Metric[] = []): Readonly<Record<string, number>> {
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
}

/** Number of an epoch's batches that the devices of its attempt trained. */
export function batchesOnDevices({ batchesByDevice }: Job['epochs'][number]): number {
  return Object.values(batchesByDevice).reduce((sum, n) => sum + Number(n), 0);
}

/** Expects the stored epochs one after the other, each with all its batches, each once. */
export function expectEveryBatchOnce(job: Job, batches: number): void {
  expect(job.epochs.map(({ epoch }) => epoch)).toEqual([...job.epochs.keys()]);
  // An image does not say who trained what: such epochs count only batches after it.
  const isCounted = job.attempts.every(({ resumed }) => resumed === undefined);
  for (const report of job.epochs) {
    expect(Number(report.batches)).toBe(batches);
    if (isCounted) expect(batchesOnDevices(report)).toBe(batches);
    else expect(batchesOnDevices(report)).toBeLessThanOrEqual(batches);
    expect(report.ledgerDigest).toMatch(/^[0-9a-f]{16}$/);
    expect(report.parametersSha256).toMatch(/^[0-9a-f]{64}$/);
  }
  expect(job.epochs.at(-1)?.parametersSha256).toBe(job.result?.parametersSha256);
}

/** Waits until a job of two executors is in the middle of an epoch; the pids by role. */
export async function midEpoch(
  daemon: TestDaemon,
  id: string,
): Promise<ReadonlyMap<ExecutorRole, number>> {
  const job = await daemon.until(
    id,
    ({ state, progress }) =>
      state === JobState.RUNNING &&
      progress !== undefined &&
      progress.epoch >= 2 &&
      // The only batch of an epoch is never seen committed in it.
      (progress.batchesCommitted > 0n || progress.batchesPerEpoch === 1n) &&
      progress.executors.length === 2,
  );
  return new Map(job.progress?.executors.map(({ role, pid }) => [role, pid]) ?? []);
}

export function signal(pid: number | undefined, name: NodeJS.Signals): void {
  if (pid === undefined || pid <= 1) throw new Error('no such executor');
  process.kill(pid, name);
}

/** Kills Trainers that are seen to evaluate, up to `most`; ends with the job. How many it was. */
export async function killEvaluators(
  daemon: TestDaemon,
  id: string,
  most: number,
): Promise<number> {
  const killed = new Set<number>();
  await daemon.until(id, ({ state, progress }) => {
    for (const { role, pid, stage } of progress?.executors ?? []) {
      if (stage !== 'EVALUATE' || killed.size >= most || killed.has(pid) || pid <= 1) continue;
      expect(role).not.toBe(ExecutorRole.SAMPLER);
      killed.add(pid);
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It had come to its end.
      }
    }
    return state === JobState.SUCCEEDED;
  });
  return killed.size;
}

type Disturb = (id: string) => Promise<unknown>;

/** Jobs on one daemon, each under a name of its own, all with so many batches an epoch. */
export function jobsOn(daemonOf: () => TestDaemon, batchesPerEpoch: number) {
  let count = 0;

  /** The job of a spec, which succeeds with every batch once; `disturb` gets it when it starts. */
  async function run(spec: SpecInit, disturb?: Disturb): Promise<Job> {
    count += 1;
    const id = `job-${count}`;
    await daemonOf().createJob(id, spec);
    await disturb?.(id);
    const job = await daemonOf().succeeded(id);
    expectEveryBatchOnce(job, batchesPerEpoch);
    return job;
  }

  /** The same by one Sampler and one Trainer, of which these roles are killed in mid-epoch. */
  async function killed(spec: SpecInit, roles: readonly ExecutorRole[]): Promise<Job> {
    const job = await run({ ...spec, ...pair }, async (id) => {
      const pids = await midEpoch(daemonOf(), id);
      for (const role of roles) signal(pids.get(role), 'SIGKILL');
    });
    expect(job.attempts).toHaveLength(1);
    expect(job.attempts[0]?.executorRestarts).toBe(roles.length);
    const signals = job.attempts[0]?.exits.map(({ signal: name }) => name);
    expect(signals).toEqual(roles.map(() => 'SIGKILL'));
    return job;
  }

  return { run, killed, count: () => count };
}

/** Expects that two jobs computed the same in every epoch, and ended alike. */
export function expectSame(job: Job, expected: Job): void {
  expect(modelsOf(job)).toEqual(modelsOf(expected));
  expect(evaluationsOf(job)).toEqual(evaluationsOf(expected));
  expect(job.message).toBe(expected.message);
}
