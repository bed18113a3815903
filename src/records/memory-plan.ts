/** What a job is predicted to take of the host's memory, and what stays on disk because of it. */

/** MEMORY: a copy that all executors share; FILE: the dataset's own files, mapped. */
export type TopologyPlace = 'MEMORY' | 'FILE';

export interface MemoryPart {
  /** For people. */
  readonly name: string;
  readonly bytes: number;
  /** Taken only if batches are as large as they can be; else it surely is. */
  readonly isBound: boolean;
  /** Of the spec: what to change for less; empty: nothing. */
  readonly field: string;
  readonly remedy: string;
}

export interface MemoryPlan {
  readonly parts: readonly MemoryPart[];
  readonly surelyBytes: number;
  /** With all bounds. */
  readonly atMostBytes: number;
  readonly hostBytes: number;
  readonly topology: TopologyPlace;
  readonly topologyBytes: number;
  /**
   * Features are mapped and never counted: PAGE_CACHE where the kernel can keep all of them, DISK
   * where it cannot, and rows are read as batches want them.
   */
  readonly features: 'PAGE_CACHE' | 'DISK';
  readonly featuresBytes: number;
  /** Of pages that Samplers may ask for before they are wanted; 0: none. */
  readonly readAheadBytes: number;
  /** Of features, in memory of the host's that devices read by themselves. */
  readonly pinned: PinnedPlan;
  /** Of a job whose batches are rows; null for all others. */
  readonly rows: RowPlan | null;
  /** Of a job that predicts; null for all others. */
  readonly inference: InferencePlan | null;
}

/** What an inference computes and writes; bytes on the disk, each at most. */
export interface InferencePlan {
  readonly nodes: number;
  readonly chunks: number;
  readonly outputBytes: number;
  /** Of hidden rows, until its end. */
  readonly scratchBytes: number;
  /** Of a propagation of all nodes; 0: it needs none. */
  readonly propagationBytes: number;
}

export interface PinnedPlan {
  /** The hottest so many; 0: none. */
  readonly rows: number;
  readonly bytes: number;
  /** One sentence, for people. */
  readonly reason: string;
}

/** DEVICE: the device's memory; HOST: the host's; DISK: the files, as batches want them. */
export type RowTier = 'DEVICE' | 'HOST' | 'DISK';

export interface RowPlacement {
  readonly tier: RowTier;
  /** Splits that lie in the tier; the others are read in the host's memory. */
  readonly splits: 'ALL' | 'TRAIN';
  /** Rows that stay together as an epoch shuffles; 1: each is shuffled. */
  readonly chunk: number;
  /** One sentence. */
  readonly reason: string;
  /** Why not what comes before it in the table, in its order. */
  readonly refused: readonly string[];
}

/** Where rows of propagated features come from, and what would shuffle them best. */
export interface RowPlan extends RowPlacement {
  /** Of all rows of all hops that the model reads. */
  readonly bytes: number;
}
