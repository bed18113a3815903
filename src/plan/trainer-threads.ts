import type { CrewDevice } from '../devices/seat.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { automaticCores } from '../spec/limits.ts';

/**
 * Threads of Trainers, and the cores that they run on. They decide no bit of our models, so they
 * follow the devices that a job happens to have.
 */
export interface TrainerThreads {
  readonly threads: number;
  /** Cores of a Trainer: more than its device's, where other devices compute nothing meanwhile. */
  readonly cores: readonly number[];
}

/**
 * Threads and cores of the Trainer on `device`. Where the spec leaves the number open, the cores of
 * all devices are shared between the Trainers that compute at once, one for each batch.
 */
export function trainerThreads(
  spec: JobSpec,
  devices: readonly CrewDevice[],
  device: number,
  batchesAtOnce: number,
): TrainerThreads {
  const { training } = spec;
  const own = devices[device]?.cores ?? [];
  const all = [...new Set(devices.flatMap(({ cores }) => cores))].sort((a, b) => a - b);
  const share = Math.floor(all.length / Math.min(devices.length, batchesAtOnce));
  const threads = training.threadsPerTrainer || Math.min(automaticCores, Math.max(1, share));
  return { threads, cores: threads > own.length ? all : own };
}
