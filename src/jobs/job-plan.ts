import { GnndError } from '../base/errors.ts';
import { jobDataOf } from '../datasets/ready-dataset.ts';
import { parameterCountOf } from '../files/checkpoint.ts';
import { loadCore } from '../native/load.ts';
import type { DatasetRecord } from '../records/dataset-record.ts';
import type { JobPlan } from '../records/job-record.ts';
import { type DevicePlan, makePlan } from '../scheduler/plan.ts';
import { devicesOfKind } from '../spec/device-kinds.ts';
import { decodeSpec } from '../spec/spec-codec.ts';
import { workOf } from '../work/work.ts';

/**
 * Predicts the plan of a job that has none yet, on a thread of the pool: one takes a third of a
 * millisecond, but many asked for at once would hold up the event loop (bench/README.md).
 */

export interface PlanRequest {
  readonly jobId: string;
  /** The effective spec as it is stored, which is quicker to copy to the thread. */
  readonly effectiveSpec: Uint8Array;
  readonly dataset: DatasetRecord;
  /** All devices of the host. */
  readonly deviceNames: readonly string[];
  /** Plan of the devices that the scheduler gave the job; null: none yet. */
  readonly given: DevicePlan | null;
}

/** Throws PLAN_INFEASIBLE. */
export function predictPlan(request: PlanRequest): JobPlan {
  const native = loadCore();
  const spec = decodeSpec(request.effectiveSpec, `job ${request.jobId}`);
  const { deviceNames: names, deviceKind, devices: count } = spec.resources;
  const devices =
    names.length > 0 ? names : devicesOfKind(request.deviceNames, deviceKind).slice(0, count);
  const { counts, schema } = jobDataOf(request.dataset, spec);
  const work = workOf(spec, schema);
  const split =
    request.given ??
    makePlan({
      devices,
      policy: spec.placement.policy,
      fixedSamplers: spec.placement.samplers,
      standby: spec.placement.standby,
      ...work.schedule,
      steps: {
        batchesPerStep: spec.training.batchesPerStep,
        staleness: spec.training.staleness,
      },
      timings: null,
      epoch: null,
      standbyRoom: [],
      estimated: true,
    });
  if (split === null) {
    throw new GnndError('PLAN_INFEASIBLE', 'no executor could train on the devices asked for');
  }
  const layout = work.layout(native, counts);
  const sizes = { spec, counts, layout, deviceCount: devices.length };
  return {
    ...split,
    queueCapacity: work.queueSlots(native, sizes, 0),
    slotBytes: layout.slotBytes,
    parameterCount: parameterCountOf(layout.manifest),
    cache: null,
  };
}
