/** Whole nanoseconds of one batch on each kind of executor, waits excluded; 0: not seen. */
export interface BatchTimes {
  /** T_s: sample + mark + copy of one batch by one Sampler. */
  readonly samplerBatchNs: number;
  /** T_t: one batch by one Trainer: the longer of E and T where it prefetches, else E + T. */
  readonly trainerBatchNs: number;
  /** T_t': E' + T' of one batch by a standby Trainer, whose cache is smaller. */
  readonly standbyBatchNs: number;
}

/** Parts of T_t and T_t'. Only computing waits for the step before; extraction may run ahead. */
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

export interface Timings extends BatchTimes {
  /** Null: the parts were not told apart, all of it is computing. */
  readonly parts: BatchParts | null;
}
