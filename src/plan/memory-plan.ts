import { hostMemoryBytes } from '../base/host-memory.ts';
import type { CoreAddon, DatasetCounts } from '../native/contract.ts';
import { featureBytes } from '../records/dataset-record.ts';
import type {
  MemoryPart,
  MemoryPlan,
  PinnedPlan,
  RowPlan,
  TopologyPlace,
} from '../records/memory-plan.ts';
import { hasOwnMemory, trainsInOwnMemory } from '../spec/device-kinds.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { automaticBytes, automaticRatio } from '../spec/limits.ts';
import { takesRows } from '../spec/model-kinds.ts';
import { cachesBesideHistory, keepsHistory, sharesHistory } from '../spec/rules/history.ts';
import { infers } from '../spec/rules/inference.ts';
import { scratchOf } from './evaluation-plan.ts';
import { inferenceParts, inferenceSizesOf } from './inference-memory.ts';
import {
  type BatchSpec,
  type JobLayout,
  jobMemoryOf,
  layoutOf,
  modelOptionsOf,
  queueSlots,
  type SizesAddon,
} from './job-layout.ts';
import { pinnedPlanOf } from './pinned-plan.ts';
import { rankedOf } from './ranking.ts';
import { placeRows } from './row-placement.ts';
import { readTokens, tokenBytes } from './row-sizes.ts';

/**
 * Host memory that a job will take, and what therefore stays on disk: a function of the
 * spec, the dataset's sizes and the host's memory, so that what is promised when a job is created
 * is what its attempts do.
 */

export interface MemoryFacts {
  readonly native: SizesAddon &
    Pick<CoreAddon, 'segmentDefaultSlots' | 'evaluationSizes' | 'hostTierRows'>;
  readonly counts: DatasetCounts;
  readonly hostBytes: number;
  /** Memory of the job's smallest device with memory of its own; 0: no device has any. */
  readonly deviceBytes: number;
}

/** Share of the memory left beside the job; other processes and the page cache need the rest. */
const topologyShare = 0.75;
/** Share of the memory left, for pages that are asked for before they are wanted. */
const readAheadShare = 0.25;
const readAheadMin = 64 * 2 ** 20;
/** Memory of an idle process, as the kernel counts it: Node, and libtorch in a Trainer. */
const samplerBaseBytes = 70 * 2 ** 20;
const trainerBaseBytes = 350 * 2 ** 20;

/** Where a topology of this size goes beside `otherBytes` that a job surely takes. */
function topologyPlaceOf(
  bytes: number,
  { otherBytes, hostBytes }: { readonly otherBytes: number; readonly hostBytes: number },
): TopologyPlace {
  return bytes <= topologyShare * (hostBytes - otherBytes) ? 'MEMORY' : 'FILE';
}

/** The same for a task that has nothing else in memory to speak of. */
export function taskTopologyPlace(
  native: Pick<CoreAddon, 'topologyBytes'>,
  counts: DatasetCounts,
  alias: boolean,
): TopologyPlace {
  if (alias) return 'MEMORY';
  const hostBytes = hostMemoryBytes();
  return topologyPlaceOf(native.topologyBytes(counts, alias), { otherBytes: 0, hostBytes });
}

/** Rows that one batch reads at most. */
function batchRowsOf(layout: JobLayout, numNodes: number): number {
  const { fanouts, batchSize } = layout.sampling;
  let frontier = batchSize;
  let rows = batchSize;
  for (const fanout of fanouts) {
    frontier *= fanout;
    rows += frontier;
  }
  return Math.min(numNodes, rows);
}

