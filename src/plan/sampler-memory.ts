import type { DatasetCounts } from '../native/contract.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import type { JobLayout } from './job-layout.ts';

/** What Samplers hold, by sizes alone: the graph, and what a batch takes at most. */

/** 64-bit row starts, 32-bit neighbours, and an alias table's 8 bytes an entry. */
export function topologyBytesOf({ numNodes, numEdges }: DatasetCounts, alias: boolean): number {
  return 8 * (numNodes + 1) + (alias ? 12 : 4) * numEdges;
}

/** Batches that a device's Sampler has in hand (native/core/executor/device_sample_work.h). */
const samplerDepth = 2;

/**
 * Of a device's memory, at most: the topology, a word a node to number the nodes of a batch, and
 * for each batch in hand its record, the ids before they are numbered, and what strategies work in,
 * which is no more than the record again.
 */
export function samplerDeviceBytes(job: {
  readonly spec: JobSpec;
  readonly layout: JobLayout;
  readonly counts: DatasetCounts;
}): number {
  const { spec, layout, counts } = job;
  const alias = spec.sampling.algorithm === 'KHOP_WEIGHTED';
  const workspaceBytes = 3 * layout.slotBytes;
  return (
    topologyBytesOf(counts, alias) + 8 * counts.numNodes + samplerDepth * workspaceBytes + 2 ** 20
  );
}
