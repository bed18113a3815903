import type { Accelerator, CrewDevice, StandbyRoom } from '../devices/seat.ts';
import { counters, type DeviceOptions, type ExecutorSnapshot } from '../native/contract.ts';
import { devicePluginPath } from '../native/load.ts';
import type { CachePlan, ExecutorRole } from '../records/job-record.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import type { JobLayout } from './plan-kind.ts';

/**
 * Memory that executors may take of a device that is no CPU device. One that is alone there has
 * all of it; a Sampler beside a standby Trainer has what it needs at most, the other one the rest.
 * A Trainer's part has a reserve for what others than gnnd take: PyTorch's tensors, cuBLAS's
 * workspace, kernels as they are loaded, the process's context.
 */

export interface DeviceJob {
  readonly spec: JobSpec;
  readonly layout: JobLayout;
  /** Bytes that reservedBytesOf computed. */
  readonly reservedBytes: number;
}

/**
 * Least reserve on a GPU, and the reserve before a trial has measured it: kernels that only
 * evaluations use are loaded later, and each process on the device has a context of its own, half a
 * gibibyte. On a small GPU it is a quarter. Simulated devices take nothing beside us unless they
 * are told to.
 */
const leastReserve = 1.5 * 2 ** 30;
/** More may be taken later than in a trial's few batches. */
const reserveMargin = 1.1;
/** Strangers on the device count as well, and would take all of it on paper. */
const mostReserve = 0.5;

/** Bytes reserved on each device; 0: none has its own memory. `besideBytes` was measured. */
export function reservedBytesOf(devices: readonly CrewDevice[], besideBytes: number): number {
  const accelerators = devices.flatMap(({ accelerator }) => accelerator ?? []);
  if (accelerators.length === 0) return 0;
  const isGpu = accelerators.some(({ kind }) => kind === 'CUDA');
  const budgetBytes = budgetBytesOf(devices);
  const least = isGpu ? Math.min(leastReserve, Math.floor(budgetBytes / 4)) : 0;
  const measured = Math.min(reserveMargin * besideBytes, mostReserve * budgetBytes);
  return Math.max(least, Math.ceil(measured));
}

/** Device options of an executor in this role; a CPU device has no plug-in. */
export function deviceOptionsOf(
  { accelerator }: CrewDevice,
  role: ExecutorRole,
  job: DeviceJob,
  deviceCount: number,
): DeviceOptions {
  if (accelerator === undefined) return { plugin: '', budgetBytes: 0 };
  const { kind, budgetBytes } = accelerator;
  const samplerBytes = job.layout.memory.samplerDeviceBytes;
  const trainerBytes = budgetBytes - job.reservedBytes;
  const isShared = deviceCount === 1 || job.spec.placement.standby !== 'OFF';
  const byRole = {
    SAMPLER: isShared ? Math.min(budgetBytes, samplerBytes) : budgetBytes,
    TRAINER: Math.max(1, trainerBytes),
    STANDBY: Math.max(1, trainerBytes - samplerBytes),
  } as const;
  return { plugin: devicePluginPath(kind), budgetBytes: byRole[role] };
}

/**
 * Most that PyTorch's allocator may take of the memory of this executor's device: what the rows
 * that it keeps leave of its budget, and what is reserved at least.
 */
export function torchBytesOf(
  { budgetBytes }: Pick<Accelerator, 'budgetBytes'>,
  role: ExecutorRole,
  { trainerRows, standbyRows, rowBytes, reservedBytes }: TorchFacts,
): number {
  if (role === 'SAMPLER') return reservedBytes;
  const rows = role === 'TRAINER' ? trainerRows : standbyRows;
  return Math.max(reservedBytes, budgetBytes - rows * rowBytes);
}

type TorchFacts = Pick<CachePlan, 'trainerRows' | 'standbyRows' | 'rowBytes' | 'reservedBytes'>;

/** Budget of the smallest device that has memory of its own; 0: no device has any. */
export function budgetBytesOf(devices: readonly CrewDevice[]): number {
  const budgets = devices.flatMap(({ accelerator }) => accelerator?.budgetBytes ?? []);
  return budgets.length === 0 ? 0 : Math.min(...budgets);
}

/** Most that a Trainer held of its device's memory, its cache aside; 0 on CPU devices. */
export function heldByTrainers(executors: readonly ExecutorSnapshot[]): number {
  const trainers = executors.filter(({ role }) => role !== 'SAMPLER');
  return most(trainers, ['heldWorkspaceBytes', 'heldModelBytes']);
}

/**
 * Most that was taken of a Trainer's device beside what executors of ours hold there by name: a
 * device tells how much of it is free, so that what others of the same one hold is left out, also
 * on another logical device of it.
 */
export function takenBeside(
  executors: readonly ExecutorSnapshot[],
  devices: readonly CrewDevice[],
): number {
  const uuidOf = ({ device }: ExecutorSnapshot) => devices[device]?.accelerator?.uuid ?? device;

  const beside = executors.flatMap((executor) => {
    if (executor.role === 'SAMPLER') return [];
    const others = executors.filter(
      (other) => other !== executor && uuidOf(other) === uuidOf(executor),
    );
    const taken = executor.counters[counters.besideBytes] ?? 0;
    return taken - others.reduce((sum, other) => sum + most([other], heldNames), 0);
  });
  return Math.max(0, ...beside);
}

const heldNames = [
  'heldTopologyBytes',
  'heldCacheBytes',
  'heldWorkspaceBytes',
  'heldModelBytes',
] as const;

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
 * Memory that a trial's executors leave for standby Trainers beside Samplers on a device, and what
 * those need at least: no row of features cached.
 */
export function standbyRoomOf(
  executors: readonly ExecutorSnapshot[],
  devices: readonly CrewDevice[],
  reservedBytes: number,
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
            neededBytes: trainerBytes + Math.ceil(trainerBytes / 10) + reservedBytes,
          },
        ],
  );
}
