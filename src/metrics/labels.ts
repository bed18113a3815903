import type { DatasetState } from '../records/dataset-record.ts';
import type { ExecutorRole, JobPhase } from '../records/job-record.ts';

/** The values that labels may take. */

/** Phases that attempts go through; a job evaluates while it trains. */
export const jobPhases = [
  'LOADING_DATASET',
  'CALIBRATING',
  'STARTING',
  'TRAINING',
  'FINALIZING',
  'PREDICTING',
] as const satisfies readonly JobPhase[];

export const endStates = ['SUCCEEDED', 'FAILED', 'CANCELLED'] as const;

export const datasetStates = [
  'IMPORTING',
  'READY',
  'FAILED',
] as const satisfies readonly DatasetState[];

export const batchEvents = [
  'SAMPLED',
  'EXTRACTED',
  'PREFETCHED',
  'TRAINED',
  'COMMITTED',
  'DISCARDED',
  'REDELIVERED',
] as const;
export type BatchEvent = (typeof batchEvents)[number];

/** S sample, M mark, C copy; P prune, E extract, T train; A apply a step, V evaluate. */
export const stages = ['S', 'M', 'C', 'P', 'E', 'T', 'A', 'V'] as const;
export type Stage = (typeof stages)[number];

/**
 * What executors wait for: a batch to claim, one to take, its parameter version, the device's turn,
 * their own extraction.
 */
export const waits = ['ENQUEUE', 'DEQUEUE', 'DUE', 'TURN', 'EXTRACT'] as const;
export type Wait = (typeof waits)[number];

export const splits = ['TRAIN', 'VAL', 'TEST'] as const;
export type Split = (typeof splits)[number];

export const evalMetrics = [
  'ACCURACY',
  'MICRO_F1',
  'MACRO_F1',
  'ROC_AUC',
  'AVERAGE_PRECISION',
  'MAE',
  'RMSE',
  'MRR',
  'HITS_1',
  'HITS_3',
  'HITS_10',
  'HITS_20',
  'HITS_50',
  'HITS_100',
] as const;

export const queueSides = ['ENQUEUE', 'DEQUEUE'] as const;
export type QueueSide = (typeof queueSides)[number];

export const cacheTiers = ['DEVICE', 'PEER', 'HOST', 'DISK'] as const;
export type CacheTier = (typeof cacheTiers)[number];

export const cacheResults = ['HIT', 'MISS'] as const;
export type CacheResult = (typeof cacheResults)[number];

/** What a batch was when its dead owner's claim on it was taken back. */
export const reclaimedStates = ['CLAIMED', 'TAKEN'] as const;
export type ReclaimedState = (typeof reclaimedStates)[number];

export const executorRoles = [
  'SAMPLER',
  'TRAINER',
  'STANDBY',
] as const satisfies readonly ExecutorRole[];

/** USEFUL took a batch, EMPTY found none that the profit rule granted. */
export const standbyOutcomes = ['USEFUL', 'EMPTY'] as const;
export type StandbyOutcome = (typeof standbyOutcomes)[number];

/** FAILED: also what was cancelled or killed; what is complete of it stays. */
export const propagationOutcomes = ['COMPLETE', 'FAILED'] as const;
export type PropagationOutcome = (typeof propagationOutcomes)[number];

export const executorOutcomes = ['expected', 'crashed', 'killed_watchdog', 'unkillable'] as const;
export type ExecutorOutcome = (typeof executorOutcomes)[number];

/** JOB is a job's segment. */
export const segmentKinds = ['JOB', 'TOPOLOGY'] as const;
export type SegmentKind = (typeof segmentKinds)[number];

export const deviceStates = ['FREE', 'ALLOCATED', 'QUARANTINED', 'UNUSED', 'DRAINED'] as const;
export type DeviceState = (typeof deviceStates)[number];

/** What memory of a device is for. */
export const deviceMemoryUses = ['TOPOLOGY', 'CACHE', 'WORKSPACE', 'MODEL'] as const;
export type DeviceMemoryUse = (typeof deviceMemoryUses)[number];
export const copyDirections = ['IN', 'OUT'] as const;
export type CopyDirection = (typeof copyDirections)[number];

/**
 * How a device comes by a feature row: its own memory, another device's, the host's by itself, or
 * by copy.
 */
export const rowWays = ['CACHE', 'PEER', 'BUS', 'STAGED'] as const;
export type RowWay = (typeof rowWays)[number];

/** What a look into history finds, and what happens to embeddings. */
export const historyResults = ['HIT', 'MISS'] as const;
export const historyEvents = ['ADMITTED', 'EVICTED', 'OVERWRITTEN'] as const;
export type HistoryEvent = (typeof historyEvents)[number];
/** Hidden layers, and eighths of the oldest that an embedding may be. */
export const historyLevels = ['1', '2', '3', '4', '5', '6', '7'] as const;
export const historyAges = ['1', '2', '3', '4', '5', '6', '7', '8'] as const;

/** Stages of which a device's events tell how long it had to do. */
export const deviceStages = ['SAMPLE', 'MARK', 'COPY', 'EXTRACT', 'TRAIN', 'EVALUATE'] as const;
export type DeviceStage = (typeof deviceStages)[number];

export const checkpointResults = ['OK', 'FAILED'] as const;

/** What a store transaction was for; GROUP did several things at once. */
export const storeOps = [
  'INSERT_JOB',
  'SET_INTENT',
  'TRANSITION',
  'ATTEMPT',
  'EPOCH',
  'DATASET',
  'OPERATION',
  'RETENTION',
  'META',
  'GROUP',
] as const;
export type StoreOp = (typeof storeOps)[number];

export const storeErrorCodes = ['BUSY', 'FULL', 'IOERR', 'CORRUPT', 'OTHER'] as const;
export type StoreErrorCode = (typeof storeErrorCodes)[number];

export const grpcTypes = ['unary', 'client_stream', 'server_stream', 'bidi_stream'] as const;
export type GrpcType = (typeof grpcTypes)[number];

/** Spelled as the metrics of Go's gRPC middleware spell them, so that public dashboards fit. */
export const grpcCodes = [
  'OK',
  'Canceled',
  'Unknown',
  'InvalidArgument',
  'DeadlineExceeded',
  'NotFound',
  'AlreadyExists',
  'PermissionDenied',
  'ResourceExhausted',
  'FailedPrecondition',
  'Aborted',
  'OutOfRange',
  'Unimplemented',
  'Internal',
  'Unavailable',
  'DataLoss',
  'Unauthenticated',
] as const;
/** In the order of the numeric codes 0 to 16. */
export type GrpcCode = (typeof grpcCodes)[number];
