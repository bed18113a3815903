// Made by "npm run build:contract" from the tables in native/node.

/** Upper bounds of `buckets` in seconds; one more bucket follows for the rest. */
export const stageBoundsSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;
export const waitBoundsSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120] as const;

/** Index of `ExecutorSnapshot.stages`. */
export const stages = ['SAMPLE', 'MARK', 'COPY', 'PRUNE', 'EXTRACT', 'TRAIN', 'APPLY', 'EVALUATE'] as const;

/** Index of `ExecutorSnapshot.waits`. */
export const waitSides = ['ENQUEUE', 'DEQUEUE', 'DUE', 'TURN', 'EXTRACT'] as const;

/** Index of `ExecutorSnapshot.counters`; native/core/ledger/layout.h says what each is. */
export const counters = {
  batchesSampled: 0,
  batchesTaken: 1,
  batchesTrained: 2,
  batchesGivenBack: 3,
  stepsApplied: 4,
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
  cacheRows: 22,
  cacheFillNs: 23,
  workBytes: 24,
  batchesAhead: 25,
  evaluationRows: 26,
  heldTopologyBytes: 27,
  heldCacheBytes: 28,
  heldWorkspaceBytes: 29,
  heldModelBytes: 30,
  copiedInBytes: 31,
  copiedOutBytes: 32,
  busRows: 33,
  busBytes: 34,
  stagedRows: 35,
  stagedBytes: 36,
  registeredBytes: 37,
  deviceNs: 38,
  deviceExtractNs: 39,
  deviceEvalChunks: 40,
  deviceEvalNs: 41,
  deviceMarkNs: 42,
  deviceCopyNs: 43,
  historyLookUps: 44,
  historyHits: 45,
  historyAdmitted: 46,
  historyEvicted: 47,
  historyRows: 48,
  historyOverwritten: 49,
  prunedRows: 50,
  historyUpdateNs: 51,
  historyHits1: 52,
  historyHits2: 53,
  historyHits3: 54,
  historyHits4: 55,
  historyHits5: 56,
  historyHits6: 57,
  historyHits7: 58,
  historyHits8: 59,
  historyAge1: 60,
  historyAge2: 61,
  historyAge3: 62,
  historyAge4: 63,
  historyAge5: 64,
  historyAge6: 65,
  historyAge7: 66,
  historyAge8: 67,
  peerRows: 68,
  peerBytes: 69,
  rowWaitNs: 70,
  historyCompared: 71,
  historySimilar: 72,
  historyCosine: 73,
  historyLag: 74,
  cacheGivenUpRows: 75,
  besideBytes: 76,
} as const;

/** The epoch of trials, which never see a batch of the job. */
export const trialEpoch = 16777215;
/** A score that an evaluation ranks a node by, and what is known of the node. */
export const rankedEntryBytes = 5;
/** What a column comes to. */
export const rankedColumnBytes = 16;
/** Integers that a chunk of an evaluation counts for a class or a label. */
export const countsPerClass = 3;
/** Integers that a chunk of an evaluation of links counts. */
export const linkCounts = 6;

/** Index of the metrics of an evaluation. */
export const evaluationMetrics = ['ACCURACY', 'MICRO_F1', 'MACRO_F1', 'ROC_AUC', 'AVERAGE_PRECISION', 'MAE', 'RMSE', 'MRR', 'HITS_1', 'HITS_3', 'HITS_10', 'HITS_20', 'HITS_50', 'HITS_100'] as const;

/** An open segment; closed explicitly. */
export interface SegmentHandle {
  readonly open: unknown;
}

export type StalenessCompensation = 'PREDICT' | 'NONE';

export type Role = 'SAMPLER' | 'TRAINER' | 'STANDBY';

export type ExecutorPhase = 'REGISTERED' | 'LOADING' | 'RUNNING' | 'FINISHED' | 'FAILED' | 'REAPED';

export type SegmentCommand = 'RUN' | 'PAUSE';

export type StandbyPolicy = 'AUTO' | 'OFF' | 'ALWAYS';

export type WhichParameters = 'LAST' | 'BEST';

export type EvaluationKind = 'VALIDATION' | 'TEST_LAST' | 'TEST_BEST';

export type DecidingMetric =
  | 'ACCURACY'
  | 'MICRO_F1'
  | 'MACRO_F1'
  | 'ROC_AUC'
  | 'AVERAGE_PRECISION'
  | 'MAE'
  | 'RMSE'
  | 'MRR'
  | 'HITS_1'
  | 'HITS_3'
  | 'HITS_10'
  | 'HITS_20'
  | 'HITS_50'
  | 'HITS_100';

