import type { PolicyChoice } from '../records/job-record.ts';
import type { PlacementPolicy } from '../spec/job-spec.ts';

/**
 * How many of a job's devices sample and how many train (GNNLab §5.3; `minmax` is ours). All
 * comparisons are exact: times are integer nanoseconds and fractions are compared by cross
 * products, because doubles turn K = 3 into 2.9999999999999996 and a Sampler too many.
 */

/** What one batch costs each kind of executor, in integer nanoseconds, waits excluded. */
export interface Timings {
  /** T_s: sample + mark + copy of one batch by one Sampler. */
  readonly samplerBatchNs: number;
  /** T_t: one batch by one Trainer. */
  readonly trainerBatchNs: number;
  /** T_t': one batch by a standby Trainer, whose cache is smaller. */
  readonly standbyBatchNs: number;
}

export interface AllocationRequest {
  /** N_g, at least 1. */
  readonly deviceCount: number;
  readonly policy: PlacementPolicy;
  /** N_s for FIXED, within 1..N_g-1 (1 when N_g = 1); ignored by the other policies. */
  readonly fixedSamplers: number;
  readonly timings: Timings;
}

export interface Allocation {
  /** N_s. */
  readonly samplers: number;
  /** N_t; 0 means that one device alternates between its Sampler and its standby Trainer. */
  readonly trainers: number;
  /** The policy whose choice this is; never AUTO. */
  readonly policy: PolicyChoice['policy'];
  /** What each policy would have chosen, PAPER and MINMAX first; FIXED only when asked for. */
  readonly choices: readonly PolicyChoice[];
  /** K = T_t / T_s for display; Infinity when T_s = 0 < T_t, 1 when both are 0. */
  readonly k: number;
  /** Predicted time per batch of the chosen split, rounded up to whole ns. */
  readonly batchNs: number;
  /** Predicted time per batch if every device did both: (T_s + T_t') / N_g, rounded up. */
  readonly timeSharingBatchNs: number;
  /** True when time sharing is predicted to be strictly faster than the chosen split. */
  readonly timeSharingFaster: boolean;
}

/** A non-negative fraction of nanoseconds. */
interface Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

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
  let best = 1;
  for (let samplers = 2; samplers < deviceCount; samplers += 1) {
    const candidate = splitTime({ deviceCount, samplers, timings });
    if (isLess(candidate, splitTime({ deviceCount, samplers: best, timings }))) best = samplers;
  }
  return best;
}

/**
 * Predicted time per batch of a split, in ns rounded up: max(T_s / N_s, T_t / N_t), or
 * T_s + T_t' where one device alternates. It knows nothing of standby Trainers' help.
 */
export function predictBatchNs(split: Split): number {
  checkInputs(split.deviceCount, split.timings);
  return roundUp(splitTime(split));
}

/**
 * Splits the devices by the policy asked for. AUTO takes the better predicted of PAPER and
 * MINMAX; MINMAX is never worse by definition, so AUTO means "MINMAX unless they tie", and a tie
 * goes to PAPER, whose extra Sampler can help training at once while the reverse cannot.
 *
 * Throws RangeError when `fixedSamplers` or a timing is out of range: callers check user input.
 */
