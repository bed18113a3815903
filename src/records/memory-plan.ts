/** What a job is predicted to take of the host's memory, and what stays on disk because of it. */

/** MEMORY: a copy that all executors share; FILE: the dataset's own files, mapped. */
export type TopologyPlace = 'MEMORY' | 'FILE';

export interface MemoryPart {
  /** Name for people. */
  readonly name: string;
  readonly bytes: number;
  /** True: taken only if batches are as large as they can be; false: surely taken. */
  readonly isBound: boolean;
  /** Field of the spec to change in order to need less; empty: there is none. */
  readonly field: string;
  readonly remedy: string;
}

export interface MemoryPlan {
  readonly parts: readonly MemoryPart[];
  readonly surelyBytes: number;
  /** The sum of all parts, also of those that are only bounds. */
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
  /** Memory for pages that Samplers may ask for before they are wanted; 0: none. */
  readonly readAheadBytes: number;
  /** Feature rows in host memory that devices read by themselves. */
  readonly pinned: PinnedPlan;
  /** Plan of a job whose batches are rows; null for all others. */
  readonly rows: RowPlan | null;
  /** Plan of a job that predicts; null for all others. */
  readonly inference: InferencePlan | null;
}

/** What an inference computes and writes; bytes on the disk, each at most. */
export interface InferencePlan {
  /** 0: pairs of a file, which are counted when the job starts, are scored. */
  readonly nodes: number;
  readonly chunks: number;
  readonly outputBytes: number;
  /** Size of the file of hidden rows, which is kept until the inference ends. */
  readonly scratchBytes: number;
  /** Size of a propagation of all nodes; 0: the inference needs none. */
  readonly propagationBytes: number;
}

export interface PinnedPlan {
  /** Number of the hottest rows that are held there; 0: none. */
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
  /** Size of all rows of all hops that the model reads. */
  readonly bytes: number;
}
