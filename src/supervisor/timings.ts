import { type SegmentSnapshot, stages } from '../native/contract.ts';

/** Medians per batch, nanoseconds: T_s, T_t, T_t'; 0 = not seen. */
export interface MeasuredTimings {
  readonly samplerBatchNs: number;
  readonly trainerBatchNs: number;
  readonly standbyBatchNs: number;
}

const sum = (a: number, b: number) => a + b;

/**
 * T_s = S + M + C; T_t = max(E, T) where Trainers `prefetch`, else E + T, as always for T_t': a
 * standby Trainer takes nothing ahead. Medians; 0 = not seen.
 */
export function timingsOf(snapshot: SegmentSnapshot, prefetch: boolean): MeasuredTimings {
  const medianOf = (
    role: string,
    names: readonly (typeof stages)[number][],
    join: (a: number, b: number) => number,
  ) => {
    const times = snapshot.executors
      .filter((executor) => executor.role === role)
      .map((executor) =>
        names
          .map((name) => executor.stages[stages.indexOf(name)]?.medianNs ?? 0)
          .reduce((a, b) => join(a, b)),
      )
      .filter((time) => time > 0)
      .sort((a, b) => a - b);
    return times[Math.floor(times.length / 2)] ?? 0;
  };
  const trainer = medianOf('TRAINER', ['EXTRACT', 'TRAIN'], prefetch ? Math.max : sum);
  const standby = medianOf('STANDBY', ['EXTRACT', 'TRAIN'], sum);
  return {
    samplerBatchNs: medianOf('SAMPLER', ['SAMPLE', 'MARK', 'COPY'], sum),
    trainerBatchNs: trainer === 0 ? standby : trainer,
    standbyBatchNs: standby === 0 ? trainer : standby,
  };
}
