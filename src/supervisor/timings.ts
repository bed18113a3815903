import { type SegmentSnapshot, stages } from '../native/contract.ts';

/** Medians per batch, nanoseconds: T_s, T_t, T_t'; 0 = not seen. */
export interface MeasuredTimings {
  readonly samplerBatchNs: number;
  readonly trainerBatchNs: number;
  readonly standbyBatchNs: number;
}

/** T_s = S + M + C; T_t = E + T, as extraction does not overlap training; medians, 0 = not seen. */
export function timingsOf(snapshot: SegmentSnapshot): MeasuredTimings {
  const medianOf = (role: string, names: readonly (typeof stages)[number][]) => {
    const sums = snapshot.executors
      .filter((executor) => executor.role === role)
      .map((executor) =>
        names.reduce(
          (sum, name) => sum + (executor.stages[stages.indexOf(name)]?.medianNs ?? 0),
          0,
        ),
      )
      .filter((sum) => sum > 0)
      .sort((a, b) => a - b);
    return sums[Math.floor(sums.length / 2)] ?? 0;
  };
  const trainer = medianOf('TRAINER', ['EXTRACT', 'TRAIN']);
  const standby = medianOf('STANDBY', ['EXTRACT', 'TRAIN']);
  return {
    samplerBatchNs: medianOf('SAMPLER', ['SAMPLE', 'MARK', 'COPY']),
    trainerBatchNs: trainer === 0 ? standby : trainer,
    standbyBatchNs: standby === 0 ? trainer : standby,
  };
}
