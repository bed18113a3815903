import {
  counters,
  type DatasetCounts,
  type DeviceOptions,
  type ExecutorSnapshot,
} from '../native/contract.ts';
import { devicePluginPath } from '../native/load.ts';
import type { ExecutorRole } from '../records/job-record.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import type { JobLayout } from './job-layout.ts';
import { samplerDeviceBytes } from './sampler-memory.ts';
import type { CrewDevice, StandbyRoom } from './seat.ts';

/**
 * What executors may take of the memory of a device that is no CPU device. Who is alone there has
 * all of it; a Sampler beside a standby Trainer has what it needs at most, the other one the rest.
 */

export interface DeviceJob {
  readonly spec: JobSpec;
  readonly layout: JobLayout;
  readonly counts: DatasetCounts;
}

/** Of an executor in this role; no plug-in on a CPU device. */
export function deviceOptionsOf(
  { accelerator }: CrewDevice,
  role: ExecutorRole,
  job: DeviceJob,
  deviceCount: number,
): DeviceOptions {
  if (accelerator === undefined) return { plugin: '', budgetBytes: 0 };
  const { kind, budgetBytes } = accelerator;
  const samplerBytes = samplerDeviceBytes(job);
  const isShared = deviceCount === 1 || job.spec.placement.standby !== 'OFF';
  const byRole = {
    SAMPLER: isShared ? Math.min(budgetBytes, samplerBytes) : budgetBytes,
    TRAINER: budgetBytes,
    STANDBY: Math.max(1, budgetBytes - samplerBytes),
  } as const;
  return { plugin: devicePluginPath(kind), budgetBytes: byRole[role] };
}

/** Of the smallest device that has memory of its own; 0: none has. */
export function budgetBytesOf(devices: readonly CrewDevice[]): number {
  const budgets = devices.flatMap(({ accelerator }) => accelerator?.budgetBytes ?? []);
  return budgets.length === 0 ? 0 : Math.min(...budgets);
}

/** Most that a Trainer held of its device's memory, its cache aside; 0 on CPU devices. */
export function heldByTrainers(executors: readonly ExecutorSnapshot[]): number {
  const trainers = executors.filter(({ role }) => role !== 'SAMPLER');
  return most(trainers, ['heldWorkspaceBytes', 'heldModelBytes']);
}

function most(
  executors: readonly ExecutorSnapshot[],
  names: readonly (keyof typeof counters)[],
): number {
  const sums = executors.map((executor) =>
    names.reduce((sum, name) => sum + (executor.counters[counters[name]] ?? 0), 0),
  );
  return Math.max(0, ...sums);
}

/**
 * What a trial's executors leave for standby Trainers beside the Samplers of such devices, and what
 * those need at least: no row of features cached.
 */
export function standbyRoomOf(
  executors: readonly ExecutorSnapshot[],
  devices: readonly CrewDevice[],
): readonly StandbyRoom[] {
  const samplers = executors.filter(({ role }) => role === 'SAMPLER');
  const samplerBytes = most(samplers, ['heldTopologyBytes', 'heldWorkspaceBytes']);
  const trainerBytes = heldByTrainers(executors);
  return devices.flatMap(({ name, accelerator }) =>
    accelerator === undefined
      ? []
      : [
          {
            device: name,
            freeBytes: Math.max(0, accelerator.budgetBytes - samplerBytes),
            // Larger batches than the trial's are to be expected.
            neededBytes: trainerBytes + Math.ceil(trainerBytes / 10),
          },
        ],
  );
}
