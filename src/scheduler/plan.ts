import type { BatchTimes } from '../records/batch-times.ts';
import type { PlannedExecutor, PlannedWay, PlanWay, PolicyChoice } from '../records/job-record.ts';
import type { StandbyPolicy } from '../spec/job-spec.ts';
import { trainerRatio } from './allocate.ts';
import { type Choice, type ChooseRequest, choose, teamsOf } from './choose.ts';
import type { Steps } from './predict.ts';
import { armStandby, type StandbyArming } from './switching.ts';

/**
 * Who does what on a job's devices, and why, as users see it. The fields shared with `JobPlan`
 * mean the same. A plan never decides bits of the model.
 */
export interface DevicePlan extends BatchTimes {
  /** True before calibration. */
  readonly estimated: boolean;
  /** Samplers first, then Trainers, then standby Trainers, each in device order. */
  readonly executors: readonly PlannedExecutor[];
  /** T_t / T_s; 0 when not measured or unbounded. */
  readonly k: number;
  /** What each policy would have chosen; its `batchNs` is 0 when nothing was measured. */
  readonly choices: readonly PolicyChoice[];
  readonly policy: PolicyChoice['policy'];
  /** N_s and N_t; no Trainer where all devices do both. */
  readonly samplers: number;
  readonly trainers: number;
  /** Predicted time per batch of what runs; 0 when nothing was measured. */
  readonly batchNs: number;
  readonly standby: StandbyPolicy;
  /** The ways that were compared, the chosen one first; empty when nothing was measured. */
  readonly ways: readonly PlannedWay[];
  /** Predicted time per batch if every device did both. */
  readonly timeSharingBatchNs: number;
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

/** How a plan uses its devices. */
export function wayOf({ executors }: Pick<DevicePlan, 'executors'>): PlanWay {
  const has = (role: PlannedExecutor['role']) => executors.some((each) => each.role === role);
  if (!has('TRAINER')) return 'SHARING';
  return has('STANDBY') ? 'SWITCHING' : 'SPLIT';
}

export interface PlanRequest extends ChooseRequest {
  readonly estimated: boolean;
  /** For each number of Samplers the devices to sample, where links differ. Not under FIXED. */
  readonly samplerSets?: readonly (readonly string[])[];
  /** Why nobody samples and all devices train, for people; unset: Samplers are chosen. */
  readonly withoutSamplers?: string;
}

/**
 * Makes the plan of a job on given devices. Null when it is infeasible: standby Trainers are the
 * only ones that can train and do not fit. Throws RangeError as `choose` does.
 */
export function makePlan(request: PlanRequest): DevicePlan | null {
  const { withoutSamplers } = request;
  if (withoutSamplers !== undefined) return trainersPlan(request, withoutSamplers);
  const { timings } = request;
  const choice = choose(request);
  const { followed, policy } = choice;
  const [samplerDevices, trainerDevices] = splitDevices(request, choice);
  const arming = armingOf(request, choice);
  if (arming === null) return null;
  const isMeasured = timings !== null;
  const k = isMeasured ? trainerRatio(timings) : 0;
  const sharing = choice.ways.find(({ way }) => way === 'SHARING');
  return {
    estimated: request.estimated,
    executors: [
      ...samplerDevices.map((device) => ({ role: 'SAMPLER', device }) as const),
      ...trainerDevices.map((device) => ({ role: 'TRAINER', device }) as const),
      ...(arming.mode === 'OFF' ? [] : samplerDevices).map(
        (device) => ({ role: 'STANDBY', device }) as const,
      ),
    ],
    samplerBatchNs: timings?.samplerBatchNs ?? 0,
    trainerBatchNs: timings?.trainerBatchNs ?? 0,
    standbyBatchNs: timings?.standbyBatchNs ?? 0,
    k: Number.isFinite(k) ? k : 0,
    choices: choice.choices,
    policy,
    samplers: followed.samplers,
    trainers: followed.trainers,
    batchNs: followed.batchNs,
    standby: arming.mode,
    ways: choice.ways,
    timeSharingBatchNs: sharing?.batchNs ?? 0,
    explanation: [
      explainSplit(request, choice),
      explainStandby(arming),
      ...explainOthers(choice),
    ].join('; '),
    recommendation: null,
  };
}

/** Who samples and who trains, in device order; devices that are not known yet have one name. */
function splitDevices(
  { devices, samplerSets = [] }: PlanRequest,
  { followed: { samplers }, policy }: Choice,
): readonly [readonly string[], readonly string[]] {
  const chosen = policy === 'FIXED' ? [] : (samplerSets[samplers] ?? []);
  const isSet = chosen.length === samplers && chosen.every((device) => devices.includes(device));
  if (!isSet) return [devices.slice(0, samplers), devices.slice(samplers)];
  const samples = (device: string) => chosen.includes(device);
  return [devices.filter(samples), devices.filter((device) => !samples(device))];
}

/** A plan of Trainers alone: without Samplers and standby Trainers nothing is predicted. */
function trainersPlan({ devices, estimated }: PlanRequest, withoutSamplers: string): DevicePlan {
  const trainers = count(devices.length, 'Trainer');
  return {
    ...{ estimated, samplerBatchNs: 0, trainerBatchNs: 0, standbyBatchNs: 0, k: 0 },
    executors: devices.map((device) => ({ role: 'TRAINER', device })),
    ...{ choices: [], policy: 'FIXED', samplers: 0, trainers: devices.length, batchNs: 0 },
    ...{ standby: 'OFF', ways: [], timeSharingBatchNs: 0, recommendation: null },
    explanation: `${trainers}: ${withoutSamplers}`,
  };
}

function explainSplit(request: PlanRequest, { followed, policy, choices }: Choice): string {
  const crew = crewText(followed, request.devices.length);
  if (request.policy === 'FIXED') return `${crew}, as the job asks`;
  if (request.timings === null) {
    if (followed.trainers === 0) return crew;
    return `${crew} if both are equally fast, which calibration has yet to measure`;
  }
  const predicted = `${crew}, predicted ${milliseconds(followed.batchNs)} per batch`;
  const limited = `${predicted}, ${limitText(followed, request.steps)}`;
  if (followed.trainers === 0) return limited;
  if (request.policy !== 'AUTO') return `${limited}, by policy ${request.policy} as the job asks`;
  const other = choices.find((choice) => choice.samplers !== followed.samplers);
  if (other === undefined) return `${limited}, as PAPER and MINMAX agree`;
  const than =
    `${other.policy}'s ${count(other.samplers, 'Sampler')} and ` +
    `${count(other.trainers, 'Trainer')} with ${milliseconds(other.batchNs)}`;
  const verdict = other.batchNs === followed.batchNs ? 'no slower than' : 'faster than';
  return `${limited}, by ${policy}, ${verdict} ${than}`;
}

function crewText({ samplers, trainers }: PlannedWay, devices: number): string {
  if (trainers > 0) return `${count(samplers, 'Sampler')} and ${count(trainers, 'Trainer')}`;
  if (devices === 1) return 'one device alternates between sampling and training';
  return `each of ${devices} devices alternates between sampling and training`;
}

function limitText({ limit, atOnce }: PlannedWay, steps: Steps): string {
  switch (limit) {
    case 'SAMPLING':
      return 'as fast as they sample';
    case 'TRAINING':
      return 'as fast as they train';
    case 'STEPS': {
      const { batchesPerStep, staleness } = steps;
      const batches = atOnce === 1 ? '1 batch is' : `${atOnce} batches are`;
      const because = `(S = ${staleness}, G = ${batchesPerStep})`;
      return `as fast as steps follow: ${batches} computed at once ${because}`;
    }
  }
}

function armingOf(request: PlanRequest, { followed, ways }: Choice): StandbyArming | null {
  const arming = armStandby({
    policy: request.standby,
    samplerDevices: request.devices.slice(0, followed.samplers),
    trainers: followed.trainers,
    room: request.standbyRoom,
  });
  if (arming?.mode === 'AUTO' && followed.trainers > 0 && teamsOf(request) !== null) {
    return { mode: 'OFF', explanation: 'a batch is computed on the cores of all devices' };
  }
  const switching = ways.find(({ way }) => way === 'SWITCHING');
  if (arming?.mode !== 'AUTO' || followed.way !== 'SPLIT' || switching === undefined) return arming;
  const times = [switching, followed].map(({ batchNs }) => milliseconds(batchNs));
  return { mode: 'OFF', explanation: `a batch takes ${times.join(' with them, not ')}` };
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
function explainOthers({ ways: [followed, ...others] }: Choice): readonly string[] {
  if (followed === undefined || others.length === 0) return [];
  const names = {
    SPLIT: 'the split without switching',
    SWITCHING: 'the split with switching',
    SHARING: 'time sharing',
  } as const;
  const shown = others.map(({ way, batchNs }) => `${names[way]} ${milliseconds(batchNs)}`);
  return [`predicted of others: ${shown.join(', ')}`];
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

function milliseconds(nanoseconds: number): string {
  return `${Number((nanoseconds / 1e6).toPrecision(3))} ms`;
}
