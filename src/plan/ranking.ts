import {
  countsPerClass,
  type DatasetCounts,
  linkCounts,
  rankedColumnBytes,
  rankedEntryBytes,
} from '../native/contract.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { type DecidingMetric, decidingMetric } from '../spec/metrics.ts';
import type { Judged, LinkCounts } from './plan-kind.ts';

export function judgedNodes(spec: JobSpec, counts: DatasetCounts): Judged {
  const { val, test } = counts;
  const rankedBytes = rankedBytesOf(spec, counts);
  return { val, test, chunkCounts: chunkCountsOf(counts), rankedBytes };
}

/** Of each link its score and that of one negative are ranked, or all with the pool they share. */
export function judgedLinks(
  { val, test, valPool, testPool }: LinkCounts,
  negatives: JobSpec['links']['evaluation']['negatives'],
): Judged {
  const isPooled = negatives === 'POOL';
  const entries = isPooled ? Math.max(val + valPool, test + testPool) : 2 * Math.max(val, test);
  const rankedBytes = rankedColumnBytes + entries * rankedEntryBytes;
  return { val, test, chunkCounts: linkCounts, rankedBytes };
}

/** Integers that a chunk of an evaluation counts beside its sums. */
export function chunkCountsOf({ task, numClasses }: DatasetCounts): number {
  return task === 'REGRESSION' ? 0 : countsPerClass * numClasses;
}

/**
 * Bytes of the scores that evaluations keep to rank nodes by: one score for each label, one for two
 * classes, and for more one each, but only where they decide. 0 where they would take much and
 * nobody asks for them.
 */
export function rankedBytesOf(spec: JobSpec, counts: DatasetCounts): number {
  const asked = rankedMetrics.has(decidingMetric(spec, counts.task));
  const nodes = Math.max(counts.val, counts.test);
  const columns = columnsOf(counts, asked);
  const entryBytes = nodes * columns * rankedEntryBytes;
  if (entryBytes === 0 || (entryBytes > rankedMaxBytes && !asked)) return 0;
  return columns * rankedColumnBytes + entryBytes;
}

const rankedMaxBytes = 2 ** 30;
const rankedMetrics: ReadonlySet<DecidingMetric> = new Set(['ROC_AUC', 'AVERAGE_PRECISION']);

function columnsOf({ task, numClasses }: DatasetCounts, asked: boolean): number {
  if (task === 'REGRESSION') return 0;
  if (task === 'MULTI_LABEL') return numClasses;
  if (numClasses === 2) return 1;
  return asked ? numClasses : 0;
}
