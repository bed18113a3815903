import type { MessageInitShape } from '@bufbuild/protobuf';
import { expect } from 'vitest';
import {
  ExecutorRole,
  type Job,
  type JobSpec,
  type JobSpecSchema,
  JobState,
  PlacementPolicy,
  StandbyPolicy,
} from '../../src/api/gen/gnnd/v1/job_pb.ts';
import type { TestDaemon } from './daemon.ts';

/** A spec trained by different crews, and with a death in the middle, on a daemon of 4 devices. */

export type SpecInit = Exclude<MessageInitShape<typeof JobSpecSchema>, JobSpec>;

function crew(samplers: number, trainers: number, standby: StandbyPolicy): SpecInit {
  return {
    resources: { devices: samplers + trainers },
    placement: { policy: PlacementPolicy.FIXED, samplers, standby },
  };
}

/** What every epoch ended with. */
function modelsOf(job: Job): readonly string[] {
  return job.epochs.map(({ parametersSha256 }) => parametersSha256);
}

async function killTrainer(daemon: TestDaemon, id: string): Promise<void> {
  const job = await daemon.until(
    id,
    ({ state, progress }) =>
      state === JobState.RUNNING &&
      progress !== undefined &&
      progress.batchesCommitted > 0n &&
      progress.executors.some(({ role }) => role === ExecutorRole.TRAINER),
  );
  const trainer = job.progress?.executors.find(({ role }) => role === ExecutorRole.TRAINER);
  if (trainer === undefined || trainer.pid <= 1) throw new Error('no Trainer');
  process.kill(trainer.pid, 'SIGKILL');
}

/**
 * Trains `spec` with one Sampler and one Trainer, with two of each and standby Trainers, and with
 * one of each whose Trainer is killed: every epoch of all three ends with the same parameters.
 * Answers the first of the jobs.
 */
export async function expectSameModels(
  daemon: TestDaemon,
  id: string,
  spec: SpecInit,
): Promise<Job> {
  const pair = crew(1, 1, StandbyPolicy.OFF);
  await daemon.createJob(id, { ...spec, ...pair });
  const job = await daemon.succeeded(id);
  expect(modelsOf(job)).toHaveLength(spec.training?.epochs ?? 0);
  expect(job.result?.parametersSha256).toMatch(/^[0-9a-f]{64}$/);

  await daemon.createJob(`${id}-many`, { ...spec, ...crew(2, 2, StandbyPolicy.ALWAYS) });
  expect(modelsOf(await daemon.succeeded(`${id}-many`))).toEqual(modelsOf(job));

  const killed = await withKilledTrainer(daemon, id, { ...spec, ...pair });
  expect(killed.attempts[0]?.exits.map(({ signal }) => signal)).toEqual(['SIGKILL']);
  expect(modelsOf(killed)).toEqual(modelsOf(job));
  return job;
}

/** On an idle machine a short job may be over before the signal: then another one is tried. */
async function withKilledTrainer(daemon: TestDaemon, id: string, spec: SpecInit): Promise<Job> {
  for (let attempt = 1; ; attempt += 1) {
    const name = `${id}-killed-${attempt}`;
    await daemon.createJob(name, spec);
    const inTime = await killTrainer(daemon, name).then(
      () => true,
      () => false,
    );
    const job = await daemon.succeeded(name);
    const exits = job.attempts[0]?.exits.length ?? 0;
    if ((inTime && exits > 0) || attempt === 6) return job;
  }
}
