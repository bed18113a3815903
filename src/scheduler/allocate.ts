import type { Timings } from '../records/batch-times.ts';
import type { PlacementPolicy } from '../spec/job-spec.ts';
import { type Fraction, fraction, isLess, larger } from './fraction.ts';
import { areTimings } from './timings.ts';

/**
 * How many of a job's devices sample, by policy (GNNLab §5.3; `minmax` is ours). All comparisons
 * are exact. What a split takes is predicted by predict.ts, and plan.ts chooses.
 */

/**
 * N_s = ceil(N_g / (K + 1)) in integers (GNNLab §5.3), clamped to 1..N_g-1; 1 when N_g = 1. The
 * clamp is ours: the paper's formula leaves no Trainer when K < 1 / (N_g - 1), and no Sampler
 * when T_s = 0.
 */
export function paperSamplers(deviceCount: number, timings: Timings): number {
  checkInputs(deviceCount, timings);
  if (deviceCount === 1) return 1;
  const sampler = BigInt(timings.samplerBatchNs);
  const trainer = BigInt(timings.trainerBatchNs);
  const both = sampler + trainer;
  if (both === 0n) return 1;
  const samplers = Number((BigInt(deviceCount) * sampler + both - 1n) / both);
  return Math.min(Math.max(samplers, 1), deviceCount - 1);
}

/** The smallest n in 1..N_g-1 with the least max(T_s / n, T_t / (N_g - n)); 1 when N_g = 1. */
export function minmaxSamplers(deviceCount: number, timings: Timings): number {
  checkInputs(deviceCount, timings);
  const slower = (samplers: number): Fraction =>
    larger(
      fraction(BigInt(timings.samplerBatchNs), BigInt(samplers)),
      fraction(BigInt(timings.trainerBatchNs), BigInt(deviceCount - samplers)),
    );
  let best = 1;
  for (let samplers = 2; samplers < deviceCount; samplers += 1) {
    if (isLess(slower(samplers), slower(best))) best = samplers;
  }
  return best;
}

/** K = T_t / T_s for display; Infinity when T_s = 0 < T_t, 1 when both are 0. */
export function trainerRatio({ samplerBatchNs, trainerBatchNs }: Timings): number {
  if (samplerBatchNs === 0) return trainerBatchNs === 0 ? 1 : Infinity;
  return trainerBatchNs / samplerBatchNs;
}

export interface SamplersRequest {
  /** Number of devices, N_g, at least 1. */
  readonly deviceCount: number;
  readonly policy: PlacementPolicy;
  /** N_s for FIXED, within 1..N_g; ignored by the other policies. */
  readonly fixedSamplers: number;
  readonly timings: Timings;
}

/** Number of Samplers that a policy chooses, N_s; N_g itself: all devices do both. */
export interface SamplersChoice {
  readonly policy: 'PAPER' | 'MINMAX' | 'FIXED';
  readonly samplers: number;
}

/**
 * What each policy would choose, PAPER and MINMAX first; FIXED only when asked for. Throws
 * RangeError when `fixedSamplers` or a timing is out of range: callers check user input.
 */
export function samplersOf(request: SamplersRequest): readonly SamplersChoice[] {
  const { deviceCount, policy, fixedSamplers, timings } = request;
  checkInputs(deviceCount, timings);
  if (policy === 'FIXED' && !isFixedSplit(deviceCount, fixedSamplers)) {
    throw new RangeError(
      `samplersOf: ${fixedSamplers} Samplers on ${deviceCount} devices, expected 1 to all of them`,
    );
  }
  return [
    { policy: 'PAPER', samplers: paperSamplers(deviceCount, timings) },
    { policy: 'MINMAX', samplers: minmaxSamplers(deviceCount, timings) },
    ...(policy === 'FIXED' ? [{ policy, samplers: fixedSamplers }] : []),
  ];
}

function checkInputs(deviceCount: number, timings: Timings): void {
  if (!Number.isSafeInteger(deviceCount) || deviceCount < 1) {
    throw new RangeError(`the device count is ${deviceCount}, expected at least 1`);
  }
  if (!areTimings(timings)) {
    throw new RangeError(`timings are ${JSON.stringify(timings)}, expected whole non-negative ns`);
  }
}

/** Whether FIXED may have `samplers` devices sample; with all of them, all do both. */
export function isFixedSplit(deviceCount: number, samplers: number): boolean {
  return Number.isSafeInteger(samplers) && samplers >= 1 && samplers <= deviceCount;
}
