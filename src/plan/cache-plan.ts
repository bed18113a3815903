import type { DatasetCounts } from '../native/contract.ts';
import type { CachePlan } from '../records/job-record.ts';
import type { PinnedPlan } from '../records/memory-plan.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { automaticRatio } from '../spec/limits.ts';
import { cachesBesideHistory, keepsHistory } from '../spec/rules/history.ts';
import { favours } from '../spec/rules/locality.ts';
import { rowBytesOf } from './memory-parts.ts';

/**
 * How many rows devices keep, and whether they are read ahead (docs/caching.md): a function of the
 * spec, the devices and what was measured.
 */

export interface CacheFacts {
  readonly pinned: Pick<PinnedPlan, 'rows' | 'reason'>;
  readonly counts: DatasetCounts;
  /** What a Sampler holds of the device that it shares with a standby Trainer: the topology. */
  readonly samplerBytes: number;
  /** Budget of the job's smallest device with memory of its own; 0: no device has any. */
  readonly deviceBudgetBytes: number;
  /** Memory that the work of trial batches took at most; 0 = not measured yet. */
  readonly workBytes: number;
  /** Memory of such a device left to others than gnnd, torch above all (device-memory.ts). */
  readonly reservedBytes: number;
  /** Device memory of evaluations: private memory and their part of the scratch. */
  readonly evaluationBytes: number;
  /** Milliseconds that ranking took. */
  readonly rankMs: number;
  /** Whether rows that miss are read from disk: the page cache cannot hold all features. */
  readonly featuresOnDisk: boolean;
  /** Cores of the smallest device that training leaves free; null: no device trains on cores. */
  readonly freeCores: number | null;
}

/** Larger batches than the trial's are to be expected. */
const workMargin = 1.1;

/** Plans the cache of one device. Automatic sizes are 0 until the work was measured. */
export function cachePlanOf(spec: JobSpec, facts: CacheFacts): Omit<CachePlan, 'placement'> {
  const { ratio, standbyRatio, policy } = spec.cache;
  const { counts, samplerBytes, rankMs } = facts;
  const rowBytes = rowBytesOf(spec, counts);
  const given = (share: number) => Math.floor(share * counts.numNodes);
  const automatic = (residentBytes: number) => {
    const budgetBytes = budgetOf(spec, facts);
    if (budgetBytes === 0 || facts.workBytes === 0) return 0;
    const leftBytes =
      budgetBytes -
      residentBytes -
      workMargin * facts.workBytes -
      facts.evaluationBytes -
      facts.reservedBytes;
    return Math.min(counts.numNodes, Math.max(0, Math.floor(leftBytes / rowBytes)));
  };
  const trainerRows = ratio === automaticRatio ? automatic(0) : given(ratio);
  const standbyRows =
    standbyRatio !== automaticRatio
      ? given(standbyRatio)
      : ratio === automaticRatio
        ? automatic(samplerBytes)
        : trainerRows;
  return {
    policy,
    trainerRows,
    standbyRows,
    rowBytes,
    reservedBytes: facts.reservedBytes,
    rankMs,
    explanation: explanationOf(spec, facts, trainerRows),
    ...prefetchOf(spec, facts),
    pinnedRows: facts.pinned.rows,
    pinnedExplanation: facts.pinned.reason,
    favoured: favouredText(spec),
  };
}

/** The device's memory budget, or less where the spec says so; 0: unknown. */
function budgetOf({ resources }: JobSpec, { deviceBudgetBytes }: CacheFacts): number {
  const bounds = [resources.deviceMemoryBytes, deviceBudgetBytes].filter((bytes) => bytes > 0);
  return bounds.length === 0 ? 0 : Math.min(...bounds);
}

/** Why AUTO is as it is: docs/decisions/0006-extraction-ahead.md. */
function prefetchOf(
  spec: JobSpec,
  { featuresOnDisk, freeCores }: CacheFacts,
): Pick<CachePlan, 'prefetch' | 'prefetchExplanation'> {
  if (keepsHistory(spec)) {
    return { prefetch: false, prefetchExplanation: 'history changes with every step' };
  }
  if (spec.cache.prefetch !== 'AUTO') {
    return { prefetch: spec.cache.prefetch === 'ON', prefetchExplanation: 'as asked for' };
  }
  if (featuresOnDisk) {
    return { prefetch: true, prefetchExplanation: 'features are read from disk' };
  }
  if (freeCores === null) {
    return { prefetch: true, prefetchExplanation: 'training leaves the host its cores' };
  }
  if (freeCores > 0) {
    return { prefetch: true, prefetchExplanation: 'devices have cores that training leaves free' };
  }
  return { prefetch: false, prefetchExplanation: 'training keeps all cores busy' };
}

/** Says which nodes batches favour, and how much; empty: locality is off. */
function favouredText(spec: JobSpec): string {
  if (!favours(spec)) return '';
  const { maxScale, ratio, hopNodes, schedule } = spec.sampling.locality;
  const percent = (100 * ratio).toFixed(1);
  const when =
    schedule === 'ADAPTIVE'
      ? `up to ${maxScale} times, by what extraction takes`
      : `${maxScale} times in every epoch`;
  const whom = `${percent} % of the rows, and ${hopNodes} nodes of a hop before`;
  return `${whom}, ${when} as likely as others`;
}

function explanationOf(spec: JobSpec, facts: CacheFacts, rows: number): string {
  const { counts, workBytes, evaluationBytes, reservedBytes } = facts;
  const budgetBytes = budgetOf(spec, facts);
  const percent = ((100 * rows) / counts.numNodes).toFixed(1);
  const until = cachesBesideHistory(spec) && rows > 0 ? '; the coldest give way to embeddings' : '';
  if (spec.cache.ratio !== automaticRatio) return `${percent} % of the rows, as asked for${until}`;
  if (budgetBytes === 0) {
    return (
      'none: cache and host memory are the same memory on a CPU device; ' +
      'set cache.ratio or resources.device_memory_bytes to have one'
    );
  }
  if (workBytes === 0) return 'not known before the work of a batch was measured';
  return (
    `${percent} % of the rows fit ${budgetBytes} bytes ` +
    `beside ${workBytes} bytes of work, a margin of a tenth, ${evaluationBytes} bytes of ` +
    `evaluation and ${reservedBytes} bytes reserved for PyTorch${until}`
  );
}
