import { hasOwnMemory } from '../spec/device-kinds.ts';
import { predictionSizesOf } from './infer.ts';
import { jobMemoryOf, noModelGraph } from './job-layout.ts';
import { batchRowsOf, rowBytesOf } from './memory-parts.ts';
import type { Batches } from './plan-kind.ts';

const pageBytes = 4096;
/** Of a value that is computed with. */
const valueBytes = { FLOAT32: 4, TF32: 4, BFLOAT16: 2 } as const;

/** Batches that are blocks: Samplers draw them from the topology into records of the queue. */
export const blocks: Batches = {
  input: (_, { numFeatures }) => ({
    ...{ inDim: numFeatures, graph: noModelGraph },
    ...{ numOperators: 0, numHops: 0 },
  }),

  relationFanouts: () => [],
  memory: jobMemoryOf,
  evaluated: () => null,

  slotBytes: (native, counts, sampling) => native.recordSlotBytes(counts, sampling),

  queueSlots(native, { spec, layout, deviceCount }, recordBytes) {
    if (spec.queue.capacity > 0) return spec.queue.capacity;
    const { batchesPerStep, staleness } = spec.training;
    return native.segmentDefaultSlots({
      ...{ batchesPerStep, staleness, recordBytes },
      numDevices: deviceCount,
      batchesPerEpoch: layout.batchesPerEpoch,
      queueMaxBytes: spec.queue.maxBytes,
    });
  },

  /**
   * Registers the usual part of a slot: what a trial's largest record took and a quarter more,
   * within the budget of the queue, for what is registered is real memory. 0 where nobody
   * registers.
   */
  segment({ spec, layout }, numSlots, recordBytes) {
    const usual = recordBytes === 0 ? layout.slotBytes : Math.ceil(1.25 * recordBytes);
    const share = Math.floor(spec.queue.maxBytes / numSlots / pageBytes) * pageBytes;
    const registeredBytes = hasOwnMemory(spec.resources)
      ? Math.min(layout.slotBytes, usual, share)
      : 0;
    return { bornReady: false, registeredBytes };
  },

  topologyBytes: ({ memory }) => memory.topologyBytes,

  featuresBytes: (spec, counts) => counts.numNodes * rowBytesOf(spec, counts),

  batchBytes(spec, layout, counts) {
    const rows = batchRowsOf(layout, counts.numNodes);
    const rowBytes = counts.numFeatures * valueBytes[spec.training.precision];
    return { stored: rows * rowBytesOf(spec, counts), extracted: rows * rowBytes };
  },

  predictionBytes: (spec, layout, { native, counts }, nodes) =>
    predictionSizesOf(native, layout, { spec, counts, nodes }).workBytes,

  propagationBytes: () => 0,
};
