import type { BatchParts, Timings } from '../records/batch-times.ts';

/** Whether every timing is a whole, non-negative number of ns below 2^53. */
export function areTimings({ parts, ...batches }: Timings): boolean {
  const { prefetch: _, ...stages } = parts ?? { prefetch: false };
  return [...Object.values(batches), ...Object.values(stages)].every(
    (valueNs) => Number.isSafeInteger(valueNs) && valueNs >= 0,
  );
}

/** The parts; without any, those of a batch that needs no extraction and no step. */
export function partsOf({ trainerBatchNs, standbyBatchNs, parts }: Timings): BatchParts {
  return (
    parts ?? {
      extractNs: 0,
      trainNs: trainerBatchNs,
      standbyExtractNs: 0,
      standbyTrainNs: standbyBatchNs,
      applyNs: 0,
      prefetch: false,
    }
  );
}