export interface SlotOptions {
  readonly batchesPerStep: number;
  readonly staleness: number;
  readonly numDevices: number;
  readonly batchesPerEpoch: number;
  readonly queueMaxBytes: number;
  /** 0 = unknown. */
  readonly recordBytes: number;
}

/** Of stored embeddings (core/history/job_history.h). */
export interface HistoryConfig {
  /** Of embeddings; 0: there is none. */
  readonly bytes: number;
  /** t_stale. */
  readonly staleVersions: number;
  readonly startVersion: number;
  /** Of an embedding. */
  readonly rowBytes: number;
  /** How many are kept. */
  readonly levels: number;
  readonly numNodes: number;
  /** Of a cached feature row. */
  readonly featureBytes: number;
  /** Feature rows in the same memory, as many as embeddings leave room for. */
  readonly cacheRows: number;
}

/** Of favoured neighbours, in sixteenths (core/draw/locality.h). */
export interface LocalityScale {
  readonly scale: number;
  readonly before: number;
  /** It changes no more. */
  readonly fixed: boolean;
}

export interface SegmentSpec {
  /** M. */
  readonly batchesPerEpoch: number;
  /** Only the first so many batches of each epoch; 0 = all. */
  readonly batchLimit: number;
  readonly epochs: number;
  readonly firstEpoch: number;
  /** G. */
  readonly batchesPerStep: number;
  /** S. */
  readonly staleness: number;
  readonly stalenessCompensation: StalenessCompensation;
  /** Batches are rows: no Sampler makes them. */
  readonly bornReady: boolean;
  readonly numSlots: number;
  readonly slotBytes: number;
  readonly queueMaxBytes: number;
  /** Of each slot's start: registered with devices, and in the budget from the beginning. */
  readonly registeredBytes: number;
  readonly parameterFloats: number;
  readonly optimizerFloats: number;
  readonly numDevices: number;
  readonly maxExecutors: number;
  readonly batchSize: number;
  readonly trainNodes: number;
  /** The validation nodes after every so-many-th epoch, and after the last one; 0 = only then. */
  readonly evaluateEveryEpochs: number;
  /** Of `evaluationSizes`; 0 = nothing is evaluated. */
  readonly evaluationChunks: number;
  /** Integers that the task counts in each chunk, beside its sums. */
  readonly chunkCounts: number;
  /** That chunks keep for a last phase of evaluations; 0 = there is none. */
  readonly keptBytes: number;
  readonly lowWater: number;
  /** Evaluations without improvement that end the job; 0 = never. */
  readonly stopPatience: number;
  /** Share by which a quality must exceed the reference (early_stop.h). */
  readonly stopMinDelta: number;
  readonly history: HistoryConfig;
  /** Of favoured neighbours in sixteenths: of every epoch, or the most. */
  readonly localityScale: number;
  /** 1: it starts at 16 and follows what extraction takes. */
  readonly localityAdapts: number;
}

/** The caller closes both. */
export interface CreatedSegment {
  readonly segment: SegmentHandle;
  readonly fd: number;
}

export interface ExecutorId {
  readonly row: number;
  readonly incarnation: number;
}

/** What a dead executor held. */
export interface ReclaimReport {
  /** Batches whose record must be made again. */
  readonly claimed: number;
  /** Batches whose record is delivered again. */
  readonly taken: number;
  /** Chunks of evaluations that are computed again. */
  readonly evaluations: number;
}

export interface StandbyEstimates {
  readonly samplerBatchNs: number;
  readonly trainerBatchNs: number;
  readonly standbyBatchNs: number;
  /** N_t. */
  readonly trainers: number;
}

export interface StageTimes {
  readonly totalNs: number;
  readonly count: number;
  /** By `stageBoundsSeconds`. */
  readonly buckets: readonly number[];
  readonly medianNs: number;
}

export interface Times {
  readonly totalNs: number;
  readonly count: number;
  /** By `waitBoundsSeconds`. */
  readonly buckets: readonly number[];
}

export interface ExecutorSnapshot {
  readonly row: number;
  readonly incarnation: number;
  readonly role: Role;
  readonly device: number;
  /** 0 until the process has entered. */
  readonly pid: number;
  /** Whether the device is its own now: a Sampler and a standby Trainer on one take turns. */
  readonly hasTurn: boolean;
  readonly phase: ExecutorPhase;
  readonly registeredNs: number;
  /** CLOCK_MONOTONIC; 0 = no sign of life yet. */
  readonly heartbeatNs: number;
  readonly stage: string;
  readonly progressNs: number;
  /** By `counters`. */
  readonly counters: readonly number[];
  /** By `stages`. */
  readonly stages: readonly StageTimes[];
  /** By `waitSides`. */
  readonly waits: readonly Times[];
}