export function allocate(request: AllocationRequest): Allocation {
  const { deviceCount, timings } = request;
  checkInputs(deviceCount, timings);
  const choice = (policy: PolicyChoice['policy'], samplers: number): PolicyChoice => ({
    policy,
    samplers,
    trainers: deviceCount - samplers,
    batchNs: predictBatchNs({ deviceCount, samplers, timings }),
  });
  const paper = choice('PAPER', paperSamplers(deviceCount, timings));
  const minmax = choice('MINMAX', minmaxSamplers(deviceCount, timings));
  const choices = [paper, minmax];
  let chosen = paper;
  if (request.policy === 'FIXED') {
    checkFixed(deviceCount, request.fixedSamplers);
    chosen = choice('FIXED', request.fixedSamplers);
    choices.push(chosen);
  } else if (request.policy === 'MINMAX' || (request.policy === 'AUTO' && beats(minmax, paper))) {
    chosen = minmax;
  }
  const sharing = timeSharing(deviceCount, timings);
  const split = splitTime({ deviceCount, samplers: chosen.samplers, timings });
  return {
    samplers: chosen.samplers,
    trainers: chosen.trainers,
    policy: chosen.policy,
    choices,
    k: ratio(timings),
    batchNs: chosen.batchNs,
    timeSharingBatchNs: roundUp(sharing),
    timeSharingFaster: isLess(sharing, split),
  };

  function beats(left: PolicyChoice, right: PolicyChoice): boolean {
    return isLess(
      splitTime({ deviceCount, samplers: left.samplers, timings }),
      splitTime({ deviceCount, samplers: right.samplers, timings }),
    );
  }
}

/** A way to split `deviceCount` devices: `samplers` of them sample, the others train. */
export interface Split {
  readonly deviceCount: number;
  readonly samplers: number;
  readonly timings: Timings;
}

function splitTime({ deviceCount, samplers, timings }: Split): Fraction {
  const trainers = deviceCount - samplers;
  if (trainers === 0) {
    const nanoseconds = BigInt(timings.samplerBatchNs) + BigInt(timings.standbyBatchNs);
    return { numerator: nanoseconds, denominator: BigInt(samplers) };
  }
  const sample = {
    numerator: BigInt(timings.samplerBatchNs),
    denominator: BigInt(samplers),
  };
  const train = { numerator: BigInt(timings.trainerBatchNs), denominator: BigInt(trainers) };
  return isLess(sample, train) ? train : sample;
}

/**
 * A device that does both holds the topology too, so it trains at the standby's pace, T_t'.
 * (With T_t in its place time sharing could never lose: (a+b)/(n+m) <= max(a/n, b/m).)
 */
function timeSharing(deviceCount: number, timings: Timings): Fraction {
  return {
    numerator: BigInt(timings.samplerBatchNs) + BigInt(timings.standbyBatchNs),
    denominator: BigInt(deviceCount),
  };
}

function ratio(timings: Timings): number {
  if (timings.samplerBatchNs === 0) return timings.trainerBatchNs === 0 ? 1 : Infinity;
  return timings.trainerBatchNs / timings.samplerBatchNs;
}

function isLess(left: Fraction, right: Fraction): boolean {
  return left.numerator * right.denominator < right.numerator * left.denominator;
}

function roundUp({ numerator, denominator }: Fraction): number {
  return Number((numerator + denominator - 1n) / denominator);
}

function checkInputs(deviceCount: number, timings: Timings): void {
  if (!Number.isSafeInteger(deviceCount) || deviceCount < 1) {
    throw new RangeError(`allocate: the device count is ${deviceCount}, expected at least 1`);
  }
  if (!areTimings(timings)) {
    throw new RangeError(
      `allocate: timings are ${JSON.stringify(timings)}, expected whole non-negative ns`,
    );
  }
}

function checkFixed(deviceCount: number, samplers: number): void {
  if (!isFixedSplit(deviceCount, samplers)) {
    throw new RangeError(
      `allocate: ${samplers} Samplers on ${deviceCount} devices leave no Trainer or no Sampler`,
    );
  }
}

/** Whether every timing is a whole, non-negative number of ns below 2^53. */
export function areTimings(timings: Timings): boolean {
  return [timings.samplerBatchNs, timings.trainerBatchNs, timings.standbyBatchNs].every(
    (valueNs) => Number.isSafeInteger(valueNs) && valueNs >= 0,
  );
}

/** Whether FIXED may put `samplers` Samplers on `deviceCount` devices. */
export function isFixedSplit(deviceCount: number, samplers: number): boolean {
  if (!Number.isSafeInteger(samplers)) return false;
  return samplers >= 1 && samplers <= Math.max(deviceCount - 1, 1);
}
