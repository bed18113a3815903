import type { PlacementPolicy, StandbyPolicy } from '../spec/job-spec.ts';
import { choose } from './choose.ts';
import { type DevicePlan, type Recommendation, wayOf } from './plan.ts';
import { type Pace, predict } from './predict.ts';

/**
 * Reconsiders a job's split at epoch ends. Running executors keep their roles for life, so the
 * outcome is a recommendation; hysteresis keeps noise in the estimates from making it flicker.
 */

/** Evidence for another split, gathered at epoch ends. */
export interface SplitWatch {
  /** N_s that was predicted clearly better at the last epoch end; 0 if none was. */
  readonly samplers: number;
  /** Number of epoch ends in a row at which it was predicted better. */
  readonly epochsInRow: number;
  readonly recommendation: Recommendation | null;
}

export const noEvidence: SplitWatch = { samplers: 0, epochsInRow: 0, recommendation: null };

/** A split must be predicted this much faster to be recommended, and stay so to remain it. */
const recommendAtPercent = 10;
const withdrawBelowPercent = 5;
const epochsNeeded = 2;

export interface EpochEvidence {
  readonly plan: DevicePlan;
  readonly policy: PlacementPolicy;
  readonly standby: StandbyPolicy;
  readonly epoch: number;
  readonly pace: Pace;
}

/** The watch after one more epoch. A FIXED split and a single device are never questioned. */
export function reconsiderSplit(watch: SplitWatch, evidence: EpochEvidence): SplitWatch {
  const { plan, policy, standby, pace } = evidence;
  const { samplers: present, trainers: presentTrainers } = plan;
  const devices = [...new Set(plan.executors.map(({ device }) => device))];
  const isFixed = policy === 'FIXED' || present === 0;
  if (isFixed || devices.length === 1) return noEvidence;
  const { followed } = choose({
    ...pace,
    devices,
    policy,
    standby,
    fixedSamplers: 0,
    standbyRoom: [],
  });
  const { samplers, trainers, batchNs } = followed;
  const split = { way: wayOf(plan), samplers: present, trainers: presentTrainers };
  const presentBatchNs = predict(split, pace).batchNs;
  const standing = watch.recommendation !== null && watch.recommendation.samplers === samplers;
  const neededPercent = standing ? withdrawBelowPercent : recommendAtPercent;
  const gainful = presentBatchNs * 100 >= batchNs * (100 + neededPercent);
  if (samplers === present || !gainful) return noEvidence;
  const epochsInRow = watch.samplers === samplers ? watch.epochsInRow + 1 : 1;
  if (epochsInRow < epochsNeeded) return { samplers, epochsInRow, recommendation: null };
  const sinceEpoch = standing ? (watch.recommendation?.sinceEpoch ?? 0) : evidence.epoch;
  const recommendation = { samplers, trainers, batchNs, presentBatchNs, sinceEpoch };
  return { samplers, epochsInRow, recommendation };
}
