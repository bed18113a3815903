import type { JobSpec } from '../spec/job-spec.ts';
import type { CrewDevice } from './seat.ts';

/**
 * Threads of Trainers, and the cores that they run on. They decide no bit of our models, so they
 * follow the devices that a job happens to have.
 */
export interface TrainerThreads {
  /** Of a batch. */
  readonly train: number;
  /** Of an evaluation's chunk: all Trainers compute chunks at once. */
  readonly evaluate: number;
  /** More than its device's, where other devices have nothing to compute meanwhile. */
  readonly cores: readonly number[];
}

/** A batch has too few rows to keep more of them busy. */
export const usefulThreads = 16;

/**
 * Of the Trainer on `device`. Where the spec leaves the number open, the cores of all devices are
 * shared between the Trainers that compute at once: those of (S + 1) G batches (design §4).
 */
export function trainerThreads(
  { training }: JobSpec,
  devices: readonly CrewDevice[],
  device: number,
): TrainerThreads {
  const own = devices[device]?.cores ?? [];
  const all = [...new Set(devices.flatMap(({ cores }) => cores))].sort((a, b) => a - b);
  const inFlight = (training.staleness + 1) * training.batchesPerStep;
  const share = (trainers: number) =>
    Math.max(1, Math.min(usefulThreads, Math.floor(all.length / trainers)));
  const asked = training.threadsPerTrainer;
  const train = asked > 0 ? asked : share(Math.min(devices.length, inFlight));
  const evaluate = asked > 0 ? asked : share(devices.length);
  return { train, evaluate, cores: train > own.length ? all : own };
}
