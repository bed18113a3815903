// Made by "npm run build:contract" from the tables in native/node.

import type { DatasetLocation } from './dataset.ts';
import type { ExecutorId } from './segment.ts';

export type Algorithm = 'KHOP_UNIFORM' | 'KHOP_WEIGHTED' | 'RANDOM_WALK' | 'LABOR' | 'KHOP_PLUGIN';

export type Expansion = 'ALL' | 'NEW';

export type EdgeWeights = 'NONE' | 'GCN' | 'VISITS' | 'INVERSE' | 'GIVEN' | 'SHARES';

export interface WalkOptions {
  readonly walks: number;
  readonly length: number;
  readonly restartProb: number;
}

export interface LaborOptions {
  readonly dependencyWindow: number;
}

export type LocalitySchedule = 'FIXED' | 'ADAPTIVE';

export interface LocalityOptions {
  readonly maxScale: number;
  readonly schedule: LocalitySchedule;
  readonly ratio: number;
  readonly hopNodes: number;
}

export interface PluginSource {
  readonly path: string;
  readonly options: string;
  readonly weights: boolean;
  readonly sha256: string;
}

export type LinkExclusion = 'BATCH' | 'BATCH_AFTER' | 'NONE';

export type NegativeMethod = 'UNIFORM' | 'DEGREE' | 'JOINT' | 'IN_BATCH';

export type KnownLinks = 'ALLOW' | 'MASK' | 'AVOID';

/** Batches of links; with a count of 0 their items are nodes. */
export interface LinkOptions {
  /** Of links_train.npy in the dataset's folder. */
  readonly count: number;
  readonly method: NegativeMethod;
  /** Of each pair, unless in-batch. */
  readonly negatives: number;
  readonly known: KnownLinks;
  readonly exclude: LinkExclusion;
  /** The graph stores each edge in both directions. */
  readonly symmetric: boolean;
  /** A list of the dataset's own, which need not be edges. */
  readonly given: boolean;
}

export interface SamplingOptions {
  readonly fanouts: readonly number[];
  readonly algorithm: Algorithm;
  readonly replace: boolean;
  readonly expansion: Expansion;
  readonly walk: WalkOptions;
  readonly labor: LaborOptions;
  readonly plugin: PluginSource;
  readonly locality: LocalityOptions;
  readonly batchSize: number;
  /** Those that records carry. */
  readonly edgeWeights: EdgeWeights;
  /** Of each relation, in place of fanouts; none: fanouts for all. */
  readonly relationFanouts: readonly (readonly number[])[];
  /** Records have room for hot ranks. */
  readonly hotRanks: boolean;
  readonly links: LinkOptions;
}

export interface RowPlace {
  /** 2^32 - 1: the host. */
  readonly device: number;
  /** Of the first rank that is dealt to it. */
  readonly row: number;
}

/** Ranks from `from` on and below `to`, dealt in rotation. */
export interface RowLine {
  readonly from: number;
  readonly to: number;
  readonly places: readonly RowPlace[];
}

/** Rows of the hot order, as one device reads them. */
export interface RowPlacement {
  /** The reader's, of the segment. */
  readonly device: number;
  /** Empty: a plain cache, and no other device. */
  readonly lines: readonly RowLine[];
  /** What a row of each device costs. */
  readonly rowNs: readonly number[];
  readonly hostRowNs: number;
}

export interface CacheOptions {
  /** Of `cacheRank`; empty: nothing is cached. */
  readonly orderPath: string;
  /** For a Sampler: of `cacheFavour`; empty: nobody is favoured. */
  readonly favouredPath: string;
  /** For a Sampler as far as any Trainer asks by rank, for a Trainer those of its cache. */
  readonly rows: number;
  /** The feature file is larger than the memory it may take. */
  readonly featuresOnDisk: boolean;
  /** For a Sampler: pages that it may ask for before they are wanted; 0: none. */
  readonly readAheadBytes: number;
  /** For a Trainer: of `hostTierFill`, for its device to read by itself; 0: none. */
  readonly hostTierFd: number;
  /** For a Trainer on a device: which rows it holds, and which others do. */
  readonly placement: RowPlacement;
}

export interface DeviceOptions {
  /** Empty: a CPU device. */
  readonly plugin: string;
  /** Of its memory; 0: what is free. */
  readonly budgetBytes: number;
}

export interface SeedOptions {
  /** An .npy file of int64, read by Samplers; empty: the training nodes. */
  readonly path: string;
  /** Of nodes in that file. */
  readonly count: number;
  /** Each epoch has an order of its own. */
  readonly shuffled: boolean;
}

export interface ExecutorOptions {
  readonly dataset: DatasetLocation;
  readonly sampling: SamplingOptions;
  readonly seeds: SeedOptions;
  readonly randomSeed: bigint;
  readonly segmentFd: number;
  readonly topologyFd: number;
  readonly executor: ExecutorId;
  readonly cache: CacheOptions;
  readonly device: DeviceOptions;
}

export type LoopEnd = 'COMPLETE' | 'STOPPED';

export interface SamplerFunctions {
  samplerRun(options: ExecutorOptions): Promise<LoopEnd>;
}
