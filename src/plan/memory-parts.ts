import type { DatasetCounts } from '../native/contract.ts';
import { featureBytes } from '../records/dataset-record.ts';
import type { MemoryPart } from '../records/memory-plan.ts';
import { hasOwnMemory } from '../spec/device-kinds.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { automaticRatio } from '../spec/limits.ts';
import { sharesHistory } from '../spec/rules/history.ts';
import type { Batches, Crew, JobLayout, MemoryFacts } from './plan-kind.ts';

/** Parts of a job's memory that several kinds of jobs have. */

/** Bytes of a feature row as the job reads it; standardised features are a file of float32. */
export function rowBytesOf(
  { features }: JobSpec,
  { numFeatures, featureDtype }: DatasetCounts,
): number {
  return numFeatures * featureBytes[features.standardize === 'ON' ? 'float32' : featureDtype];
}

/** Rows that one batch reads at most. */
export function batchRowsOf({ sampling }: JobLayout, numNodes: number): number {
  const { fanouts, batchSize, links } = sampling;
  // Both ends of each link, and its negatives.
  const seeds = links.count === 0 ? batchSize : batchSize * (2 + links.negatives);
  let frontier = seeds;
  let rows = seeds;
  for (const fanout of fanouts) {
    frontier *= fanout;
    rows += frontier;
  }
  return Math.min(numNodes, rows);
}

/** Host memory of one cache; 0 for devices that cache in their own memory (docs/gpu.md). */
export function cacheBytesOf(spec: JobSpec, counts: DatasetCounts): number {
  const { ratio, standbyRatio } = spec.cache;
  if (hasOwnMemory(spec.resources)) return 0;
  if (ratio === automaticRatio) return spec.resources.deviceMemoryBytes;
  const largest = sharesHistory(spec) ? Math.max(ratio, standbyRatio) : ratio;
  return Math.floor(largest * counts.numNodes) * rowBytesOf(spec, counts);
}

export function cacheParts(
  spec: JobSpec,
  counts: DatasetCounts,
  { samplers, trainers }: Crew,
): readonly MemoryPart[] {
  const { ratio } = spec.cache;
  const bytes = cacheBytesOf(spec, counts);
  if (bytes === 0) return [];
  // A cache in shared history memory exists once, not once per Trainer.
  const copies = sharesHistory(spec) ? 1 : trainers;
  return [
    {
      name: 'cached feature rows',
      bytes: copies * bytes,
      isBound: ratio === automaticRatio,
      field: ratio === automaticRatio ? 'resources.device_memory_bytes' : 'cache.ratio',
      remedy: 'rows that are not cached are read from the page cache and the disk',
    },
    {
      name: 'hot ranks',
      // Each Sampler holds the rank of every node.
      bytes: samplers * 4 * counts.numNodes,
      isBound: false,
      field: 'cache.ratio',
      remedy: '0 needs none',
    },
  ];
}

/** Versions, moments and the ring of gradients, in the segment. */
export function parameterPart(spec: JobSpec, layout: JobLayout): MemoryPart {
  const { batchesPerStep, staleness } = spec.training;
  const copies = staleness + 2 + 2 + batchesPerStep * (staleness + 1);
  return {
    name: 'parameters, moments and gradients',
    bytes: 4 * layout.manifest.numFloats * copies,
    isBound: false,
    field: 'model.hidden_dim',
    remedy: 'a narrower model, or fewer training.batches_per_step, take less',
  };
}

/** Records that wait: as many as there are slots, within the budget. */
export function queuePart(
  batches: Batches,
  spec: JobSpec,
  layout: JobLayout,
  { native, counts }: MemoryFacts,
): MemoryPart {
  const deviceCount = spec.resources.devices;
  const slots = batches.queueSlots(native, { spec, counts, layout, deviceCount }, 0);
  const { maxBytes } = spec.queue;
  return {
    name: 'records in the queue',
    // The head group needs no room in the budget.
    bytes: Math.min(slots * layout.slotBytes, maxBytes + layout.slotBytes),
    isBound: true,
    field: 'queue.max_bytes',
    remedy: 'a smaller budget makes Samplers wait',
  };
}
