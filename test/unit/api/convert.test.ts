import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { anyUnpack, timestampMs } from '@bufbuild/protobuf/wkt';
import { describe, expect, it, test } from 'vitest';
import { datasetToProto, operationToProto } from '../../../src/api/convert-dataset.ts';
import { jobStateFromProto, jobToProto } from '../../../src/api/convert-job.ts';
import { planToProto } from '../../../src/api/convert-plan.ts';
import {
  DatasetSchema,
  DatasetState,
  DatasetValidationSchema,
} from '../../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { ExecutorRole } from '../../../src/api/gen/gnnd/v1/executor_pb.ts';
import { JobSchema, JobState } from '../../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobPlanSchema, PlanLimit, PlanWay } from '../../../src/api/gen/gnnd/v1/job_plan_pb.ts';
import { JobSpecSchema } from '../../../src/api/gen/gnnd/v1/job_spec_pb.ts';
import { OperationSchema, Reason } from '../../../src/api/gen/gnnd/v1/types_pb.ts';
import { type EpochReport, jobStates, reasons } from '../../../src/records/job-record.ts';
import type { JobSpecInput } from '../../../src/spec/job-spec.ts';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import { messageOf, plainOf, withSpecs } from '../../../src/spec/spec-codec.ts';
import { leafAt } from '../../../src/spec/spec-fields.ts';
import { warningsOf } from '../../../src/spec/spec-warnings.ts';
import {
  datasetRecord,
  jobProgress,
  jobRecord,
  operationRecord,
  resolvedSpec,
} from '../../support/api-fakes.ts';
import { forAll, type Random } from '../../support/random.ts';
import { contextOf } from '../../support/spec-context.ts';
import { jobPlan, epochReport as recordedEpoch, someTimes } from '../store/job-values.ts';

/** Through the wire and back, without what only says "absent". */
function throughWire(spec: JobSpecInput): unknown {
  const bytes = toBinary(JobSpecSchema, messageOf(JobSpecSchema, spec));
  return JSON.parse(
    JSON.stringify(plainOf<JobSpecInput>(JobSpecSchema, fromBinary(JobSpecSchema, bytes))),
  );
}

const fullSpec: JobSpecInput = {
  dataset: 'npm',
  model: {
    type: 'GATV2',
    layers: 2,
    hiddenDim: 16,
    dropout: 0,
    inputDropout: 0.25,
    heads: 2,
    activation: 'ELU',
    normalization: 'LAYER',
    residual: false,
    variant: 'NONE',
    hopLayers: 0,
    hopHiddenDim: 0,
    attentionDropout: 0,
    script: { path: '/p/m.pt', sha256: 'cd' },
  },
  sampling: {
    fanouts: [-1, 4],
    algorithm: 'RANDOM_WALK',
    replace: false,
    expansion: 'NEW',
    walk: { walks: 4, length: 3, restartProb: 0, neighbors: 5 },
    labor: { dependencyWindow: 0 },
    plugin: { path: '/p/a.so', options: 'k=1', weights: false, sha256: 'ab' },
  },
  features: { standardize: 'OFF' },
  cache: { policy: 'PRESC', presampleEpochs: 2, ratio: 0.25, standbyRatio: 0, prefetch: 'OFF' },
  training: {
    epochs: 200,
    batchSize: 140,
    batchesPerStep: 3,
    staleness: 0,
    stalenessCompensation: 'PREDICT',
    randomSeed: '18446744073709551615',
    optimizer: {
      type: 'SGD',
      learningRate: 0.01,
      beta1: 0.8,
      beta2: 0.99,
      epsilon: 1e-7,
      weightDecay: 5e-4,
      weightDecayScope: 'FIRST_LAYER',
      momentum: 0,
      clipNorm: 2.5,
    },
    lrSchedule: { type: 'STEP', stepEpochs: 3, gamma: 0.5, warmupEpochs: 0 },
    threadsPerTrainer: 1,
    earlyStop: { patienceEpochs: 10, minDelta: 0 },
    determinism: 'RELAXED',
    classWeights: [2, 0.5],
    balanceClasses: false,
  },
  evaluation: { everyEpochs: 0, method: 'AUTO', fanouts: [-1, 7], maxBytes: 2 ** 40 },
  resources: {
    devices: 2,
    deviceNames: ['cpu:0', 'cpu:1'],
    deviceMemoryBytes: 2 ** 33,
    hostMemoryBytes: 0,
  },
  placement: { policy: 'FIXED', samplers: 1, standby: 'ALWAYS' },
  queue: { capacity: 0, maxBytes: 2 ** 40 },
  restart: { maxAttempts: 1, executorRestarts: 0 },
  timeouts: { pendingMs: 1, startupMs: 2, stallMs: 1000, cancelGraceMs: 0, runMs: 0 },
  priority: 0,
};

