// Made by "npm run build:contract" from the tables in native/node.

import type { SamplingOptions } from '../job-options.ts';
import type { DatasetLocation } from './dataset.ts';
import type { ExecutorId } from './segment.ts';

export interface CacheOptions {
  /** Of `cacheRank`; empty: nothing is cached. */
  readonly orderPath: string;
  /** For a Sampler those of the largest cache, for a Trainer those of its own. */
  readonly rows: number;
  /** The feature file is larger than the memory it may take. */
  readonly featuresOnDisk: boolean;
}

export interface ExecutorOptions {
  readonly dataset: DatasetLocation;
  readonly sampling: SamplingOptions;
  readonly randomSeed: bigint;
  readonly segmentFd: number;
  readonly topologyFd: number;
  readonly executor: ExecutorId;
  readonly cache: CacheOptions;
}

export type LoopEnd = 'COMPLETE' | 'STOPPED';

export interface SamplerFunctions {
  samplerRun(options: ExecutorOptions): Promise<LoopEnd>;
}
