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
}
