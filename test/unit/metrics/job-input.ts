import { stageBounds, waitBounds } from '../../../src/metrics/families.ts';
import { stages, waits } from '../../../src/metrics/labels.ts';
import type {
  HostMetricsInput,
  JobMetricsInput,
  MetricsOptions,
  RawHistogram,
} from '../../../src/metrics/metrics.ts';

export const options: MetricsOptions = {
  build: { version: '0.1.0', nodeVersion: 'v20' },
  startAtMs: 1_700_000_000_000,
  grpcMethods: [
    { service: 'gnnd.v1.JobService', method: 'CreateJob', type: 'unary' },
    { service: 'gnnd.v1.JobService', method: 'WatchJob', type: 'server_stream' },
  ],
};

export function deviceNames(count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `cpu:${i}`);
}

function evenly(buckets: number): RawHistogram {
  return { counts: new Array<number>(buckets).fill(1), sum: 3.5 };
}

const cache: JobMetricsInput['cache'] = {
  capacityRows: 270,
  givenUpRows: 20,
  ratio: 0.1,
  lookups: {
    DEVICE: { HIT: { rows: 60, bytes: 600 }, MISS: { rows: 60, bytes: 600 } },
    PEER: { HIT: { rows: 20, bytes: 200 }, MISS: { rows: 40, bytes: 400 } },
    HOST: { HIT: { rows: 30, bytes: 300 }, MISS: { rows: 10, bytes: 100 } },
    DISK: { HIT: { rows: 10, bytes: 100 }, MISS: { rows: 0, bytes: 0 } },
  },
  fillSeconds: 0.25,
  presampleSeconds: 1.5,
};

const history: JobMetricsInput['history'] = {
  lookups: 100,
  hitsByLevel: [10, 20, 1, 1, 1, 1, 1, 0],
  hitsByAge: [8, 7, 6, 5, 4, 3, 1, 1],
  events: { ADMITTED: 50, EVICTED: 5, OVERWRITTEN: 2 },
  prunedRows: 400,
  places: 48,
  compared: { rows: 40, similar: 36, cosine: 37.5, lagSteps: 800 },
  pruneSeconds: 0.5,
  updateSeconds: 0.25,
};

const deviceUse: JobMetricsInput['deviceUse'] = [
  {
    device: 'sim:0',
    memoryBytes: { TOPOLOGY: 4096, CACHE: 2048, WORKSPACE: 1024, MODEL: 512 },
    copiedBytes: { IN: 6656, OUT: 3000 },
    features: {
      CACHE: { rows: 50, bytes: 500 },
      PEER: { rows: 15, bytes: 150 },
      BUS: { rows: 30, bytes: 300 },
      STAGED: { rows: 20, bytes: 200 },
    },
    stageSeconds: { SAMPLE: 0.5, MARK: 0.1, COPY: 0.2, EXTRACT: 0.25, TRAIN: 1.5, EVALUATE: 0.75 },
    rowWaitSeconds: 0.125,
    evaluatedChunks: 12,
    registeredBytes: 8192,
  },
];

const evaluated = {
  VAL: [
    { name: 'accuracy', value: 0.5 },
    { name: 'macro_f1', value: 0.375 },
  ],
  TEST: [{ name: 'mae', value: 1.25 }],
};

/** A job with a Sampler and a standby Trainer on its first device and Trainers on the others. */
export function jobInput(slot: number, devices: readonly string[]): JobMetricsInput {
  return {
    slot,
    job: `job-${slot}`,
    uid: `uid-${slot}`,
    dataset: 'cora',
    model: 'GRAPHSAGE',
    state: 'RUNNING',
    phase: 'TRAINING',
    attempt: 1,
    restartBudgetRemaining: 2,
    lastProgressAtMs: 1_700_000_001_500,
    remainingSeconds: 90,
    deviceUse,
    evaluation: { doneRatio: 0.25, remainingSeconds: 12 },
    epoch: 3,
    epochsTarget: 10,
    epochsCompleted: 3,
    batches: {
      SAMPLED: 31,
      EXTRACTED: 30,
      PREFETCHED: 12,
      TRAINED: 30,
      COMMITTED: 29,
      DISCARDED: 0,
      REDELIVERED: 2,
    },
    steps: 29,
    parameterVersion: 29,
    sampledEdges: 12_345,
    sampledNodes: 6_789,
    ...{ trainedSeeds: 1_920, evaluatedChunks: 12, evaluatedRows: 4_096 },
    stageSeconds: devices.flatMap((device) =>
      stages.map((stage) => ({ device, stage, seconds: 1.25 })),
    ),
    waitSeconds: devices.flatMap((device) => waits.map((wait) => ({ device, wait, seconds: 0.5 }))),
    stageDurations: { S: evenly(stageBounds.length + 1) },
    loss: 0.75,
    evaluated,
    queue: {
      depth: 2,
      capacity: 4,
      inflight: { ENQUEUE: 1, DEQUEUE: 2 },
      bytes: 4096,
      slotBytes: 65_536,
      ops: { ENQUEUE: 31, DEQUEUE: 30 },
      waits: { ENQUEUE: evenly(waitBounds.length + 1), DEQUEUE: evenly(waitBounds.length + 1) },
      reclaimed: { CLAIMED: 1, TAKEN: 0 },
      corruptRecords: 0,
      lockOwnersDied: 0,
    },
    cache,
    ...{ history, locality: { scale: 2, extractShare: 0.25 } },
    placement: {
      k: 2,
      samplerBatchSeconds: 0.01,
      trainerBatchSeconds: 0.02,
      standbyBatchSeconds: 0.025,
      predictedBatchSeconds: 0.02,
      measuredBatchSeconds: 0.021,
      standbyProfitSeconds: 0.375,
    },
    switches: { toStandby: 2, toSampler: 1 },
    standbyWakeups: { USEFUL: 2, EMPTY: 1 },
    executors: devices.flatMap((device, i): JobMetricsInput['executors'] => {
      const vital = { device, heartbeatAgeSeconds: 0.5 + i, residentBytes: 1000 };
      if (i > 0) return [{ ...vital, role: 'TRAINER', hasTurn: true }];
      return [
        { ...vital, role: 'SAMPLER', hasTurn: false },
        { ...vital, role: 'STANDBY', hasTurn: true },
      ];
    }),
    cpuSeconds: { SAMPLER: 10, TRAINER: 20, STANDBY: 5 },
    checkpoints: { ok: 1, failed: 0, bytes: 5000, lastSuccessAtMs: 1_700_000_002_000 },
  };
}

export function hostInput(devices: readonly string[]): HostMetricsInput {
  return {
    ready: true,
    store: { revision: 12, dbBytes: 4096, walBytes: 8192 },
    stateDirFreeBytes: 1e9,
    watches: 1,
    jobs: {
      PENDING: 1,
      PREPARING: 0,
      RUNNING: 1,
      CANCELLING: 0,
      SUCCEEDED: 3,
      FAILED: 0,
      CANCELLED: 0,
      SUSPENDING: 0,
      SUSPENDED: 0,
    },
    datasets: { IMPORTING: 0, READY: 2, FAILED: 0 },
    datasetBytes: 123,
    segments: [
      { kind: 'JOB', bytes: 100 },
      { kind: 'JOB', bytes: 50 },
    ],
    devices: devices.map((device) => ({
      device,
      kind: 'CPU',
      uuid: '',
      model: 'a "quoted" \\ model',
      driver: '',
      state: 'ALLOCATED',
    })),
  };
}