/** Throws what `layoutOf` throws. */
export function memoryPlanOf(spec: JobSpec, facts: MemoryFacts): MemoryPlan {
  const { counts, hostBytes, native } = facts;
  const layout = layoutOf(native, spec, counts);
  const alias = spec.sampling.algorithm === 'KHOP_WEIGHTED';
  const isInference = infers(spec);
  const rows = takesRows(spec.model.type) && !isInference ? rowPlanOf(spec, facts) : null;
  const own = isInference
    ? inferenceParts(spec, layout, facts)
    : [
        ...(rows === null ? [] : [rowWorkPart(spec, layout)]),
        ...(rows?.tier === 'DISK' ? [stagedPart(spec, layout)] : []),
        ...evaluationParts(spec, layout, facts),
        ...cacheParts(spec, counts),
        ...historyParts(spec, counts),
        parameterPart(spec, layout),
        ...(rows === null ? [extractionPart(spec, layout, counts)] : []),
        queuePart(spec, layout, facts),
      ];
  const others = [...own, processPart(spec)].filter(({ bytes }) => bytes > 0);
  const otherBytes = surelyOf(others);
  // A job on rows maps no topology.
  const topologyBytes = takesRows(spec.model.type) ? 0 : layout.memory.topologyBytes;
  const asked = spec.resources.topology;
  const isForced = asked !== 'AUTO' || alias;
  const topology = alias
    ? 'MEMORY'
    : asked === 'AUTO'
      ? topologyPlaceOf(topologyBytes, { otherBytes, hostBytes })
      : asked;
  const parts = [topologyPart(topology, topologyBytes, { alias, isForced }), ...others];
  const pinned = pinnedOf(spec, layout, { ...facts, otherBytes: surelyOf(parts) });
  if (pinned.bytes > 0) parts.push(pinnedPart(spec, pinned));
  const surelyBytes = surelyOf(parts);
  // Rows lie in mapped files, which the kernel drops when it needs the memory.
  const isMapped = takesRows(spec.model.type);
  const featuresBytes = isMapped ? 0 : counts.numNodes * rowBytesOf(spec, counts);
  const room =
    spec.resources.hostMemoryBytes > 0 ? spec.resources.hostMemoryBytes : hostBytes - surelyBytes;
  const onDisk = featuresBytes > room;
  if (onDisk) parts.push(copiedPart(spec, layout, counts));
  return {
    parts,
    surelyBytes,
    atMostBytes: sumOf(parts),
    hostBytes,
    topology,
    topologyBytes,
    features: onDisk ? 'DISK' : 'PAGE_CACHE',
    featuresBytes,
    readAheadBytes: onDisk ? readAheadBytesOf(hostBytes - surelyBytes) : 0,
    pinned,
    rows,
    inference: isInference ? inferenceSizesOf(spec, layout, facts) : null,
  };
}

function pinnedOf(
  spec: JobSpec,
  layout: JobLayout,
  facts: MemoryFacts & { readonly otherBytes: number },
): PinnedPlan {
  const { counts, native, hostBytes, deviceBytes, otherBytes } = facts;
  const rowBytes = rowBytesOf(spec, counts);
  const isShared = spec.resources.devices === 1 || spec.placement.standby !== 'OFF';
  return pinnedPlanOf(spec, {
    ...{ counts, rowBytes, hostBytes, deviceBytes, surelyBytes: otherBytes },
    samplerBytes: isShared ? layout.memory.samplerDeviceBytes : 0,
    rowsWithin: (bytes) => native.hostTierRows(bytes, rowBytes, counts.numNodes),
  });
}

function pinnedPart({ resources }: JobSpec, { bytes }: PinnedPlan): MemoryPart {
  return {
    name: 'feature rows that devices read',
    bytes,
    isBound: false,
    // An automatic size fits: no field needs a change.
    field:
      resources.pinnedFeaturesBytes === automaticBytes ? '' : 'resources.pinned_features_bytes',
    remedy: 'rows beyond it are copied to devices by the host; 0 has none',
  };
}

/** Where a job whose batches are rows reads them. */
export function rowPlanOf(
  spec: BatchSpec & Pick<JobSpec, 'resources'>,
  {
    native,
    counts,
    hostBytes,
    deviceBytes,
  }: Pick<MemoryFacts, 'counts' | 'hostBytes' | 'deviceBytes'> & {
    readonly native: Pick<CoreAddon, 'jobMemory'>;
  },
): RowPlan {
  const { numFeatures, train, val, test } = counts;
  const { propagation, training, resources } = spec;
  const tokens = readTokens(spec);
  const rowBytes = tokenBytes(propagation, numFeatures);
  const bytes = (train + val + test) * tokens * rowBytes;
  const facts = { bytes, trainBytes: train * tokens * rowBytes, rowBytes, hostBytes };
  const { batchSize } = training;
  const bounds = [deviceBytes, resources.deviceMemoryBytes].filter((bound) => bound > 0);
  const model = modelOptionsOf(spec, counts);
  const sizes = { parameterFloats: 0, slotBytes: 0 };
  const { rowDeviceBytes } = jobMemoryOf(native, { spec, counts, model }, sizes);
  const device =
    deviceBytes === 0 ? null : { freeBytes: Math.min(...bounds), workBytes: rowDeviceBytes };
  const forcedTier = resources.rowsFrom === 'AUTO' ? null : resources.rowsFrom;
  return { ...placeRows({ ...facts, batchSize, forcedTier, device }), bytes };
}

