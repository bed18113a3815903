import type {
  DatasetCounts,
  HistoryConfig,
  HistoryOptions,
  JobMemory,
  SegmentSpec,
} from '../native/contract.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { keepsHistory, sharesHistory } from '../spec/rules/history.ts';

/** What a job's history is in native terms (native/core/history). */

export const noHistory: HistoryConfig = {
  bytes: 0,
  staleVersions: 0,
  startVersion: 0,
  rowBytes: 0,
  levels: 0,
  numNodes: 0,
  featureBytes: 0,
  cacheRows: 0,
};

/** Feature rows that lie in history's memory, as many as embeddings leave room for. */
export interface CachedRows {
  readonly rows: number;
  readonly rowBytes: number;
}

export const noCachedRows: CachedRows = { rows: 0, rowBytes: 0 };

export function historyConfigOf(
  {
    spec: { history },
    counts: { numNodes },
    layout,
  }: {
    readonly spec: JobSpec;
    readonly counts: DatasetCounts;
    readonly layout: { readonly memory: JobMemory };
  },
  { rows, rowBytes }: CachedRows,
): HistoryConfig {
  return {
    bytes: history.maxBytes,
    staleVersions: history.staleSteps,
    startVersion: history.startStep,
    rowBytes: layout.memory.historyRowBytes,
    levels: history.levels.length,
    numNodes,
    featureBytes: rows === 0 ? 0 : rowBytes,
    cacheRows: rows,
  };
}

/**
 * Whether a batch after so many steps finds what any later one finds. Before that batches take
 * longer, and their times say nothing of the split.
 */
export function isHistoryWarm(
  spec: Pick<JobSpec, 'history' | 'kind'>,
  { steps, stepsPerEpoch }: { readonly steps: number; readonly stepsPerEpoch: number },
): boolean {
  if (!keepsHistory(spec)) return true;
  const { startStep, staleSteps } = spec.history;
  // Embeddings kept for longer than an epoch have met each seed's neighbours by then.
  return steps >= startStep + Math.min(staleSteps, stepsPerEpoch);
}

/** History options of a Trainer that would cache so much; a trial's segment has no history. */
export function historyOptionsOf(
  {
    spec,
    dataset: { counts },
    layout,
    segment,
  }: {
    readonly spec: JobSpec;
    readonly dataset: { readonly counts: DatasetCounts };
    readonly layout: { readonly memory: JobMemory };
    readonly segment: Pick<SegmentSpec, 'batchLimit'>;
  },
  cached: CachedRows,
): HistoryOptions {
  const isTrial = segment.batchLimit > 0;
  if (!keepsHistory(spec) || isTrial) return { own: noHistory, levels: 0, gradientShare: 0 };
  return {
    own: sharesHistory(spec) ? noHistory : historyConfigOf({ spec, counts, layout }, cached),
    levels: spec.history.levels.reduce((bits, level) => bits + 2 ** level, 0),
    gradientShare: spec.history.gradientShare,
  };
}
