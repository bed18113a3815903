import { type DatasetCounts, rankedEntryBytes } from '../native/contract.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { type DecidingMetric, decidingMetric } from '../spec/metrics.ts';

/**
 * Scores that evaluations keep to rank nodes by: one for each label, one for two classes, and for
 * more one each, but only where they decide. None where they would take much and none is asked for.
 */
export function rankedOf(spec: JobSpec, counts: DatasetCounts) {
  const asked = rankedMetrics.has(decidingMetric(spec, counts.task));
  const rankedNodes = Math.max(counts.val, counts.test);
  const rankedColumns = columnsOf(counts, asked);
  const bytes = rankedNodes * rankedColumns * rankedEntryBytes;
  const fits = bytes <= rankedMaxBytes || asked;
  return fits && bytes > 0 ? { rankedColumns, rankedNodes, bytes } : unranked;
}

const rankedMaxBytes = 2 ** 30;
const rankedMetrics: ReadonlySet<DecidingMetric> = new Set(['ROC_AUC', 'AVERAGE_PRECISION']);
const unranked = { rankedColumns: 0, rankedNodes: 0, bytes: 0 };

function columnsOf({ task, numClasses }: DatasetCounts, asked: boolean): number {
  if (task === 'REGRESSION') return 0;
  if (task === 'MULTI_LABEL') return numClasses;
  if (numClasses === 2) return 1;
  return asked ? numClasses : 0;
}
