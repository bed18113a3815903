/** Time of one batch on each kind of executor, in integer nanoseconds, waits excluded. */
export interface Timings {
  /** T_s: sample + mark + copy of one batch by one Sampler. */
  readonly samplerBatchNs: number;
  /** T_t: one batch by one Trainer: the longer of E and T where it prefetches, else E + T. */
  readonly trainerBatchNs: number;
  /** T_t': E' + T' of one batch by a standby Trainer, whose cache is smaller. */
  readonly standbyBatchNs: number;
  /** Parts of T_t and T_t'; null: not told apart, all of it is computing. */
  readonly parts: BatchParts | null;
}

/** Only computing waits for the step before; extraction may run ahead of it. */
export interface BatchParts {
  /** E and T of a Trainer. */
  readonly extractNs: number;
  readonly trainNs: number;
  /** E' and T' of a standby Trainer. */
  readonly standbyExtractNs: number;
  readonly standbyTrainNs: number;
  /** A: applying one step. */
  readonly applyNs: number;
  /** Whether who trains extracts its next batch meanwhile, unless a Sampler wants its device. */
  readonly prefetch: boolean;
}

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
