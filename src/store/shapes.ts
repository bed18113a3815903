import type { OperationFailure, OperationRecord, Problem } from '../records/dataset-record.ts';
import {
  type EpochReport,
  type ExecutorRole,
  type JobIntent,
  type JobPhase,
  type JobPlan,
  type JobResult,
  jobStates,
  type PolicyChoice,
  reasons,
} from '../records/job-record.ts';
import {
  cachePolicies,
  evaluationMethods,
  type JobSpec,
  type JobSpecInput,
  prefetchModes,
} from '../spec/job-spec.ts';
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
export const intent: Decoder<JobIntent> = oneOf(['RUN', 'CANCEL']);
export const phase: Decoder<JobPhase> = oneOf([
  'LOADING_DATASET',
  'CALIBRATING',
  'STARTING',
  'TRAINING',
  'EVALUATING',
  'FINALIZING',
]);
export const role: Decoder<ExecutorRole> = oneOf(['SAMPLER', 'TRAINER', 'STANDBY']);

const model = {
  type: oneOf(['GRAPHSAGE', 'GCN', 'GAT', 'GATV2', 'PINSAGE', 'TORCHSCRIPT']),
  layers: integer,
  hiddenDim: integer,
  dropout: float,
  inputDropout: float,
  heads: integer,
  activation: oneOf(['RELU', 'ELU', 'LEAKY_RELU']),
  normalization: oneOf(['NONE', 'L2', 'LAYER']),
  residual: bool,
  attentionDropout: float,
};
const script = { path: text, sha256: text };
const sampling = {
  fanouts: list(integer),
  algorithm: oneOf(['KHOP_UNIFORM', 'KHOP_WEIGHTED', 'RANDOM_WALK', 'LABOR', 'KHOP_PLUGIN']),
  replace: bool,
  expansion: oneOf(['ALL', 'NEW']),
};
const walk = { walks: integer, length: integer, restartProb: float, neighbors: integer };
const labor = { dependencyWindow: integer };
const plugin = { ...script, options: text, weights: bool };
const features = { standardize: bool };
const optimizer = {
  type: oneOf(['ADAM', 'ADAMW', 'SGD']),
  learningRate: float,
  beta1: float,
  beta2: float,
  epsilon: float,
  weightDecay: float,
  weightDecayScope: oneOf(['ALL', 'FIRST_LAYER']),
  momentum: float,
  clipNorm: float,
};
const lrSchedule = {
  type: oneOf(['CONSTANT', 'STEP', 'COSINE']),
  stepEpochs: integer,
  gamma: float,
  warmupEpochs: integer,
};
const training = {
  epochs: integer,
  batchSize: integer,
  batchesPerStep: integer,
  staleness: integer,
  stalenessCompensation: oneOf(['PREDICT', 'NONE']),
  randomSeed: text,
  threadsPerTrainer: integer,
  determinism: oneOf(['STRICT', 'RELAXED']),
};
const earlyStop = { patienceEpochs: integer, minDelta: float };
const evaluation = { everyEpochs: integer, fanouts: list(integer), maxBytes: integer };
const cachePolicy = oneOf(cachePolicies);
const cache = {
  policy: cachePolicy,
  presampleEpochs: integer,
  ratio: float,
  standbyRatio: float,
  prefetch: oneOf(prefetchModes),
};
const resources = {
  devices: integer,
  deviceNames: list(text),
  deviceMemoryBytes: integer,
  hostMemoryBytes: integer,
};
const placement = {
  policy: oneOf(['AUTO', 'PAPER', 'MINMAX', 'FIXED']),
  samplers: integer,
  standby: oneOf(['AUTO', 'OFF', 'ALWAYS']),
};
const queue = { capacity: integer, maxBytes: integer };
const restart = { maxAttempts: integer, executorRestarts: integer };
const timeouts = {
  pendingMs: integer,
  startupMs: integer,
  stallMs: integer,
  cancelGraceMs: integer,
  runMs: integer,
};

export const jobSpec: Decoder<JobSpec> = object({
  dataset: text,
  model: object({ ...model, script: object(script) }),
  sampling: object({
    ...sampling,
    walk: object(walk),
    labor: object(labor),
    plugin: object(plugin),
  }),
  features: object(features),
  cache: object(cache),
  training: object({
    ...training,
    optimizer: object(optimizer),
    lrSchedule: object(lrSchedule),
    earlyStop: object(earlyStop),
  }),
  evaluation: object({ ...evaluation, method: oneOf(evaluationMethods) }),
  resources: object(resources),
  placement: object(placement),
  queue: object(queue),
  restart: object(restart),
  timeouts: object(timeouts),
  priority: integer,
});

export const jobSpecInput: Decoder<JobSpecInput> = partial({
  dataset: text,
  model: partial({ ...model, script: partial(script) }),
  sampling: partial({
    ...sampling,
    walk: partial(walk),
    labor: partial(labor),
    plugin: partial(plugin),
  }),
  features: partial(features),
  cache: partial(cache),
  training: partial({
    ...training,
    optimizer: partial(optimizer),
    lrSchedule: partial(lrSchedule),
    earlyStop: partial(earlyStop),
  }),
  evaluation: partial({ ...evaluation, method: oneOf(['AUTO', ...evaluationMethods]) }),
  resources: partial(resources),
  placement: partial(placement),
  queue: partial(queue),
  restart: partial(restart),
  timeouts: partial(timeouts),
  priority: integer,
});

const policy: Decoder<PolicyChoice['policy']> = oneOf(['PAPER', 'MINMAX', 'FIXED']);

export const jobPlan: Decoder<JobPlan> = object({
  estimated: bool,
  executors: list(object({ role, device: text })),
  samplerBatchNs: float,
  trainerBatchNs: float,
  standbyBatchNs: float,
  k: float,
  choices: list(object({ policy, samplers: integer, trainers: integer, batchNs: float })),
  policy,
  standby: oneOf(['AUTO', 'OFF', 'ALWAYS']),
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
      rankMs: integer,
      explanation: text,
      prefetch: bool,
      prefetchExplanation: text,
    }),
  ),
});

export const jobResult: Decoder<JobResult> = object({
  parametersSha256: text,
  checkpointDir: text,
  testAccuracyLast: float,
  testAccuracyBest: float,
  bestEpoch: integer,
  bestValAccuracy: float,
  epochs: integer,
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
  }),
);

const problem: Decoder<Problem> = object({ path: text, description: text });

export const operationFailure: Decoder<OperationFailure> = object({
  reason: text,
  message: text,
  problems: list(problem),
});

export const operationValidation: Decoder<OperationRecord['validation']> = nullable(
  object({ problems: list(problem), problemCount: integer }),
);
