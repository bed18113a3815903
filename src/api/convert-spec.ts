import { create, type MessageInitShape } from '@bufbuild/protobuf';
import type { JobSpec, JobSpecInput } from '../spec/job-spec.ts';
import { enumName, int64 } from './convert.ts';
import * as pb from './gen/gnnd/v1/job_pb.ts';

/** Job specs, both ways. What was absent stays absent: unset differs from 0. */

type Training = NonNullable<JobSpecInput['training']>;

/** A spec as the user sent it, unchecked. */
export function specFromProto(spec: pb.JobSpec): JobSpecInput {
  return {
    dataset: spec.dataset,
    model: spec.model && modelFromProto(spec.model),
    sampling: spec.sampling && samplingFromProto(spec.sampling),
    features: spec.features && { standardize: spec.features.standardize },
    cache: spec.cache && {
      policy: enumName(pb.CachePolicy, spec.cache.policy),
      presampleEpochs: spec.cache.presampleEpochs,
      ratio: spec.cache.ratio,
      standbyRatio: spec.cache.standbyRatio,
      prefetch: enumName(pb.Prefetch, spec.cache.prefetch),
    },
    training: spec.training && trainingFromProto(spec.training),
    evaluation: spec.evaluation && {
      everyEpochs: spec.evaluation.everyEpochs,
      method: enumName(pb.EvaluationMethod, spec.evaluation.method),
      fanouts: spec.evaluation.fanouts,
      maxBytes: optionalNumber(spec.evaluation.maxBytes),
    },
    resources: spec.resources && {
      devices: spec.resources.devices,
      deviceNames: spec.resources.deviceNames,
      deviceMemoryBytes: optionalNumber(spec.resources.deviceMemoryBytes),
      hostMemoryBytes: optionalNumber(spec.resources.hostMemoryBytes),
    },
    placement: spec.placement && {
      policy: enumName(pb.PlacementPolicy, spec.placement.policy),
      samplers: spec.placement.samplers,
      standby: enumName(pb.StandbyPolicy, spec.placement.standby),
    },
    queue: spec.queue && {
      capacity: spec.queue.capacity,
      maxBytes: optionalNumber(spec.queue.maxBytes),
    },
    restart: spec.restart && {
      maxAttempts: spec.restart.maxAttempts,
      executorRestarts: spec.restart.executorRestarts,
    },
    timeouts: spec.timeouts && timeoutsFromProto(spec.timeouts),
    priority: spec.priority,
  };
}

function modelFromProto(model: pb.ModelSpec): NonNullable<JobSpecInput['model']> {
  return {
    type: enumName(pb.ModelType, model.type),
    layers: model.layers,
    hiddenDim: model.hiddenDim,
    dropout: model.dropout,
    inputDropout: model.inputDropout,
    heads: model.heads,
    activation: enumName(pb.Activation, model.activation),
    normalization: enumName(pb.Normalization, model.normalization),
    residual: model.residual,
    attentionDropout: model.attentionDropout,
    script: model.script && { path: model.script.path, sha256: model.script.sha256 },
  };
}

function trainingFromProto(training: pb.TrainingSpec): Training {
  const { lrSchedule } = training;
  return {
    epochs: training.epochs,
    batchSize: training.batchSize,
    batchesPerStep: training.batchesPerStep,
    staleness: training.staleness,
    stalenessCompensation: enumName(pb.StalenessCompensation, training.stalenessCompensation),
    randomSeed: training.randomSeed?.toString(),
    optimizer: training.optimizer && optimizerFromProto(training.optimizer),
    lrSchedule: lrSchedule && {
      type: enumName(pb.LrScheduleType, lrSchedule.type),
      stepEpochs: lrSchedule.stepEpochs,
      gamma: lrSchedule.gamma,
      warmupEpochs: lrSchedule.warmupEpochs,
    },
    threadsPerTrainer: training.threadsPerTrainer,
    earlyStop: training.earlyStop && {
      patienceEpochs: training.earlyStop.patienceEpochs,
      minDelta: training.earlyStop.minDelta,
    },
    determinism: enumName(pb.Determinism, training.determinism),
  };
}

export function samplingFromProto(
  sampling: pb.SamplingSpec,
): NonNullable<JobSpecInput['sampling']> {
  const { walk, labor, plugin } = sampling;
  return {
    fanouts: sampling.fanouts,
    algorithm: enumName(pb.SamplingAlgorithm, sampling.algorithm),
    replace: sampling.replace,
    expansion: enumName(pb.Expansion, sampling.expansion),
    walk: walk && {
      walks: walk.walks,
      length: walk.length,
      restartProb: walk.restartProb,
      neighbors: walk.neighbors,
    },
    labor: labor && { dependencyWindow: labor.dependencyWindow },
    plugin: plugin && {
      path: plugin.path,
      options: plugin.options,
      weights: plugin.weights,
      sha256: plugin.sha256,
    },
  };
}

