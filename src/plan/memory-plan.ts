import { hostMemoryBytes } from '../base/host-memory.ts';
import type { CoreAddon, DatasetCounts } from '../native/contract.ts';
import type { MemoryPart, MemoryPlan, PinnedPlan, TopologyPlace } from '../records/memory-plan.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { automaticBytes } from '../spec/limits.ts';
import { layoutOf } from './job-layout.ts';
import type { Crew, JobLayout, MemoryFacts, PlanKind } from './plan-kind.ts';

/**
 * Host memory that a job will take, and what therefore stays on disk: a function of the
 * spec, the dataset's sizes and the host's memory, so that what is promised when a job is created
 * is what its attempts do.
 */

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

/** Throws what `layoutOf` throws. */
export function memoryPlanOf(kind: PlanKind, spec: JobSpec, facts: MemoryFacts): MemoryPlan {
  const { counts, hostBytes, native } = facts;
  const layout = layoutOf(kind, native, spec, counts);
  const alias = spec.sampling.algorithm === 'KHOP_WEIGHTED';
  const crew = kind.crew(spec);
  const own = kind.ownMemory(spec, layout, facts);
  const others = [...own.parts, processPart(spec, crew)].filter(({ bytes }) => bytes > 0);
  const otherBytes = surelyOf(others);
  const topologyBytes = kind.batches.topologyBytes(layout);
  const asked = spec.resources.topology;
  const isForced = asked !== 'AUTO' || alias;
  const topology = alias
    ? 'MEMORY'
    : asked === 'AUTO'
      ? topologyPlaceOf(topologyBytes, { otherBytes, hostBytes })
      : asked;
  const parts = [topologyPart(topology, topologyBytes, { alias, isForced }), ...others];
  const pinned = kind.pinned(spec, layout, facts, surelyOf(parts));
  if (pinned.bytes > 0) parts.push(pinnedPart(spec, pinned));
  const surelyBytes = surelyOf(parts);
  const featuresBytes = kind.batches.featuresBytes(spec, counts);
  const room =
    spec.resources.hostMemoryBytes > 0 ? spec.resources.hostMemoryBytes : hostBytes - surelyBytes;
  const onDisk = featuresBytes > room;
  if (onDisk) parts.push(copiedPart(kind, spec, layout, facts));
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
    rows: own.rows,
    inference: own.inference,
  };
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

function processPart({ resources }: JobSpec, { samplers, trainers }: Crew): MemoryPart {
  return {
    name: 'processes',
    bytes: samplers * samplerBaseBytes + trainers * trainerBaseBytes,
    isBound: false,
    field: resources.devices > 1 ? 'resources.devices' : '',
    remedy: 'fewer devices have fewer processes',
  };
}

/** Rows of the file, beside each other, from which extraction goes on. */
function copiedPart(
  kind: PlanKind,
  spec: JobSpec,
  layout: JobLayout,
  { counts }: MemoryFacts,
): MemoryPart {
  const { stored } = kind.batches.batchBytes(spec, layout, counts);
  return {
    name: 'rows read from disk',
    bytes: kind.crew(spec).trainers * 2 * stored,
    isBound: true,
    field: 'training.batch_size',
    remedy: 'smaller batches, or smaller sampling.fanouts, take less',
  };
}

function readAheadBytesOf(left: number): number {
  return Math.max(readAheadMin, Math.floor(readAheadShare * left));
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
