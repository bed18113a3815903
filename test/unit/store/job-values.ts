import type {
  EpochReport,
  ExecutorTimes,
  JobPlan,
  JobResult,
} from '../../../src/records/job-record.ts';
import type { JobSpec, JobSpecInput } from '../../../src/spec/job-spec.ts';
import { resolveFields } from '../../../src/spec/resolve-fields.ts';
import { createSpecChecker } from '../../../src/spec/spec-checker.ts';
import type { NewDataset, NewJob } from '../../../src/store/store.ts';

/** A spec whose fields have their defaults where `given` does not name them. */
export function specOf(given: JobSpecInput): JobSpec {
  const check = createSpecChecker();
  const spec = resolveFields(check, given) as JobSpec;
  if (check.violations.length > 0) throw new Error(JSON.stringify(check.violations));
  return spec;
}

export const someSpec = specOf({
  dataset: 'cora',
  model: { layers: 2, hiddenDim: 16 },
  sampling: {
    fanouts: [10, -1],
    algorithm: 'LABOR',
    expansion: 'NEW',
    labor: { dependencyWindow: 4 },
  },
  features: { standardize: 'ON' },
  cache: { policy: 'COMBINED', ratio: 0.25, prefetch: 'ON' },
  training: {
    epochs: 3,
    batchSize: 64,
    batchesPerStep: 1,
    staleness: 0,
    stalenessCompensation: 'PREDICT',
    randomSeed: '18446744073709551615',
    threadsPerTrainer: 1,
    matrixLibrary: 'OPENBLAS',
    earlyStop: { patienceEpochs: 2, minDelta: 0.001 },
  },
  evaluation: { method: 'EXACT', maxBytes: 2 ** 33 },
  resources: { devices: 2, deviceMemoryBytes: 1 << 20 },
  placement: { policy: 'AUTO', standby: 'AUTO' },
  queue: { maxBytes: 1 << 30 },
  priority: 100,
});

export function newJob(id: string): NewJob {
  return {
    id,
    uid: `uid-${id}`,
    spec: { dataset: 'cora', model: { type: 'GRAPHSAGE' }, training: { epochs: 3 } },
    effectiveSpec: someSpec,
    datasetDigest: 'd1',
    choices: {
      standardize: 'ON, chosen: the columns are dense',
      precision: 'FLOAT32, as asked for',
      schedule: '3 epochs, as asked for',
    },
    createdBy: 'ann',
  };
}

const cachePlan: NonNullable<JobPlan['cache']> = {
  policy: 'COMBINED',
  trainerRows: 270,
  standbyRows: 135,
  rowBytes: 5732,
  reservedBytes: 2 ** 30,
  rankMs: 40,
  explanation: '10.0 % of the rows, as asked for',
  prefetch: true,
  prefetchExplanation: 'as asked for',
  pinnedRows: 30,
  pinnedExplanation: '30.0 % of the rows, as the host has room',
  placement: null,
  favoured: '',
};

export function jobPlan(): JobPlan {
  return {
    estimated: true,
    executors: [
      { role: 'SAMPLER', device: 'cpu:0' },
      { role: 'TRAINER', device: 'cpu:1' },
    ],
    samplerBatchNs: 1_000_000,
    trainerBatchNs: 3_000_000,
    standbyBatchNs: 3_500_000,
    k: 3,
    choices: [{ policy: 'PAPER', samplers: 1, trainers: 1, batchNs: 3_000_000 }],
    policy: 'PAPER',
    standby: 'AUTO',
    ways: [
      {
        way: 'SPLIT',
        samplers: 1,
        trainers: 1,
        batchNs: 3_000_000,
        epochNs: 30_000_000,
        limit: 'TRAINING',
        atOnce: 1,
      },
    ],
    timeSharingBatchNs: 2_000_000,
    explanation: 'two devices leave no choice',
    queueCapacity: 5,
    slotBytes: 2 ** 33,
    parameterCount: 23_063,
    cache: cachePlan,
  };
}

/** A plan with all that one may have. */
export const somePlan: JobPlan = {
  ...jobPlan(),
  cache: {
    ...cachePlan,
    placement: {
      explanation: "2 devices read each other's rows",
      devices: [
        {
          ...{ device: 'cuda:1', copiedRows: 10, dealtRows: 20 },
          expected: { own: 0.5, peer: 0.25, host: 0.25, waitNs: 1000 },
          measured: null,
        },
      ],
    },
  },
};

export const someResult: JobResult = {
  parametersSha256: 'ab',
  checkpointDir: 'jobs/uid-a/final',
  testAccuracyLast: 0.81,
  testAccuracyBest: 0.82,
  bestEpoch: 2,
  bestValAccuracy: 0.83,
  testMetricsLast: [{ name: 'accuracy', value: 0.81 }],
  testMetricsBest: [
    { name: 'accuracy', value: 0.82 },
    { name: 'macro_f1', value: 0.5 },
  ],
  bestValMetrics: [{ name: 'accuracy', value: 0.83 }],
  epochs: 10,
};

export const someTimes: ExecutorTimes = {
  role: 'TRAINER',
  device: 'cpu:1',
  durationNs: 1_000_000_000,
  sampleNs: 0,
  markNs: 0,
  copyNs: 0,
  extractNs: 400_000_000,
  trainNs: 500_000_000,
  applyNs: 50_000_000,
  evaluateNs: 100_000_000,
  waitEnqueueNs: 0,
  waitDequeueNs: 50_000_000,
  waitDueNs: 150_000_000,
  waitTurnNs: 0,
  waitExtractNs: 100_000_000,
  pruneNs: 40,
  historyNs: 41,
  cachedRows: 42,
  peerRows: 49,
  readRows: 43,
  prunedRows: 44,
  historyLookups: 45,
  historyHits: 46,
  historyCompared: 47,
  historySimilar: 45,
  historyCosine: 44.5,
  historyLag: 470,
  cacheBorder: 90,
  cacheGivenUpRows: 10,
};

export function epochReport(epoch: number): EpochReport {
  return {
    epoch,
    batches: 10,
    steps: 10,
    retries: 0,
    loss: 1.5 / (epoch + 1),
    trainAccuracy: 0.7,
    valAccuracy: 0.6,
    valMetrics: [
      { name: 'accuracy', value: 0.6 },
      { name: 'macro_f1', value: 0.1 + 0.2 },
    ],
    durationMs: 12.5,
    version: 10 * (epoch + 1),
    parametersSha256: `sha-${epoch}`,
    ledgerDigest: `ledger-${epoch}`,
    batchesByDevice: { 'cpu:0': 4, 'cpu:1': 6 },
    executorTimes: [someTimes],
    work: {
      extractNs: 3_000,
      trainNs: 9_000,
      scale: 1.5,
      next: { scale: 48, before: 32, fixed: false },
    },
  };
}

export function newDataset(id: string): NewDataset {
  return {
    id,
    state: 'IMPORTING',
    message: '',
    digest: '',
    path: `datasets/${id}`,
    numNodes: 0,
    numEdges: 0,
    numFeatures: 0,
    featureDtype: 'float32',
    task: 'CLASSIFICATION',
    numClasses: 0,
    numTrain: 0,
    numVal: 0,
    numTest: 0,
    bytes: 0,
    schema: null,
  };
}