describe('job specs', () => {
  it('go to a message and back with every field', () => {
    expect(throughWire(fullSpec)).toEqual(fullSpec);
  });

  it('go to a message and back when resolved', () => {
    expect(throughWire(resolvedSpec())).toEqual(resolvedSpec());
  });

  it('keep what is unset apart from what is 0, false or empty', () => {
    forAll(300, (random) => {
      const spec = randomPart(random, fullSpec);
      expect(throughWire(spec)).toEqual(spec);
    });
  });

  it('hand an enum number of a later version to the check that refuses it by name', () => {
    const message = create(JobSpecSchema, {
      dataset: 'cora',
      model: { type: 99 as number },
      training: { epochs: 1 },
    });
    const wire = fromBinary(JobSpecSchema, toBinary(JobSpecSchema, message));
    const context = contextOf();
    expect(resolveJobSpec(plainOf<JobSpecInput>(JobSpecSchema, wire), context)).toEqual({
      violations: [
        {
          path: 'spec.model.type',
          description: `"99": expected one of ${leafAt('model.type').choices.join(', ')}`,
        },
      ],
    });
  });
});

/** Any subset of the fields of `full`; lists stay whole, since messages have no empty ones. */
function randomPart(random: Random, full: JobSpecInput): JobSpecInput {
  const keep = (value: object): object =>
    Object.fromEntries(
      Object.entries(value)
        .filter(([, field]) => Array.isArray(field) || random.chance(0.6))
        .map(([key, field]) => [
          key,
          typeof field === 'object' && !Array.isArray(field) ? keep(field) : field,
        ]),
    );
  return keep(full);
}

function epochReport(epoch: number, executors = 1): EpochReport {
  return {
    epoch,
    batches: 9,
    steps: 3,
    retries: 1,
    loss: 0.5,
    trainAccuracy: 0.5,
    valAccuracy: 0.25,
    valMetrics: [
      { name: 'accuracy', value: 0.25 },
      { name: 'macro_f1', value: 0.125 },
    ],
    durationMs: 1234.5,
    version: 3,
    parametersSha256: 'a'.repeat(64),
    ledgerDigest: 'b'.repeat(64),
    batchesByDevice: { 'cpu:0': 4, 'cpu:1': 5 },
    executorTimes: Array(executors).fill(someTimes),
    work: { extractNs: 3_000, trainNs: 9_000, scale: 2, next: null },
  };
}

const errors = {
  testMetricsLast: [{ name: 'mae', value: 1.5 }],
  testMetricsBest: [{ name: 'mae', value: 1.25 }],
  bestValMetrics: [{ name: 'mae', value: 1 }],
};

const alone = { progress: null, numEpochs: 0, epochs: [] };

