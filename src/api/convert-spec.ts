import { create } from '@bufbuild/protobuf';
import type { JobSpec, JobSpecInput } from '../spec/job-spec.ts';
import { enumName, int64 } from './convert.ts';
import * as pb from './gen/gnnd/v1/job_pb.ts';

/** Job specs, both ways. What was absent stays absent: unset differs from 0. */

type Optimizer = NonNullable<NonNullable<JobSpecInput['training']>['optimizer']>;

/** A spec as the user sent it, unchecked. */
export function specFromProto(spec: pb.JobSpec): JobSpecInput {
  return {
    dataset: spec.dataset,
    model: spec.model && {
      type: enumName(pb.ModelType, spec.model.type),
      layers: spec.model.layers,
      hiddenDim: spec.model.hiddenDim,
      dropout: spec.model.dropout,
      inputDropout: spec.model.inputDropout,
    },
    sampling: spec.sampling && samplingFromProto(spec.sampling),
    features: spec.features && { standardize: spec.features.standardize },
    training: spec.training && {
      epochs: spec.training.epochs,
      batchSize: spec.training.batchSize,
      batchesPerStep: spec.training.batchesPerStep,
      staleness: spec.training.staleness,
      randomSeed: spec.training.randomSeed?.toString(),
      optimizer: spec.training.optimizer && optimizerFromProto(spec.training.optimizer),
      threadsPerTrainer: spec.training.threadsPerTrainer,
    },
    resources: spec.resources && {
      devices: spec.resources.devices,
      deviceNames: spec.resources.deviceNames,
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

function samplingFromProto(sampling: pb.SamplingSpec): NonNullable<JobSpecInput['sampling']> {
  const { walk, labor } = sampling;
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
  };
}

function optimizerFromProto(optimizer: pb.OptimizerSpec): Optimizer {
  return {
    learningRate: optimizer.learningRate,
    beta1: optimizer.beta1,
    beta2: optimizer.beta2,
    epsilon: optimizer.epsilon,
    weightDecay: optimizer.weightDecay,
    weightDecayScope: enumName(pb.WeightDecayScope, optimizer.weightDecayScope),
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
  const { model, sampling, training, resources, placement, queue, timeouts } = input;
  return create(pb.JobSpecSchema, {
    dataset: input.dataset,
    model: model && { ...model, type: numberOf(pb.ModelType, model.type) },
    sampling: sampling && {
      ...sampling,
      fanouts: [...(sampling.fanouts ?? [])],
      algorithm: numberOf(pb.SamplingAlgorithm, sampling.algorithm),
      expansion: numberOf(pb.Expansion, sampling.expansion),
    },
    features: input.features,
    training: training && {
      ...training,
      randomSeed: training.randomSeed === undefined ? undefined : BigInt(training.randomSeed),
      optimizer: training.optimizer && {
        ...training.optimizer,
        weightDecayScope: numberOf(pb.WeightDecayScope, training.optimizer.weightDecayScope),
      },
    },
    resources: resources && {
      devices: resources.devices,
      deviceNames: [...(resources.deviceNames ?? [])],
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