/** A fact of size: what surely does not fit, the largest part first, and what to do about it. */
export function memoryViolations(
  plan: MemoryPlan,
): readonly { readonly path: string; readonly description: string }[] {
  const { surelyBytes, hostBytes, parts } = plan;
  if (surelyBytes <= hostBytes) return [];
  const sure = parts.filter(({ isBound }) => !isBound);
  const largest = [...sure].sort((a, b) => b.bytes - a.bytes);
  const picked: MemoryPart[] = [];
  for (const part of largest) {
    if (surelyBytes - sumOf(picked) <= hostBytes) break;
    if (part.field !== '') picked.push(part);
  }
  const sizes = `the job takes at least ${gib(surelyBytes)} of the host's ${gib(hostBytes)}`;
  return picked.map(({ name, bytes, field, remedy }) => ({
    path: `spec.${field}`,
    description: `${sizes}, ${gib(bytes)} of it for ${name}: ${remedy}`,
  }));
}

/** Bytes of a feature row as the job reads it; standardised features are a file of float32. */
export function rowBytesOf(
  { features }: JobSpec,
  { numFeatures, featureDtype }: DatasetCounts,
): number {
  return numFeatures * featureBytes[features.standardize ? 'float32' : featureDtype];
}

function topologyPart(
  place: TopologyPlace,
  bytes: number,
  { alias, isForced }: { readonly alias: boolean; readonly isForced: boolean },
): MemoryPart {
  const remedy = alias
    ? 'tables to sample by edge weight are held in memory; sample uniformly'
    : 'FILE leaves it in its files';
  const field = alias ? 'sampling.algorithm' : 'resources.topology';
  const what = alias ? 'the topology with its alias tables' : 'the topology';
  // A topology that AUTO left in its files takes no memory; one that it holds fits.
  const taken = place === 'MEMORY' ? bytes : 0;
  return { name: what, bytes: taken, isBound: false, field: isForced ? field : '', remedy };
}

function evaluationParts(
  spec: JobSpec,
  layout: JobLayout,
  { native, counts }: MemoryFacts,
): readonly MemoryPart[] {
  // The widths of a TorchScript model are known only once it was loaded.
  if (spec.model.type === 'TORCHSCRIPT' || takesRows(spec.model.type)) return [];
  const { model, manifest } = layout;
  const sampled = spec.evaluation.method === 'SAMPLED';
  const { widths } = manifest;
  const { rankedColumns, bytes } = rankedOf(spec, counts);
  const ranked = rankedColumns > 0;
  const sizes = native.evaluationSizes({ counts, model, sampled, ranked, widths });
  const scratch = scratchOf(spec, sizes);
  return [
    {
      name: "an evaluation's hidden rows",
      bytes: scratch.inMemory ? scratch.scratchBytes : 0,
      isBound: false,
      field: 'evaluation.max_bytes',
      remedy: `below ${sizes.scratchBytes} they go to a file; evaluation.method SAMPLED has none`,
    },
    {
      name: 'sums of features kept for evaluations',
      bytes: scratch.keptBytes,
      isBound: true,
      field: 'evaluation.max_bytes',
      remedy: 'with less they are made anew each time',
    },
    {
      name: 'scores that evaluations rank nodes by',
      bytes,
      isBound: true,
      field: 'evaluation.metric',
      remedy: 'ROC_AUC and AVERAGE_PRECISION of many classes and nodes are only computed if asked',
    },
    {
      name: 'the work of evaluations',
      bytes:
        trainersOf(spec) *
        (sizes.workBytes + (trainsInOwnMemory(spec) ? layout.memory.evaluationPartBytes : 0)),
      isBound: true,
      field: 'resources.devices',
      remedy: 'fewer Trainers take less',
    },
  ];
}

/**
 * Embeddings and where each node's lie; what batches leave until their step is committed aside.
 * Where cached feature rows lie in the same memory, what they have of it counts there.
 */
function historyParts(spec: JobSpec, counts: DatasetCounts): readonly MemoryPart[] {
  if (!keepsHistory(spec)) return [];
  const copies = sharesHistory(spec) ? 1 : trainersOf(spec);
  const { maxBytes, levels } = spec.history;
  const cached = cachesBesideHistory(spec) ? cacheBytesOf(spec, counts) : 0;
  const isBeyond = cached > 0;
  return [
    {
      name: isBeyond
        ? 'embeddings of earlier steps, beyond what cached rows give up'
        : 'embeddings of earlier steps',
      bytes: copies * (Math.max(0, maxBytes - cached) + levels.length * 4 * counts.numNodes),
      isBound: true,
      field: 'history.max_bytes',
      remedy:
        'of more embeddings than fit the oldest are given up; history.stale_steps 0 keeps none',
    },
  ];
}

/** Host memory of one cache; 0 for devices that cache in their own memory (docs/gpu.md). */
function cacheBytesOf(spec: JobSpec, counts: DatasetCounts): number {
  const { ratio, standbyRatio } = spec.cache;
  if (hasOwnMemory(spec.resources)) return 0;
  if (ratio === automaticRatio) return spec.resources.deviceMemoryBytes;
  const largest = sharesHistory(spec) ? Math.max(ratio, standbyRatio) : ratio;
  return Math.floor(largest * counts.numNodes) * rowBytesOf(spec, counts);
}