describe('jobs', () => {
  it('say all that is known of them', () => {
    const exit = {
      role: 'TRAINER',
      device: 'cpu:1',
      pid: 42,
      exitCode: null,
      signal: 'SIGKILL',
      reason: 'EXECUTOR_STALLED',
      logTail: 'the last words',
    } as const;
    const job = jobRecord({
      state: 'RUNNING',
      phase: 'TRAINING',
      reason: 'NONE',
      startAtMs: 1_700_000_001_000,
      revision: 7,
      attempts: [
        {
          number: 1,
          startAtMs: 1_700_000_001_000,
          endAtMs: null,
          endReason: 'NONE',
          message: '',
          executorRestarts: 1,
          resumed: null,
          exits: [exit],
        },
      ],
      result: {
        parametersSha256: 'c'.repeat(64),
        checkpointDir: '/state/jobs/mine/checkpoint',
        testAccuracyLast: 0.5,
        testAccuracyBest: 0.625,
        ...{ bestEpoch: 2, bestValAccuracy: 0.75, epochs: 3 },
        ...errors,
      },
    });
    const beside = { progress: jobProgress(), numEpochs: 7, epochs: [epochReport(0)] };
    const sent = jobToProto(job, beside, 'FULL');
    const message = fromBinary(JobSchema, toBinary(JobSchema, sent));
    expect(message.name).toBe('jobs/mine');
    expect(JobState[message.state]).toBe('RUNNING');
    expect(message.revision).toBe(7n);
    expect(message.createTime && timestampMs(message.createTime)).toBe(1_700_000_000_123);
    expect(message.endTime).toBeUndefined();
    expect(message.effectiveSpec?.training?.batchSize).toBe(140);
    expect(message.spec?.training?.batchSize).toBeUndefined();
    expect(message.progress?.batchesCommitted).toBe(4n);
    expect(message.progress?.executors[0]?.role).toBe(ExecutorRole.SAMPLER);
    expect(message.epochs[0]?.batchesByDevice).toEqual({ 'cpu:0': 4n, 'cpu:1': 5n });
    expect(message.epochs[0]?.durationMs).toBe(1235n);
    const [sentTimes] = message.epochs[0]?.executorTimes ?? [];
    expect(sentTimes?.role).toBe(ExecutorRole.TRAINER);
    const { role: _, device, historyCosine, ...whole } = someTimes;
    const inBigints = Object.entries(whole).map(([field, ns]) => [field, BigInt(ns)] as const);
    expect(sentTimes).toMatchObject({ device, historyCosine, ...Object.fromEntries(inBigints) });
    // Stored already, but executors are still being stopped: the job has not ended.
    expect(message.result).toBeUndefined();
    const ended = jobToProto({ ...job, state: 'SUCCEEDED' }, beside, 'FULL');
    expect(ended.result).toMatchObject({ bestEpoch: 2, epochs: 3 });
    const [sentExit] = message.attempts[0]?.exits ?? [];
    expect(sentExit?.exitCode).toBeUndefined();
    expect(sentExit?.signal).toBe('SIGKILL');
    expect(Reason[sentExit?.reason ?? 0]).toBe('EXECUTOR_STALLED');
    expect(sentExit?.logTail).toBe('the last words');
    expect(message.numEpochs).toBe(7);
    const listed = jobToProto(job, alone, 'LIST');
    expect(listed.attempts[0]?.exits[0]?.logTail).toBe('');
  });

  it('fit the largest message after the longest history', () => {
    const exit = {
      role: 'TRAINER',
      device: 'cpu:1',
      pid: 42,
      exitCode: 1,
      signal: null,
      reason: 'EXECUTOR_CRASHED',
      logTail: 'x'.repeat(4096),
    } as const;
    const attempt = {
      number: 1,
      startAtMs: 0,
      endAtMs: 1,
      endReason: 'EXECUTOR_CRASHED',
      message: 'm',
      executorRestarts: 1000,
      exits: Array(50).fill(exit),
      resumed: null,
    } as const;
    const job = jobRecord({
      attempts: Array(100).fill(attempt),
    });
    const epochs = Array.from({ length: 100 }, (_, epoch) => epochReport(epoch, 128));
    const message = jobToProto(job, { progress: null, numEpochs: 20_000, epochs }, 'FULL');
    expect(toBinary(JobSchema, message).length).toBeLessThan(4 * 1024 * 1024);
  });

  it('have a state and a reason for each of ours, and none is lost', () => {
    for (const state of jobStates) {
      const message = jobToProto(jobRecord({ state }), alone, 'LIST');
      expect(jobStateFromProto(message.state)).toBe(state);
    }
    expect(jobStateFromProto(JobState.UNSPECIFIED)).toBeUndefined();
    expect(jobStateFromProto(99 as number)).toBeUndefined();
    for (const reason of reasons) {
      const message = jobToProto(jobRecord({ reason }), alone, 'LIST');
      expect(Reason[message.reason]).toBe(reason);
    }
  });
});

test('a list passes specs on without reading them', () => {
  const { encoded, spec: _spec, effectiveSpec: _effective, ...rest } = jobRecord();
  const job = withSpecs(rest, encoded);
  const bytes = toBinary(JobSchema, jobToProto(job, alone, 'LIST'));
  for (const key of ['spec', 'effectiveSpec'] as const) {
    expect(Object.getOwnPropertyDescriptor(job, key)?.get, key).toBeDefined();
  }
  const { spec, effectiveSpec } = fromBinary(JobSchema, bytes);
  expect(spec && plainOf(JobSpecSchema, spec)).toMatchObject(job.spec);
  expect(effectiveSpec && plainOf(JobSpecSchema, effectiveSpec)).toEqual(job.effectiveSpec);
});

test('a job says what its author should know, but not in lists', () => {
  const { training, ...spec } = resolvedSpec();
  const job = jobRecord({ effectiveSpec: { ...spec, training: { ...training, staleness: 8 } } });
  expect(jobToProto(job, alone, 'FULL').warnings).toEqual(warningsOf(job.effectiveSpec));
  expect(jobToProto(job, alone, 'LIST').warnings).toEqual([]);
  expect(jobToProto(jobRecord(), alone, 'FULL').warnings).toEqual([]);
});