function optimizerFromProto(optimizer: pb.OptimizerSpec): NonNullable<Training['optimizer']> {
  return {
    type: enumName(pb.OptimizerType, optimizer.type),
    learningRate: optimizer.learningRate,
    beta1: optimizer.beta1,
    beta2: optimizer.beta2,
    epsilon: optimizer.epsilon,
    weightDecay: optimizer.weightDecay,
    weightDecayScope: enumName(pb.WeightDecayScope, optimizer.weightDecayScope),
    momentum: optimizer.momentum,
    clipNorm: optimizer.clipNorm,
  };
}

function timeoutsFromProto(timeouts: pb.TimeoutsSpec): NonNullable<JobSpecInput['timeouts']> {
  return {
    pendingMs: optionalNumber(timeouts.pendingMs),
    startupMs: optionalNumber(timeouts.startupMs),
    stallMs: optionalNumber(timeouts.stallMs),
    cancelGraceMs: optionalNumber(timeouts.cancelGraceMs),
    runMs: optionalNumber(timeouts.runMs),
  };
}

/** A spec as a message; a resolved spec is one in which nothing is absent. */
export function specToProto(spec: JobSpecInput | JobSpec): pb.JobSpec {
  const input: JobSpecInput = spec;
  const { model, cache, training, evaluation, resources, placement, queue, timeouts } = input;
  return create(pb.JobSpecSchema, {
    dataset: input.dataset,
    model: model && {
      ...model,
      type: numberOf(pb.ModelType, model.type),
      activation: numberOf(pb.Activation, model.activation),
      normalization: numberOf(pb.Normalization, model.normalization),
    },
    sampling: input.sampling && samplingToProto(input.sampling),
    features: input.features,
    cache: cache && {
      ...cache,
      policy: numberOf(pb.CachePolicy, cache.policy),
      prefetch: numberOf(pb.Prefetch, cache.prefetch),
    },
    training: training && {
      ...training,
      randomSeed: training.randomSeed === undefined ? undefined : BigInt(training.randomSeed),
      optimizer: training.optimizer && {
        ...training.optimizer,
        type: numberOf(pb.OptimizerType, training.optimizer.type),
        weightDecayScope: numberOf(pb.WeightDecayScope, training.optimizer.weightDecayScope),
      },
      lrSchedule: training.lrSchedule && {
        ...training.lrSchedule,
        type: numberOf(pb.LrScheduleType, training.lrSchedule.type),
      },
      stalenessCompensation: numberOf(pb.StalenessCompensation, training.stalenessCompensation),
      determinism: numberOf(pb.Determinism, training.determinism),
    },
    evaluation: evaluation && {
      everyEpochs: evaluation.everyEpochs,
      method: numberOf(pb.EvaluationMethod, evaluation.method),
      fanouts: [...(evaluation.fanouts ?? [])],
      maxBytes: optionalInt64(evaluation.maxBytes),
    },
    resources: resources && {
      devices: resources.devices,
      deviceNames: [...(resources.deviceNames ?? [])],
      deviceMemoryBytes: optionalInt64(resources.deviceMemoryBytes),
      hostMemoryBytes: optionalInt64(resources.hostMemoryBytes),
    },
    placement: placement && {
      policy: numberOf(pb.PlacementPolicy, placement.policy),
      samplers: placement.samplers,
      standby: numberOf(pb.StandbyPolicy, placement.standby),
    },
    queue: queue && { capacity: queue.capacity, maxBytes: optionalInt64(queue.maxBytes) },
    restart: input.restart,
    timeouts: timeouts && {
      pendingMs: optionalInt64(timeouts.pendingMs),
      startupMs: optionalInt64(timeouts.startupMs),
      stallMs: optionalInt64(timeouts.stallMs),
      cancelGraceMs: optionalInt64(timeouts.cancelGraceMs),
      runMs: optionalInt64(timeouts.runMs),
    },
    priority: input.priority,
  });
}

export function samplingToProto(
  sampling: NonNullable<JobSpecInput['sampling']>,
): MessageInitShape<typeof pb.SamplingSpecSchema> {
  return {
    ...sampling,
    fanouts: [...(sampling.fanouts ?? [])],
    algorithm: numberOf(pb.SamplingAlgorithm, sampling.algorithm),
    expansion: numberOf(pb.Expansion, sampling.expansion),
  };
}

/** An enum's number by name; 0, "not set", where the name is absent. */
function numberOf<N extends string, V extends number>(
  values: Readonly<Record<N, V>>,
  name: N | undefined,
): V | 0 {
  return name === undefined ? 0 : values[name];
}

function optionalNumber(value: bigint | undefined): number | undefined {
  return value === undefined ? undefined : Number(value);
}

function optionalInt64(value: number | undefined): bigint | undefined {
  return value === undefined ? undefined : int64(value);
}
