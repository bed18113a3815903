import type { PlannedExecutor, PolicyChoice } from '../records/job-record.ts';
import type { PlacementPolicy, StandbyPolicy } from '../spec/job-spec.ts';
import { type Allocation, allocate, type Timings } from './allocate.ts';
import { armStandby, type StandbyArming, type StandbyRoom } from './switching.ts';

/**
 * Who does what on a job's devices, and why, as users see it. The fields shared with `JobPlan`
 * mean the same. A plan never decides bits of the model.
 */
export interface DevicePlan {
  /** True before calibration. */
  readonly estimated: boolean;
  /** Samplers first, then Trainers, then standby Trainers, each in device order. */
  readonly executors: readonly PlannedExecutor[];
  /** T_s, T_t, T_t'; 0 when not measured. */
  readonly samplerBatchNs: number;
  readonly trainerBatchNs: number;
  readonly standbyBatchNs: number;
  /** T_t / T_s; 0 when not measured or unbounded. */
  readonly k: number;
  /** What each policy would have chosen; its `batchNs` is 0 when nothing was measured. */
  readonly choices: readonly PolicyChoice[];
  readonly policy: PolicyChoice['policy'];
  /** N_s and N_t. */
  readonly samplers: number;
  readonly trainers: number;
  /** Predicted time per batch of the chosen split, without the standby Trainers' help. */
  readonly batchNs: number;
  readonly standby: StandbyPolicy;
  /** Predicted time per batch if every device did both. */
  readonly timeSharingBatchNs: number;
  readonly timeSharingFaster: boolean;
  /** One sentence: why this split and these standby Trainers. */
  readonly explanation: string;
  /** A split that would now be better; running executors keep their roles. Null if none. */
  readonly recommendation: Recommendation | null;
}

/** A split that the running estimates favour over the one in use. */
export interface Recommendation {
  readonly samplers: number;
  readonly trainers: number;
  readonly batchNs: number;
  /** The present split's prediction by the same estimates. */
  readonly presentBatchNs: number;
  readonly sinceEpoch: number;
}

export interface PlanRequest {
  /** Not empty; the first N_s become sampler devices. */
  readonly devices: readonly string[];
  readonly policy: PlacementPolicy;
  /** N_s for FIXED; ignored otherwise. */
  readonly fixedSamplers: number;
  readonly standby: StandbyPolicy;
  /** Null: not measured; the split then assumes that all kinds of executor are equally fast. */
  readonly timings: Timings | null;
  readonly standbyRoom: readonly StandbyRoom[];
  readonly estimated: boolean;
}

const equallyFast: Timings = { samplerBatchNs: 1, trainerBatchNs: 1, standbyBatchNs: 1 };

/**
 * Makes the plan of a job on given devices. Null when it is infeasible: standby Trainers are the
 * only ones that can train and do not fit. Throws RangeError as `allocate` does.
 */
export function makePlan(request: PlanRequest): DevicePlan | null {
  const { devices, timings } = request;
  const allocation = allocate({
    deviceCount: devices.length,
    policy: request.policy,
    fixedSamplers: request.fixedSamplers,
    timings: timings ?? equallyFast,
  });
  const samplerDevices = devices.slice(0, allocation.samplers);
  const arming = armStandby({
    policy: request.standby,
    samplerDevices,
    trainers: allocation.trainers,
    room: request.standbyRoom,
  });
  if (arming === null) return null;
  const measured = timings !== null;
  const { choices, batchNs, timeSharingBatchNs } = allocation;
  return {
    estimated: request.estimated,
    executors: [
      ...samplerDevices.map((device) => ({ role: 'SAMPLER', device }) as const),
      ...devices.slice(allocation.samplers).map((device) => ({ role: 'TRAINER', device }) as const),
      ...(arming.mode === 'OFF' ? [] : samplerDevices).map(
        (device) => ({ role: 'STANDBY', device }) as const,
      ),
    ],
    samplerBatchNs: timings?.samplerBatchNs ?? 0,
    trainerBatchNs: timings?.trainerBatchNs ?? 0,
    standbyBatchNs: timings?.standbyBatchNs ?? 0,
    k: measured && Number.isFinite(allocation.k) ? allocation.k : 0,
    choices: measured ? choices : choices.map((choice) => ({ ...choice, batchNs: 0 })),
    policy: allocation.policy,
    samplers: allocation.samplers,
    trainers: allocation.trainers,
    batchNs: measured ? batchNs : 0,
    standby: arming.mode,
    timeSharingBatchNs: measured ? timeSharingBatchNs : 0,
    timeSharingFaster: measured && allocation.timeSharingFaster,
    explanation: [
      explainSplit(request, allocation),
      explainStandby(arming),
      ...(measured ? explainSharing(allocation, arming.mode) : []),
    ].join('; '),
    recommendation: null,
  };
}

function explainSplit(request: PlanRequest, allocation: Allocation): string {
  const { samplers, trainers } = allocation;
  if (trainers === 0) {
    const alone = 'one device alternates between sampling and training';
    if (request.timings === null) return alone;
    return `${alone}, predicted ${milliseconds(allocation.batchNs)} per batch`;
  }
  const split = `${count(samplers, 'Sampler')} and ${count(trainers, 'Trainer')}`;
  if (request.policy === 'FIXED') return `${split}, as the job asks`;
  if (request.timings === null) {
    return `${split} if both are equally fast, which calibration has yet to measure`;
  }
  const predicted = `${split}, predicted ${milliseconds(allocation.batchNs)} per batch`;
  if (request.policy !== 'AUTO') return `${predicted}, by policy ${request.policy} as the job asks`;
  const other = allocation.choices.find(
    (choice) => choice.policy !== allocation.policy && choice.samplers !== samplers,
  );
  if (other === undefined) return `${predicted}, as PAPER and MINMAX agree`;
  const than =
    `${other.policy}'s ${count(other.samplers, 'Sampler')} and ` +
    `${count(other.trainers, 'Trainer')} with ${milliseconds(other.batchNs)}`;
  const verdict = other.batchNs === allocation.batchNs ? 'no slower than' : 'faster than';
  return `${predicted} by ${allocation.policy}, ${verdict} ${than}`;
}

function explainStandby({ mode, explanation }: StandbyArming): string {
  const names = {
    OFF: 'no standby Trainers',
    AUTO: 'standby Trainers armed',
    ALWAYS: 'standby Trainers always on',
  } as const;
  return `${names[mode]}: ${explanation}`;
}

/** The paper's Table 4: where all fits one device, splitting roles need not pay. */
function explainSharing(
  { timeSharingFaster, ...allocation }: Allocation,
  standby: StandbyPolicy,
): readonly string[] {
  const predicted = milliseconds(allocation.timeSharingBatchNs);
  if (!timeSharingFaster || predicted === milliseconds(allocation.batchNs)) return [];
  const turns =
    standby === 'OFF'
      ? 'standby Trainers, which take turns with Samplers, are off'
      : 'only standby Trainers take turns with Samplers, which no time here counts';
  return [
    `time sharing would be faster, predicted ${predicted} per batch; it is not followed, because ` +
      `every device has one role: ${turns}`,
  ];
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

function milliseconds(nanoseconds: number): string {
  return `${Number((nanoseconds / 1e6).toPrecision(3))} ms`;
}
