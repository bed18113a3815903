import type { CoreAddon } from '../native/contract.ts';
import type { RowPlan } from '../records/memory-plan.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { reads } from '../spec/spec-parts.ts';
import { predictionSizesOf } from './infer.ts';
import { jobMemoryOf, modelOptionsOf, noModelGraph } from './job-layout.ts';
import type { Batches, BatchSpec, MemoryFacts, PlanKind } from './plan-kind.ts';
import { placeRows } from './row-placement.ts';
import { readTokens, storedTokens, tokenBytes } from './row-sizes.ts';

/** Slots beyond those of steps and devices: enough that no Trainer lacks a batch. */
const spareSlots = 64;

/** Batches that are rows of propagated features: Trainers read them, and nobody samples. */
export const rows: Batches = {
  input: ({ propagation: { operators, hops } }, { numFeatures }) => ({
    ...{ inDim: numFeatures, graph: noModelGraph },
    ...{ numOperators: operators.length, numHops: hops },
  }),

  relationFanouts: () => [],
  memory: jobMemoryOf,
  evaluated: () => null,

  // Batches of rows have no record; a slot is a page.
  slotBytes: () => 4096,

  queueSlots(_, { spec: { training }, deviceCount }) {
    return training.batchesPerStep * (training.staleness + 1) + deviceCount + spareSlots;
  },

  segment: () => ({ bornReady: true, registeredBytes: 0 }),

  topologyBytes: () => 0,

  // Rows lie in mapped files, which the kernel drops when it needs the memory.
  featuresBytes: () => 0,
  batchBytes: () => ({ stored: 0, extracted: 0 }),

  // Bits of reached nodes, ids of targets, and a chunk's rows.
  predictionBytes: (_, { memory }, __, nodes) =>
    2 * Uint32Array.BYTES_PER_ELEMENT * nodes + memory.rowChunkBytes,

  propagationBytes: ({ propagation }, { numNodes, numFeatures }) =>
    numNodes * storedTokens(propagation) * tokenBytes(propagation, numFeatures),
};

/** The same where items are pairs of nodes, whose graph says which of them are linked. */
export const rowsOfLinks: Batches = {
  ...rows,
  topologyBytes: ({ memory }) => memory.topologyBytes,
  // A question's pairs are scored by rows that stay until then.
  predictionBytes: (spec, layout, { native, counts }, nodes) =>
    layout.memory.rowChunkBytes +
    predictionSizesOf(native, layout, { spec, counts, nodes }).workBytes,
};

/** The parts of a spec that say which rows are read. */
export type RowSpec = BatchSpec & Pick<JobSpec, 'resources'>;

export interface RowPlanFacts extends Pick<MemoryFacts, 'counts' | 'hostBytes' | 'deviceBytes'> {
  readonly native: Pick<CoreAddon, 'jobMemory'>;
}

/** Where a job whose batches are rows reads them. */
export function rowPlanOf(
  kind: PlanKind,
  spec: RowSpec,
  { native, counts, hostBytes, deviceBytes }: RowPlanFacts,
): RowPlan {
  const { numFeatures, numNodes, train, val, test } = counts;
  const { propagation, training, resources } = spec;
  const tokens = readTokens(spec);
  const rowBytes = tokenBytes(propagation, numFeatures);
  const isOfLinks = reads({ task: spec.task }, 'links');
  const numRows = isOfLinks ? numNodes : train + val + test;
  const bytes = numRows * tokens * rowBytes;
  const facts = { bytes, trainBytes: train * tokens * rowBytes, rowBytes, hostBytes };
  const { batchSize } = training;
  const bounds = [deviceBytes, resources.deviceMemoryBytes].filter((bound) => bound > 0);
  const model = modelOptionsOf(kind, spec, counts);
  const sizes = { parameterFloats: 0, slotBytes: 0 };
  const { rowDeviceBytes } = jobMemoryOf(native, { spec, counts, model }, sizes);
  // Rows of pairs lie anywhere, which no device was taught to gather.
  const device =
    deviceBytes === 0 || isOfLinks
      ? null
      : { freeBytes: Math.min(...bounds), workBytes: rowDeviceBytes };
  const forcedTier = resources.rowsFrom === 'AUTO' ? null : resources.rowsFrom;
  return { ...placeRows({ ...facts, batchSize, forcedTier, device }), bytes };
}
