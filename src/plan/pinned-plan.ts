import type { DatasetCounts } from '../native/contract.ts';
import type { PinnedPlan } from '../records/memory-plan.ts';
import { mayPin } from '../spec/cache-spec.ts';
import { trainsInOwnMemory } from '../spec/device-kinds.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { automaticBytes, automaticRatio } from '../spec/limits.ts';
import { rowBytesOf } from './memory-parts.ts';
import type { JobLayout, MemoryFacts } from './plan-kind.ts';

/**
 * How many of the hottest feature rows lie in memory of the host's that devices read by themselves
 * (native/core/feature/host_tier.h): a function of the spec, sizes, and the memory of host and
 * devices.
 */

export interface PinnedFacts {
  readonly counts: DatasetCounts;
  readonly rowBytes: number;
  readonly hostBytes: number;
  /** Host memory that the job surely takes for everything else. */
  readonly surelyBytes: number;
  /** Memory of the job's smallest device with memory of its own; 0: unknown. */
  readonly deviceBytes: number;
  /** Memory that a Sampler beside a standby Trainer holds on that device. */
  readonly samplerBytes: number;
  /** Number of rows that fit in so many bytes. */
  readonly rowsWithin: (bytes: number) => number;
}

/** Share of the host memory that the job leaves; the rest is for others and mapped files. */
const pinnedShare = 0.5;
/** Least share of a device's memory that its cache gets beside the work of batches. */
const cacheShare = 0.75;

const pageBytes = 4096;

/** Plans for a job that trains, of which `otherBytes` of host memory are taken already. */
export function pinnedOf(
  spec: JobSpec,
  layout: JobLayout,
  { counts, native, hostBytes, deviceBytes }: MemoryFacts,
  otherBytes: number,
): PinnedPlan {
  const rowBytes = rowBytesOf(spec, counts);
  const isShared = spec.resources.devices === 1 || spec.placement.standby !== 'OFF';
  return pinnedPlanOf(spec, {
    ...{ counts, rowBytes, hostBytes, deviceBytes, surelyBytes: otherBytes },
    samplerBytes: isShared ? layout.memory.samplerDeviceBytes : 0,
    rowsWithin: (bytes) => native.hostTierRows(bytes, rowBytes, counts.numNodes),
  });
}

export function pinnedPlanOf(spec: JobSpec, facts: PinnedFacts): PinnedPlan {
  if (!mayPin(spec)) {
    // There is nothing to say on CPU devices, which compute on the host.
    const reason = trainsInOwnMemory(spec) ? 'none, as asked for' : '';
    return { rows: 0, bytes: 0, reason };
  }
  const { counts, rowBytes, rowsWithin } = facts;
  const asked = spec.resources.pinnedFeaturesBytes;
  const rows = rowsWithin(asked === automaticBytes ? roomOf(spec, facts) : asked);
  const refusal = rows === 0 ? noRoom(spec, facts) : uselessness(spec, facts, rows);
  if (refusal !== null) return { rows: 0, bytes: 0, reason: refusal };
  const bytes = Math.ceil((pageBytes + rows * rowBytes) / pageBytes) * pageBytes;
  const percent = `${((100 * rows) / counts.numNodes).toFixed(1)} % of the rows`;
  const why = asked === automaticBytes ? 'as the host has room' : 'as asked for';
  return { rows, bytes, reason: `${percent}, ${why}` };
}

/** Bytes that an automatic tier may take. */
function roomOf({ resources }: JobSpec, facts: PinnedFacts): number {
  const { counts, rowBytes, hostBytes, surelyBytes } = facts;
  const left = Math.max(0, hostBytes - surelyBytes);
  const bound = resources.hostMemoryBytes > 0 ? resources.hostMemoryBytes : left;
  const share = Math.floor(pinnedShare * Math.min(left, bound));
  // Evaluations read all rows in their files: those stay in the page cache where they fit there.
  const spare = left - counts.numNodes * rowBytes;
  return spare > 0 ? Math.min(share, spare) : share;
}

function noRoom({ resources }: JobSpec, { hostBytes, surelyBytes }: PinnedFacts): string {
  if (resources.pinnedFeaturesBytes !== automaticBytes) {
    return `none: ${resources.pinnedFeaturesBytes} bytes, as asked for, hold no row`;
  }
  const left = `${Math.max(0, hostBytes - surelyBytes)} of ${hostBytes} bytes`;
  return `none: the rest of the job leaves ${left} of the host's memory, which features need`;
}

/** Why an automatic tier of so many rows would serve nobody; null: it may. */
function uselessness(spec: JobSpec, facts: PinnedFacts, rows: number): string | null {
  if (spec.resources.pinnedFeaturesBytes !== automaticBytes) return null;
  const kept = keptByDevices(spec, facts);
  if (rows > kept) return null;
  const all = kept >= facts.counts.numNodes;
  return all
    ? 'none: devices have room for all rows themselves'
    : `none: devices have room for as many rows themselves (${kept}) as the host has (${rows})`;
}

/** Rows that every Trainer's device is expected to keep. */
function keptByDevices({ cache, resources }: JobSpec, facts: PinnedFacts): number {
  const { counts, rowBytes, deviceBytes, samplerBytes } = facts;
  if (cache.ratio !== automaticRatio) {
    const standby = cache.standbyRatio === automaticRatio ? cache.ratio : cache.standbyRatio;
    return Math.floor(Math.min(cache.ratio, standby) * counts.numNodes);
  }
  const asked = resources.deviceMemoryBytes;
  const budget = asked > 0 ? Math.min(asked, deviceBytes) : deviceBytes;
  const left = Math.max(0, cacheShare * budget - samplerBytes);
  return Math.min(counts.numNodes, Math.floor(left / rowBytes));
}
