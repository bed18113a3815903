// Made by "npm run build:contract" from the tables in native/node.

import type { DatasetLocation } from './dataset.ts';
import type { CacheOptions, DeviceOptions, LoopEnd, SamplingOptions, SeedOptions } from './sampler.ts';
import type { ExecutorId } from './segment.ts';

export interface LendOptions {
  readonly dataset: DatasetLocation;
  readonly sampling: SamplingOptions;
  readonly seeds: SeedOptions;
  readonly randomSeed: bigint;
  readonly segmentFd: number;
  readonly topologyFd: number;
  readonly executor: ExecutorId;
  readonly cache: CacheOptions;
  readonly device: DeviceOptions;
  /** Name in the abstract namespace, at which readers are awaited. */
  readonly socket: string;
}

export interface LenderFunctions {
  lenderRun(options: LendOptions): Promise<LoopEnd>;
}
