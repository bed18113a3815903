import type { OperationFailure, OperationRecord, Problem } from '../records/dataset-record.ts';
import {
  type EpochReport,
  type ExecutorRole,
  type FollowingScale,
  type JobChoices,
  type JobIntent,
  type JobPhase,
  type JobPlan,
  type JobResult,
  type JobTimeline,
  jobStates,
  type PolicyChoice,
  planLimits,
  planWays,
  type ResumePoint,
  type RowPlacementPlan,
  type RowShares,
  reasons,
} from '../records/job-record.ts';
import type { CachePolicy, StandbyPolicy } from '../spec/job-spec.ts';
import { leafAt } from '../spec/spec-fields.ts';
import {
  bool,
  type Decoder,
  float,
  integer,
  list,
  nullable,
  object,
  oneOf,
  partial,
  text,
} from './codec.ts';

/** How the values of our JSON and enumerated columns look. */

export const jobState = oneOf(jobStates);
export const reason = oneOf(reasons);
export const intent: Decoder<JobIntent> = oneOf(['RUN', 'CANCEL', 'SUSPEND']);
export const phase: Decoder<JobPhase> = oneOf([
  'LOADING_DATASET',
  'CALIBRATING',
  'STARTING',
  'TRAINING',
  'EVALUATING',
  'FINALIZING',
  'PREDICTING',
]);
export const role: Decoder<ExecutorRole> = oneOf(['SAMPLER', 'TRAINER', 'STANDBY']);

const cachePolicy = oneOf(leafAt('cache.policy').choices) as Decoder<CachePolicy>;
const standby = oneOf(leafAt('placement.standby').choices) as Decoder<StandbyPolicy>;

const policy: Decoder<PolicyChoice['policy']> = oneOf(['AUTO', 'PAPER', 'MINMAX', 'FIXED']);

const rowShares: Decoder<RowShares> = object({
  own: float,
  peer: float,
  host: float,
  waitNs: float,
});

export const jobChoices: Decoder<JobChoices> = object({
  standardize: text,
  precision: text,
  schedule: text,
});

const rowPlacementPlan: Decoder<RowPlacementPlan> = object({
  explanation: text,
  devices: list(
    object({
      device: text,
      copiedRows: integer,
      dealtRows: integer,
      expected: rowShares,
      measured: nullable(rowShares),
    }),
  ),
});

export const jobPlan: Decoder<JobPlan> = object({
  estimated: bool,
  executors: list(object({ role, device: text })),
  samplerBatchNs: float,
  trainerBatchNs: float,
  standbyBatchNs: float,
  k: float,
  choices: list(object({ policy, samplers: integer, trainers: integer, batchNs: float })),
  policy,
  standby,
  ways: list(
    object({
      way: oneOf(planWays),
      samplers: integer,
      trainers: integer,
      batchNs: float,
      epochNs: float,
      limit: oneOf(planLimits),
      atOnce: integer,
    }),
  ),
  timeSharingBatchNs: float,
  explanation: text,
  queueCapacity: integer,
  slotBytes: integer,
  parameterCount: integer,
  cache: nullable(
    object({
      policy: cachePolicy,
      trainerRows: integer,
      standbyRows: integer,
      rowBytes: integer,
      reservedBytes: integer,
      rankMs: integer,
      explanation: text,
      prefetch: bool,
      prefetchExplanation: text,
      pinnedRows: integer,
      pinnedExplanation: text,
      placement: nullable(rowPlacementPlan),
      favoured: text,
    }),
  ),
});

/** The first one decides which epoch is the best. */
export const metrics: Decoder<EpochReport['valMetrics']> = list(
  object({ name: text, value: float }),
);

const trainingResult = object({
  parametersSha256: text,
  checkpointDir: text,
  testAccuracyLast: float,
  testAccuracyBest: float,
  bestEpoch: integer,
  bestValAccuracy: float,
  epochs: integer,
  testMetricsLast: metrics,
  testMetricsBest: metrics,
  bestValMetrics: metrics,
});

const predictions = object({
  folder: text,
  nodes: integer,
  bytes: integer,
  sha256: text,
  notice: text,
});
const inferenceResult = partial({ predictions });

/** Only an inference has predictions. */
export const jobResult: Decoder<JobResult> = (value, at) => ({
  ...trainingResult(value, at),
  ...inferenceResult(value, at),
});

export const resumePoint: Decoder<ResumePoint> = object({
  epochs: integer,
  batches: integer,
  image: text,
  otherBuild: bool,
});

export const scale: Decoder<FollowingScale> = object({
  scale: integer,
  before: integer,
  fixed: bool,
});

export const epochWork: Decoder<EpochReport['work']> = object({
  extractNs: integer,
  trainNs: integer,
  scale: float,
  next: nullable(scale),
});

export const executorTimes: Decoder<EpochReport['executorTimes']> = list(
  object({
    role,
    device: text,
    durationNs: integer,
    sampleNs: integer,
    markNs: integer,
    copyNs: integer,
    extractNs: integer,
    trainNs: integer,
    applyNs: integer,
    evaluateNs: integer,
    waitEnqueueNs: integer,
    waitDequeueNs: integer,
    waitDueNs: integer,
    waitTurnNs: integer,
    waitExtractNs: integer,
    pruneNs: integer,
    historyNs: integer,
    cachedRows: integer,
    peerRows: integer,
    readRows: integer,
    prunedRows: integer,
    historyLookups: integer,
    historyHits: integer,
    historyCompared: integer,
    historySimilar: integer,
    historyCosine: float,
    historyLag: integer,
    cacheBorder: integer,
    cacheGivenUpRows: integer,
  }),
);

export const jobTimeline: Decoder<JobTimeline> = object({
  queueCapacity: integer,
  stretches: list(
    object({
      startAtMs: float,
      durationNs: integer,
      queueDepth: float,
      executors: executorTimes,
    }),
  ),
});

const problem: Decoder<Problem> = object({ path: text, description: text });

export const operationFailure: Decoder<OperationFailure> = object({
  reason: text,
  message: text,
  problems: list(problem),
});

export const operationValidation: Decoder<OperationRecord['validation']> = nullable(
  object({ problems: list(problem), problemCount: integer }),
);
