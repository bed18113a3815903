import type { JobResult } from '../records/job-record.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { metricTitle } from '../spec/metrics.ts';

/**
 * What a SUCCEEDED job's message says: empty unless it stopped early, or predicted a dataset of
 * which not all could be told. Epochs count from 1.
 */
export function completionMessage(
  { epochs, earlyStop: { patienceEpochs, minDelta } }: JobSpec['training'],
  result: Pick<JobResult, 'epochs' | 'bestEpoch' | 'predictions' | 'bestValMetrics'>,
): string {
  if (result.predictions !== undefined) return result.predictions.notice;
  if (result.epochs >= epochs || patienceEpochs === 0) return '';
  const better = minDelta === 0 ? '' : ` by more than ${minDelta}`;
  const what = metricTitle(result.bestValMetrics[0]?.name ?? 'accuracy');
  const waited = patienceEpochs === 1 ? '1 epoch' : `${patienceEpochs} epochs`;
  return (
    `stopped early after epoch ${result.epochs}: no better validation ${what}${better} ` +
    `for ${waited}; best epoch ${result.bestEpoch + 1}`
  );
}