describe('plans', () => {
  it('keep every number', () => {
    const { training, ...spec } = resolvedSpec();
    const stale = { ...spec, training: { ...training, staleness: 3 } };
    const sent = planToProto(
      'jobs/mine',
      {
        ...{ plan: jobPlan(), measured: null, rows: null },
        ...{ deviceKindChoice: '', batchesPerStepChoice: '4, as asked for' },
        choices: {
          standardize: 'OFF, as asked for',
          precision: 'FLOAT32, as asked for',
          schedule: '',
        },
      },
      stale,
    );
    const message = fromBinary(JobPlanSchema, toBinary(JobPlanSchema, sent));
    expect(message).toMatchObject({ staleness: 3, warnings: warningsOf(stale) });
    expect(message.warnings).toHaveLength(1);
    expect(message).toMatchObject({ job: 'jobs/mine', estimated: true, k: 3, queueCapacity: 5 });
    expect(message.batchesPerStepChoice).toBe('4, as asked for');
    expect(message.standardizeChoice).toBe('OFF, as asked for');
    expect(message.slotBytes).toBe(2n ** 33n);
    expect(message.choices[0]?.batchNs).toBe(3_000_000n);
    expect(message.executors.map((executor) => executor.device)).toEqual(['cpu:0', 'cpu:1']);
    expect(message.way).toBe(PlanWay.SPLIT);
    expect(message.ways).toHaveLength(1);
    const limit = PlanLimit.TRAINING;
    const times = { batchNs: 3_000_000n, epochNs: 30_000_000n, limit, batchesAtOnce: 1 };
    expect(message.ways[0]).toMatchObject({
      way: PlanWay.SPLIT,
      samplers: 1,
      trainers: 1,
      ...times,
    });
    expect(message.measurement).toBeUndefined();
  });

  it('stand beside what epochs took, in the plan and in the job', () => {
    const epochs = [30, 31].map((durationMs, epoch) => ({
      ...recordedEpoch(epoch),
      batches: 10,
      durationMs,
    }));
    const job = jobRecord({ plan: jobPlan() });
    const { pace } = jobToProto(job, { ...alone, epochs, numEpochs: 2 }, 'FULL');
    expect(pace).toMatchObject({
      way: PlanWay.SPLIT,
      predictedBatchNs: 3_000_000n,
      predictedEpochNs: 30_000_000n,
      measured: { epochs: 1, batchNs: 3_100_000n, epochNs: 31_000_000n },
    });
    const unplanned = jobRecord({ plan: { ...jobPlan(), ways: [] } });
    expect(jobToProto(unplanned, { ...alone, epochs }, 'FULL').pace).toBeUndefined();
    expect(jobToProto(job, alone, 'FULL').pace).toBeUndefined();
  });
});

describe('datasets and operations', () => {
  it('keep every number', () => {
    const message = datasetToProto(datasetRecord());
    expect(fromBinary(DatasetSchema, toBinary(DatasetSchema, message))).toMatchObject({
      name: 'datasets/cora',
      state: DatasetState.READY,
      numNodes: 2708n,
      numTest: 1000n,
    });
  });

  it('an operation in progress has no result', () => {
    const message = operationToProto(operationRecord(), null);
    expect(message).toMatchObject({ target: 'datasets/cora', done: false, progress: 0.25 });
    expect(message.result.case).toBeUndefined();
  });

  it('a finished import answers the dataset', () => {
    const done = operationRecord({ done: true, endAtMs: 1_700_000_001_000 });
    const { result } = operationToProto(done, datasetRecord());
    if (result.case !== 'response') throw new Error(`got ${result.case}`);
    expect(anyUnpack(result.value, DatasetSchema)?.name).toBe('datasets/cora');
  });

  it('a finished check answers what it found', () => {
    const problems = [{ path: 'indptr.npy', description: 'is empty' }];
    const done = operationRecord({
      kind: 'ValidateDataset',
      done: true,
      validation: { problems, problemCount: 37 },
    });
    const { result } = operationToProto(done, null);
    if (result.case !== 'response') throw new Error(`got ${result.case}`);
    const validation = anyUnpack(result.value, DatasetValidationSchema);
    expect(validation).toMatchObject({ valid: false, problemCount: 37n });
    expect(validation?.problems).toMatchObject(problems);
  });

  it('a failed operation says code, reason and all problems', () => {
    const problems = [{ path: 'edges.csv:7', description: 'expected two columns' }];
    const error = { reason: 'SPEC_INVALID', message: 'bad source', problems };
    const message = operationToProto(operationRecord({ done: true, error }), null);
    const { result } = fromBinary(OperationSchema, toBinary(OperationSchema, message));
    expect(result).toMatchObject({
      case: 'error',
      value: { code: 3, reason: 'SPEC_INVALID', problems },
    });
  });
});