function cacheParts(spec: JobSpec, counts: DatasetCounts): readonly MemoryPart[] {
  const { ratio } = spec.cache;
  const bytes = cacheBytesOf(spec, counts);
  if (bytes === 0) return [];
  // A cache in shared history memory exists once, not once per Trainer.
  const copies = sharesHistory(spec) ? 1 : trainersOf(spec);
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
      bytes: samplersOf(spec) * 4 * counts.numNodes,
      isBound: false,
      field: 'cache.ratio',
      remedy: '0 needs none',
    },
  ];
}

/** Versions, moments and the ring of gradients, in the segment. */
function parameterPart(spec: JobSpec, layout: JobLayout): MemoryPart {
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

function processPart(spec: JobSpec): MemoryPart {
  return {
    name: 'processes',
    bytes: samplersOf(spec) * samplerBaseBytes + trainersOf(spec) * trainerBaseBytes,
    isBound: false,
    field: spec.resources.devices > 1 ? 'resources.devices' : '',
    remedy: 'fewer devices have fewer processes',
  };
}

/** Memory of a model over rows: batches that were read, and all that is computed from one. */
function rowWorkPart(spec: JobSpec, layout: JobLayout): MemoryPart {
  return {
    name: 'batches, and the work on them',
    bytes: trainersOf(spec) * layout.memory.rowWorkBytes,
    isBound: true,
    field: 'training.batch_size',
    remedy: 'smaller batches take less, and so does a narrower model',
  };
}

/** Two batches a Trainer: one that is computed, one that is read meanwhile. */
function extractionPart(spec: JobSpec, layout: JobLayout, counts: DatasetCounts): MemoryPart {
  const rows = batchRowsOf(layout, counts.numNodes);
  const valueBytes = spec.training.precision === 'BFLOAT16' ? 2 : 4;
  return {
    name: 'extracted batches',
    bytes: trainersOf(spec) * 2 * rows * counts.numFeatures * valueBytes,
    isBound: true,
    field: 'training.batch_size',
    remedy: 'smaller batches, or smaller sampling.fanouts, take less',
  };
}

/** Rows of the file, beside each other, from which extraction goes on. */
function copiedPart(spec: JobSpec, layout: JobLayout, counts: DatasetCounts): MemoryPart {
  const rows = batchRowsOf(layout, counts.numNodes);
  return {
    name: 'rows read from disk',
    bytes: trainersOf(spec) * 2 * rows * rowBytesOf(spec, counts),
    isBound: true,
    field: 'training.batch_size',
    remedy: 'smaller batches, or smaller sampling.fanouts, take less',
  };
}

/** Rows that a Trainer reads from disk ahead: the batch that is taken and those after it. */
function stagedPart(spec: JobSpec, layout: JobLayout): MemoryPart {
  return {
    name: 'rows read ahead from disk',
    bytes: trainersOf(spec) * layout.memory.rowStagedBytes,
    isBound: true,
    field: 'training.batch_size',
    remedy: 'smaller batches take less',
  };
}

/** Records that wait: as many as there are slots, within the budget. */
function queuePart(spec: JobSpec, layout: JobLayout, { native, counts }: MemoryFacts): MemoryPart {
  const deviceCount = spec.resources.devices;
  const executorCount = samplersOf(spec) + trainersOf(spec);
  const request = { spec, counts, layout, deviceCount, executorCount };
  const slots = queueSlots(native, request, 0);
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

function readAheadBytesOf(left: number): number {
  return Math.max(readAheadMin, Math.floor(readAheadShare * left));
}

function samplersOf(spec: JobSpec): number {
  const { resources, placement } = spec;
  if (infers(spec) || takesRows(spec.model.type)) return 0;
  if (placement.policy === 'FIXED') return Math.max(1, placement.samplers);
  return Math.max(1, resources.devices - 1);
}

/** Standby Trainers included: they have all that a Trainer has. */
function trainersOf(spec: JobSpec): number {
  const { resources, placement } = spec;
  // These jobs have no Samplers.
  if (infers(spec) || takesRows(spec.model.type)) return resources.devices;
  if (resources.devices === 1) return 1;
  if (placement.standby !== 'OFF') return resources.devices;
  return resources.devices - (placement.policy === 'FIXED' ? placement.samplers : 1);
}

function surelyOf(parts: readonly MemoryPart[]): number {
  return sumOf(parts.filter(({ isBound }) => !isBound));
}

function sumOf(parts: readonly MemoryPart[]): number {
  return parts.reduce((sum, { bytes }) => sum + bytes, 0);
}

function gib(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(2)} GiB`;
}
