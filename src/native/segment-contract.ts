import type { ExecutorId, Role } from './contract.ts';

/** What a look at a job's segment shows; a part of contract.ts. */

/** Upper bounds of `Times.buckets` in seconds; one more bucket follows for the rest. */
export const stageBoundsSeconds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const;
export const waitBoundsSeconds = [...stageBoundsSeconds, 60, 120] as const;

/** Index of `ExecutorSnapshot.stages`. */
export const stages = [
  'SAMPLE',
  'MARK',
  'COPY',
  'PRUNE',
  'EXTRACT',
  'TRAIN',
  'APPLY',
  'EVALUATE',
] as const;

/** Index of `ExecutorSnapshot.waits`. */
export const waitSides = ['ENQUEUE', 'DEQUEUE', 'DUE', 'TURN', 'EXTRACT'] as const;

/** Index of `ExecutorSnapshot.counters`. */
export const counters = {
  batchesSampled: 0,
  batchesTaken: 1,
  batchesTrained: 2,
  batchesGivenBack: 3,
  stepsApplied: 4,
  /** Of evaluations, computed. */
  evaluationChunks: 5,
  nodes: 6,
  edges: 7,
  seeds: 8,
  queueBytes: 9,
  turnSwitches: 10,
  standbyTakes: 11,
  standbyRefusals: 12,
  lockOwnersDied: 13,
  corruptRecords: 14,
  slotsTrimmed: 15,
  deviceRows: 16,
  hostRows: 17,
  diskRows: 18,
  deviceBytes: 19,
  hostBytes: 20,
  diskBytes: 21,
  /** Of the cache. */
  cacheRows: 22,
  cacheFillNs: 23,
  /** Memory that batches' work took at most. */
  workBytes: 24,
  /** Taken to be extracted while another one was computed. */
  batchesAhead: 25,
  evaluationRows: 26,
} as const;

export interface Times {
  readonly totalNs: number;
  readonly count: number;
  readonly buckets: readonly number[];
}

export interface ExecutorSnapshot extends ExecutorId {
  readonly role: Role;
  readonly device: number;
  /** 0 until the process has entered. */
  readonly pid: number;
  /** Whether the device is its own now: a Sampler and a standby Trainer on one take turns. */
  readonly hasTurn: boolean;
  readonly phase: 'REGISTERED' | 'LOADING' | 'RUNNING' | 'FINISHED' | 'FAILED' | 'REAPED';
  readonly registeredNs: number;
  /** CLOCK_MONOTONIC; 0 = no sign of life yet. */
  readonly heartbeatNs: number;
  readonly stage: string;
  readonly progressNs: number;
  readonly counters: readonly number[];
  readonly stages: readonly (Times & { readonly medianNs: number })[];
  readonly waits: readonly Times[];
}

export interface SegmentSnapshot {
  /** Committed groups. */
  readonly version: number;
  readonly committedBatches: number;
  /** Of `epochsToTrain`. */
  readonly totalBatches: number;
  /** All epochs, or fewer once an evaluation has stopped the job. */
  readonly epochsToTrain: number;
  readonly epoch: number;
  readonly epochsCommitted: number;
  /** All batches that are to be trained and all evaluations. */
  readonly complete: boolean;
  /** What runs and nothing is trained before it ends; null = none. */
  readonly evaluation: {
    readonly kind: 'VALIDATION' | 'TEST_LAST' | 'TEST_BEST';
    /** Whose parameters they are. */
    readonly epoch: number;
    /** Rows of hidden layers and of the last one, of all chunks that are done. */
    readonly done: number;
    /** 0 = not known yet. */
    readonly total: number;
  } | null;
  /** READY batches. */
  readonly queueDepth: number;
  readonly queueBytes: number;
  /** Batches that Samplers and Trainers have in hand. */
  readonly claimed: number;
  readonly taken: number;
  readonly numSlots: number;
  readonly largestRecordBytes: number;
  readonly reclaimed: number;
  readonly standbyProfitNs: number;
  /** The abort's message; null unless aborted. */
  readonly aborted: string | null;
  readonly executors: readonly ExecutorSnapshot[];
}

export interface SegmentEpoch {
  readonly epoch: number;
  readonly committed: boolean;
  readonly startNs: number;
  readonly endNs: number;
  readonly batches: number;
  readonly steps: number;
  readonly retries: number;
  readonly seeds: number;
  readonly correct: number;
  readonly lossSum: number;
  /** Equal to expectedLedgerDigest iff each batch was committed exactly once, in order. */
  readonly ledgerDigest: string;
  readonly expectedLedgerDigest: string;
  readonly finalVersion: number;
  readonly deviceBatches: readonly number[];
  /** Of the parameters after the epoch, padding left out; hex, empty until it is committed. */
  readonly parametersSha256: string;
  /** Committed, and evaluated if that is due. */
  readonly complete: boolean;
  /** On the validation nodes after the epoch, if there is one. */
  readonly evaluation: {
    readonly valNodes: number;
    readonly valCorrect: number;
    readonly bestEpoch: number;
    readonly endNs: number;
  } | null;
  /** On the test nodes with this epoch's parameters: at the end, for the last and the best. */
  readonly test: { readonly nodes: number; readonly correct: number } | null;
}
