import type { Timings } from '../records/batch-times.ts';
import type { PlannedWay, PlanWay, PolicyChoice } from '../records/job-record.ts';
import type { PlacementPolicy, StandbyPolicy } from '../spec/job-spec.ts';
import { type SamplersChoice, samplersOf } from './allocate.ts';
import { type EpochSize, type Pace, predict, type Split, type Steps } from './predict.ts';
import { type StandbyRoom, shortRoom } from './switching.ts';

/** Which way a job's devices are used: the best predicted of those that the job allows. */

export interface ChooseRequest {
  /** Devices, not empty; the first N_s sample unless `samplerSets` says otherwise. */
  readonly devices: readonly string[];
  readonly policy: PlacementPolicy;
  /** N_s for FIXED; ignored otherwise. */
  readonly fixedSamplers: number;
  readonly standby: StandbyPolicy;
  /** Null: not measured; all kinds of executor then count as equally fast. */
  readonly timings: Timings | null;
  readonly steps: Steps;
  /** A batch is computed on the cores of all devices that have none to compute. */
  readonly teams?: boolean;
  readonly epoch: EpochSize | null;
  readonly standbyRoom: readonly StandbyRoom[];
}

export interface Choice {
  readonly followed: PlannedWay;
  /** Policy that chose the number of Samplers. */
  readonly policy: PolicyChoice['policy'];
  /** The best of each way, the chosen one first; empty when nothing was measured. */
  readonly ways: readonly PlannedWay[];
  /** Choice that each policy would have made. */
  readonly choices: readonly PolicyChoice[];
}

/**
 * A way must be predicted so much faster than one before it in this order to be preferred: times
 * of trial batches are a few percent off, standby Trainers also evaluate and take over from dead
 * ones, and Trainers of their own extract ahead.
 */
const preference: readonly PlanWay[] = ['SWITCHING', 'SPLIT', 'SHARING'];
const preferPercent = 5;

/** Timings so large that no comparison is lost in rounding to whole ns. */
const equallyFast: Timings = {
  samplerBatchNs: 1e9,
  trainerBatchNs: 1e9,
  standbyBatchNs: 1e9,
  parts: null,
};

/** Throws RangeError as `samplersOf` does. */
export function choose(request: ChooseRequest): Choice {
  const timings = request.timings ?? equallyFast;
  const pace = { timings, steps: request.steps, epoch: request.epoch };
  const { length: deviceCount } = request.devices;
  const computing = teamsOf(request);
  const policies = samplersOf({ ...request, deviceCount, timings }).map((choice) =>
    choice.policy === 'FIXED' || computing === null
      ? choice
      : { ...choice, samplers: Math.max(choice.samplers, deviceCount - computing) },
  );
  const allowed = policies.filter(({ policy }) => isAllowed(policy, request.policy));
  const candidates = allowed.flatMap((choice) => waysOf(choice, request, pace));
  const sharing = mayShare(request) ? [planned(sharingOf(deviceCount), pace)] : [];
  const ways = bestOfEach([...candidates, ...sharing]);
  const isMeasured = request.timings !== null;
  const followed = isMeasured ? preferred(ways) : (candidates[0] ?? ways[0]);
  if (followed === undefined) throw new RangeError('choose: nothing is allowed');
  const others = ways.filter((way) => way !== followed);
  return {
    followed: isMeasured ? followed : unmeasured(followed),
    policy:
      allowed.find(({ samplers }) => samplers === followed.samplers)?.policy ?? request.policy,
    ways: isMeasured ? [followed, ...others] : [],
    choices: policies.map((choice) => choiceOf(choice, request, { pace, isMeasured })),
  };
}

/**
 * How many Trainers compute at once, where that is fewer than there are devices and they have the
 * cores of all: others that extracted meanwhile, as standby Trainers do, would take cores away from
 * them (measured: docs/decisions/0039-a-batch-on-all-cores.md). Null elsewhere.
 */
export function teamsOf({
  devices,
  teams = false,
  steps: { staleness, batchesPerStep },
}: Pick<ChooseRequest, 'devices' | 'teams' | 'steps'>): number | null {
  const computing = (staleness + 1) * batchesPerStep;
  return teams && computing < devices.length ? computing : null;
}

function isAllowed(policy: SamplersChoice['policy'], asked: PlacementPolicy): boolean {
  return asked === 'AUTO' ? policy !== 'FIXED' : policy === asked;
}

/** Ways to use the devices with so many Samplers, the preferred way first. */
function waysOf(
  { samplers }: SamplersChoice,
  request: ChooseRequest,
  pace: Pace,
): readonly PlannedWay[] {
  const { devices, standby, standbyRoom } = request;
  const trainers = devices.length - samplers;
  if (trainers === 0) return [planned(sharingOf(devices.length), pace)];
  const isRoomy = shortRoom(standbyRoom, devices.slice(0, samplers)) === undefined;
  const waysByPolicy: Readonly<Record<StandbyPolicy, readonly PlanWay[]>> = {
    ALWAYS: ['SWITCHING'],
    OFF: ['SPLIT'],
    AUTO: isRoomy && teamsOf(request) === null ? ['SWITCHING', 'SPLIT'] : ['SPLIT'],
  };
  const ways = waysByPolicy[standby];
  return ways.map((way) => planned({ way, samplers, trainers }, pace));
}

function sharingOf(deviceCount: number): Split {
  return { way: 'SHARING', samplers: deviceCount, trainers: 0 };
}

/** Whether all devices may do both: no policy chooses that, and it needs standby Trainers. */
function mayShare(request: ChooseRequest): boolean {
  const { devices, policy, standby, standbyRoom } = request;
  if (devices.length === 1 || policy !== 'AUTO' || standby === 'OFF') return false;
  if (teamsOf(request) !== null) return false;
  return shortRoom(standbyRoom, devices) === undefined;
}

function planned(split: Split, pace: Pace): PlannedWay {
  return { ...split, ...predict(split, pace) };
}

/** The first of the fastest, by way. */
function bestOfEach(candidates: readonly PlannedWay[]): readonly PlannedWay[] {
  return preference.flatMap((way) => {
    const [first, ...others] = candidates.filter((candidate) => candidate.way === way);
    if (first === undefined) return [];
    return [others.reduce((best, one) => (one.batchNs < best.batchNs ? one : best), first)];
  });
}

function preferred(ways: readonly PlannedWay[]): PlannedWay | undefined {
  return ways.reduce((best, way) =>
    way.batchNs * (100 + preferPercent) < best.batchNs * 100 ? way : best,
  );
}

function choiceOf(
  choice: SamplersChoice,
  request: ChooseRequest,
  { pace, isMeasured }: { readonly pace: Pace; readonly isMeasured: boolean },
): PolicyChoice {
  const best = preferred(waysOf(choice, request, pace));
  return {
    ...choice,
    trainers: best?.trainers ?? 0,
    batchNs: isMeasured ? (best?.batchNs ?? 0) : 0,
  };
}

function unmeasured(way: PlannedWay): PlannedWay {
  return { ...way, batchNs: 0, epochNs: 0 };
}
