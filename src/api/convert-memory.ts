import type { MessageInitShape } from '@bufbuild/protobuf';
import type { InferencePlan, MemoryPlan, RowPlan } from '../records/memory-plan.ts';
import { int64 } from './convert.ts';
import { type MemoryPlanSchema, RowTier } from './gen/gnnd/v1/memory_plan_pb.ts';
import { TopologySource } from './gen/gnnd/v1/resources_pb.ts';

/** What a job is predicted to take of the host's memory, as a message. */
export function memoryInit(plan: MemoryPlan): MessageInitShape<typeof MemoryPlanSchema> {
  return {
    parts: plan.parts.map(({ name, bytes, isBound, field }) => {
      return { name, bytes: int64(bytes), bound: isBound, field };
    }),
    surelyBytes: int64(plan.surelyBytes),
    atMostBytes: int64(plan.atMostBytes),
    hostBytes: int64(plan.hostBytes),
    topology: TopologySource[plan.topology],
    topologyBytes: int64(plan.topologyBytes),
    featuresOnDisk: plan.features === 'DISK',
    featuresBytes: int64(plan.featuresBytes),
    readAheadBytes: int64(plan.readAheadBytes),
    pinnedRows: int64(plan.pinned.rows),
    pinnedExplanation: plan.pinned.reason,
    ...(plan.rows === null ? {} : { rows: rowsInit(plan.rows) }),
    ...(plan.inference === null ? {} : { inference: inferenceInit(plan.inference) }),
  };
}

function inferenceInit(plan: InferencePlan) {
  return {
    nodes: int64(plan.nodes),
    chunks: int64(plan.chunks),
    outputBytes: int64(plan.outputBytes),
    scratchBytes: int64(plan.scratchBytes),
    propagationBytes: int64(plan.propagationBytes),
  };
}

export function rowsInit({ tier, bytes, chunk, reason, refused }: RowPlan) {
  return { tier: RowTier[tier], bytes: int64(bytes), chunk, reason, refused: [...refused] };
}
