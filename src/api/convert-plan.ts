import { create, type MessageInitShape } from '@bufbuild/protobuf';
import type {
  CachePlan,
  JobChoices,
  JobPlan,
  PlanMeasurement,
  RowPlacementPlan,
  RowShares,
} from '../records/job-record.ts';
import type { RowPlan } from '../records/memory-plan.ts';
import { surpriseOf } from '../records/plan-surprise.ts';
import { wayOf } from '../scheduler/plan.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { warningsOf } from '../spec/spec-warnings.ts';
import { int64 } from './convert.ts';
import { rowsInit } from './convert-memory.ts';
import { ExecutorRole } from './gen/gnnd/v1/executor_pb.ts';
import { CachePolicy } from './gen/gnnd/v1/features_pb.ts';
import type { JobPaceSchema } from './gen/gnnd/v1/job_pb.ts';
import {
  type CachePlanSchema,
  type JobPlan as JobPlanMessage,
  JobPlanSchema,
  PlanLimit,
  type PlanMeasurementSchema,
  PlanWay,
  type RowPlacementSchema,
  type RowSharesSchema,
} from './gen/gnnd/v1/job_plan_pb.ts';
import { PlacementPolicy, StandbyPolicy } from './gen/gnnd/v1/resources_pb.ts';
import { StalenessCompensation } from './gen/gnnd/v1/training_pb.ts';

/** Plans as messages. */

export interface Planned {
  readonly plan: JobPlan;
  readonly measured: PlanMeasurement | null;
  /** Plan of the rows; null for a job whose batches are not rows. */
  readonly rows: RowPlan | null;
  /** How the kind of its devices came about, for people. */
  readonly deviceKindChoice: string;
  /** How many batches a step averages, and how that came about, likewise. */
  readonly batchesPerStepChoice: string;
  readonly choices: JobChoices;
}

/** Number of Trainers; of standby Trainers where all devices do both. Undefined while unknown. */
export function plannedTrainers(plan: JobPlan | null): number | undefined {
  if (plan === null || plan.estimated) return undefined;
  const has = (wanted: string) => plan.executors.filter(({ role }) => role === wanted).length;
  return has('TRAINER') || has('STANDBY');
}

/** The text as a list, which is empty for null. */
function listOf(text: string | null): readonly string[] {
  return text === null ? [] : [text];
}

/** `job` is the job's name; empty for a plan of a spec that was not created. */
export function planToProto(
  job: string,
  { plan, measured, rows, deviceKindChoice, batchesPerStepChoice, choices }: Planned,
  spec: JobSpec,
): JobPlanMessage {
  return create(JobPlanSchema, {
    job,
    way: PlanWay[wayOf(plan)],
    ways: plan.ways.map((way) => ({
      way: PlanWay[way.way],
      samplers: way.samplers,
      trainers: way.trainers,
      batchNs: int64(way.batchNs),
      epochNs: int64(way.epochNs),
      limit: PlanLimit[way.limit],
      batchesAtOnce: way.atOnce,
    })),
    batchesPerStep: spec.training.batchesPerStep,
    measurement: measured === null ? undefined : measurementInit(measured),
    staleness: spec.training.staleness,
    stalenessCompensation: StalenessCompensation[spec.training.stalenessCompensation],
    warnings: [...warningsOf(spec, plannedTrainers(plan)), ...listOf(surpriseOf(plan, measured))],
    deviceKindChoice,
    batchesPerStepChoice,
    standardizeChoice: choices.standardize,
    precisionChoice: choices.precision,
    scheduleChoice: choices.schedule,
    estimated: plan.estimated,
    executors: plan.executors.map((executor) => ({
      role: ExecutorRole[executor.role],
      device: executor.device,
    })),
    samplerBatchNs: int64(plan.samplerBatchNs),
    trainerBatchNs: int64(plan.trainerBatchNs),
    standbyBatchNs: int64(plan.standbyBatchNs),
    k: plan.k,
    choices: plan.choices.map((choice) => ({
      policy: PlacementPolicy[choice.policy],
      samplers: choice.samplers,
      trainers: choice.trainers,
      batchNs: int64(choice.batchNs),
    })),
    policy: PlacementPolicy[plan.policy],
    standby: StandbyPolicy[plan.standby],
    timeSharingBatchNs: int64(plan.timeSharingBatchNs),
    explanation: plan.explanation,
    queueCapacity: plan.queueCapacity,
    slotBytes: int64(plan.slotBytes),
    parameterCount: int64(plan.parameterCount),
    cache: plan.cache === null ? undefined : cachePlanInit(plan.cache),
    ...(rows === null ? {} : { rows: rowsInit(rows) }),
  });
}

function placementInit({
  explanation,
  devices,
}: RowPlacementPlan): MessageInitShape<typeof RowPlacementSchema> {
  return {
    explanation,
    devices: devices.map(({ device, copiedRows, dealtRows, expected, measured }) => ({
      device,
      copiedRows: int64(copiedRows),
      dealtRows: int64(dealtRows),
      expected: sharesInit(expected),
      ...(measured === null ? {} : { measured: sharesInit(measured) }),
    })),
  };
}

function sharesInit(shares: RowShares): MessageInitShape<typeof RowSharesSchema> {
  return { ...shares, waitNs: int64(shares.waitNs) };
}

function cachePlanInit(cache: CachePlan): MessageInitShape<typeof CachePlanSchema> {
  return {
    policy: CachePolicy[cache.policy],
    trainerRows: int64(cache.trainerRows),
    standbyRows: int64(cache.standbyRows),
    rowBytes: int64(cache.rowBytes),
    reservedBytes: int64(cache.reservedBytes),
    rankMs: int64(cache.rankMs),
    explanation: cache.explanation,
    prefetch: cache.prefetch,
    prefetchExplanation: cache.prefetchExplanation,
    pinnedRows: int64(cache.pinnedRows),
    pinnedExplanation: cache.pinnedExplanation,
    ...(cache.placement === null ? {} : { placement: placementInit(cache.placement) }),
    favoured: cache.favoured,
  };
}

function measurementInit(
  measured: PlanMeasurement,
): MessageInitShape<typeof PlanMeasurementSchema> {
  return {
    epochs: measured.epochs,
    epochNs: int64(measured.epochNs),
    batchNs: int64(measured.batchNs),
    samplerBatchNs: int64(measured.samplerBatchNs),
    trainerBatchNs: int64(measured.trainerBatchNs),
    standbyBatchNs: int64(measured.standbyBatchNs),
  };
}

/** Undefined unless something was predicted and measured. */
export function paceInit(
  plan: JobPlan | null,
  measured: PlanMeasurement | null,
): MessageInitShape<typeof JobPaceSchema> | undefined {
  const followed = plan?.ways[0];
  if (followed === undefined || measured === null) return undefined;
  return {
    way: PlanWay[followed.way],
    predictedBatchNs: int64(followed.batchNs),
    predictedEpochNs: int64(followed.epochNs),
    measured: measurementInit(measured),
  };
}
