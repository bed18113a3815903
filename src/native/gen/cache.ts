// Made by "npm run build:contract" from the tables in native/node.

import type { DatasetLocation } from './dataset.ts';
import type { SamplingOptions } from './sampler.ts';

export type CachePolicyName =
  | 'COMBINED'
  | 'PRESC'
  | 'PROBABILITY'
  | 'DEGREE'
  | 'RANDOM'
  | 'OPTIMAL';

/** A dataset, and how a job samples it. */
export interface FootprintOptions {
  readonly dataset: DatasetLocation;
  readonly sampling: SamplingOptions;
  readonly randomSeed: bigint;
  readonly topologyFd: number;
}

export interface RankOptions {
  readonly dataset: DatasetLocation;
  readonly sampling: SamplingOptions;
  readonly randomSeed: bigint;
  readonly topologyFd: number;
  readonly policy: CachePolicyName;
  /** K. */
  readonly presampleEpochs: number;
  /** Number of the job's epochs, for OPTIMAL. */
  readonly epochs: number;
  /** Receives the order: .npy, uint32 [2, nodes]: the node of each rank, the rank of each node. */
  readonly orderPath: string;
}

/** Consecutive nodes in the hot order. */
export interface RankedRun {
  readonly rows: number;
  /** Mean hotness that the policy gave them. */
  readonly hotness: number;
}

export interface Ranking {
  readonly presampleNs: number;
  readonly estimateNs: number;
  /** All nodes by rank; hotness never rises. */
  readonly runs: readonly RankedRun[];
}

export interface CacheReportOptions {
  readonly dataset: DatasetLocation;
  readonly sampling: SamplingOptions;
  readonly randomSeed: bigint;
  readonly topologyFd: number;
  /** Number of measured epochs, from 0. */
  readonly epochs: number;
  /** Each K that is to be shown. */
  readonly presampleEpochs: readonly number[];
  readonly ratios: readonly number[];
  /** Receives nodes.npy and offsets.npy; empty: no dump. */
  readonly dumpFolder: string;
}

export interface CacheCell {
  readonly ratio: number;
  readonly cacheRows: number;
  readonly hitRate: number;
  readonly bytesMoved: number;
}

export interface PolicyReport {
  readonly policy: CachePolicyName;
  /** 0 for policies that sample nothing in advance. */
  readonly presampleEpochs: number;
  readonly rankNs: number;
  readonly cells: readonly CacheCell[];
}

/** Rates are shares; rows and bytes are means per epoch. */
export interface CacheReport {
  readonly batchesPerEpoch: number;
  readonly inputRows: number;
  readonly inputBytes: number;
  readonly similarity: number;
  readonly epochNs: number;
  readonly policies: readonly PolicyReport[];
}

export interface HotCurveOptions {
  readonly dataset: DatasetLocation;
  readonly sampling: SamplingOptions;
  readonly randomSeed: bigint;
  readonly topologyFd: number;
  readonly policy: CachePolicyName;
  /** K. */
  readonly presampleEpochs: number;
  /** Number of measured epochs, from 0. */
  readonly epochs: number;
}

/** Consecutive nodes in the hot order. */
export interface NativeHotRun {
  readonly rows: number;
  /** Mean hotness that the policy gave them. */
  readonly hotness: number;
  /** Number of these nodes in each eighth of the ids. */
  readonly partRows: readonly number[];
  /** Reads of these in an epoch; a batch counts once per node. */
  readonly partReads: readonly number[];
}

export interface NativeHotCurve {
  readonly batchesPerEpoch: number;
  readonly runs: readonly NativeHotRun[];
}

/** Finds the nodes that locality-aware sampling favours in each hop. */
export interface FavourOptions {
  readonly dataset: DatasetLocation;
  readonly topologyFd: number;
  /** The file that `cacheRank` wrote. */
  readonly orderPath: string;
  /** Number of first ranks whose rows count as held. */
  readonly rows: number;
  /** Number of the sampler's hops. */
  readonly hops: number;
  /** Most favoured nodes of each hop before the last. */
  readonly hopNodes: number;
  /** Receives one byte per node, bit h for hop h: .npy, uint32, four nodes a word. */
  readonly favouredPath: string;
}

/** The hottest feature rows, for devices to read in the host's memory. */
export interface HostTierOptions {
  readonly dataset: DatasetLocation;
  /** The file that `cacheRank` wrote. */
  readonly orderPath: string;
  /** Number of ranks, from 0, whose rows are copied. */
  readonly rows: number;
  /** The descriptor from `hostTierReserve`. */
  readonly fd: number;
}

export interface CacheFunctions {
  /** Samples whole epochs: for child processes. */
  cacheRank(options: RankOptions): Promise<Ranking>;
  /** Likewise. */
  cacheReport(options: CacheReportOptions): Promise<CacheReport>;
  /** Likewise. */
  hotCurve(options: HotCurveOptions): Promise<NativeHotCurve>;
  /** Reads the graph: for child processes. */
  cacheFavour(options: FavourOptions): Promise<void>;
  /** That fit, at most all of them. */
  hostTierRows(budgetBytes: number, rowBytes: number, numNodes: number): number;
  /** An empty memfd, the caller's to close. */
  hostTierReserve(): number;
  /** Reads rows, so it is for child processes. */
  hostTierFill(options: HostTierOptions): Promise<void>;
}
