import type { DatasetCounts, DeviceOptions } from '../native/contract.ts';
import { devicePluginPath } from '../native/load.ts';
import type { ExecutorRole } from '../records/job-record.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import type { JobLayout } from './job-layout.ts';
import { topologyBytesOf } from './memory-plan.ts';
import type { CrewDevice } from './seat.ts';

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

/** Batches that a device's Sampler has in hand (native/core/executor/device_sample_work.h). */
const samplerDepth = 2;

/**
 * At most, of a Sampler: the topology, a word a node to number the nodes of a batch, and for each
 * batch in hand its record, the ids before they are numbered, and what strategies work in, which is
 * no more than the record again.
 */
export function samplerDeviceBytes({ spec, layout, counts }: DeviceJob): number {
  const alias = spec.sampling.algorithm === 'KHOP_WEIGHTED';
  const workspaceBytes = 3 * layout.slotBytes;
  return (
    topologyBytesOf(counts, alias) + 8 * counts.numNodes + samplerDepth * workspaceBytes + 2 ** 20
  );
}