/** What runs, and nothing is trained before it ends. */
export interface EvaluationProgress {
  readonly kind: EvaluationKind;
  /** Whose parameters they are. */
  readonly epoch: number;
  /** Rows of hidden layers and of the last one, of all chunks that are done. */
  readonly done: number;
  /** 0 = not known yet. */
  readonly total: number;
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
  readonly evaluation: EvaluationProgress | null;
  /** READY batches. */
  readonly queueDepth: number;
  readonly queueBytes: number;
  /** Batches that Samplers have in hand. */
  readonly claimed: number;
  /** Batches that Trainers have in hand. */
  readonly taken: number;
  readonly numSlots: number;
  readonly largestRecordBytes: number;
  readonly reclaimed: number;
  readonly standbyProfitNs: number;
  /** The abort's message; null unless aborted. */
  readonly aborted: string | null;
  readonly executors: readonly ExecutorSnapshot[];
}

export interface EvaluationRecord {
  /** By `evaluationMetrics`; NaN: the task has no such metric. */
  readonly metrics: readonly number[];
}

/** On the validation nodes after an epoch. */
export interface EvaluationReport {
  /** By `evaluationMetrics`; NaN: the task has no such metric. */
  readonly metrics: readonly number[];
  readonly bestEpoch: number;
  readonly endNs: number;
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
  /** Of all its batches, waited for or not. */
  readonly extractNs: number;
  readonly trainNs: number;
  /** In sixteenths; 16: nobody was favoured. */
  readonly localityScale: number;
  /** Of the epoch after it, where it adapts. */
  readonly nextScale: LocalityScale | null;
  readonly deviceBatches: readonly number[];
  /** Of the parameters after the epoch, padding left out; hex, empty until it is committed. */
  readonly parametersSha256: string;
  /** Committed, and evaluated if that is due. */
  readonly complete: boolean;
  readonly evaluation: EvaluationReport | null;
  /** On the test nodes with the epoch's parameters: at the end, for the last and the best. */
  readonly test: EvaluationRecord | null;
}

export interface ParametersCopy {
  /** The version (LAST) or the epoch (BEST) of the copy. */
  readonly at: number;
  readonly data: Float32Array;
}

/** Of a file from which a job goes on. */
export interface ImageFacts {
  readonly path: string;
  /** Committed groups. */
  readonly version: number;
  /** Committed, counted over the job. */
  readonly batches: number;
  /** Whose batches are all committed. */
  readonly epochs: number;
  /** Of the build that wrote it. */
  readonly buildId: string;
  readonly bytes: number;
  /** Of what precedes the digest at the file's end; hex. */
  readonly sha256: string;
}

export interface SegmentFunctions {
  segmentDefaultSlots(options: SlotOptions): number;
  segmentCreate(spec: SegmentSpec): CreatedSegment;
  /** Of one batch: only its evaluation is left to do, with these parameters. */
  segmentBeginTrained(segment: SegmentHandle, parameters: Float32Array): void;
  /** By which the first epochs were followed in an earlier attempt, where they adapt. */
  segmentRecordScales(segment: SegmentHandle, scales: readonly LocalityScale[]): void;
  segmentClose(segment: SegmentHandle): void;
  segmentRegister(segment: SegmentHandle, role: Role, device: number): ExecutorId;
  segmentSnapshot(segment: SegmentHandle): SegmentSnapshot;
  segmentEpoch(segment: SegmentHandle, epochIndex: number): SegmentEpoch;
  /** Frees what a dead executor held; it must have been reaped. */
  segmentReclaim(segment: SegmentHandle, incarnation: number): Promise<ReclaimReport>;
  segmentCommand(segment: SegmentHandle, command: SegmentCommand): void;
  segmentStandby(segment: SegmentHandle, policy: StandbyPolicy, armed: boolean, estimates: StandbyEstimates): void;
  segmentAbort(segment: SegmentHandle, message: string): void;
  segmentParameters(segment: SegmentHandle, which: WhichParameters): ParametersCopy;
  /** An image of the newest version, durable in `folder` or not at all. */
  segmentWriteImage(segment: SegmentHandle, folder: string, owner: string): Promise<ImageFacts>;
  /** Makes a segment without executors stand where the image was taken. */
  segmentLoadImage(segment: SegmentHandle, path: string, owner: string): Promise<ImageFacts>;
  /** Reads and hashes the whole file: for threads of the pool (src/pool). */
  imageParameters(path: string, which: WhichParameters): Float32Array;
  /** Makes a segment without executors begin with these parameters. */
  segmentBeginWith(segment: SegmentHandle, parameters: Float32Array): void;
  segmentBuildId(): string;
}
