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
  /** Of the job, for OPTIMAL. */
  readonly epochs: number;
  /** Receives the order: .npy, uint32 [2, nodes]: the node of each rank, the rank of each node. */
  readonly orderPath: string;
}

/** Neighbours in the hot order. */
export interface RankedRun {
  readonly rows: number;
  /** What the policy gave each, mean. */
  readonly hotness: number;
}

export interface Ranking {
  readonly presampleNs: number;
  readonly estimateNs: number;
  /** By rank, all nodes; their hotness never rises. */
  readonly runs: readonly RankedRun[];
}

export interface CacheReportOptions {
  readonly dataset: DatasetLocation;
  readonly sampling: SamplingOptions;
  readonly randomSeed: bigint;
  readonly topologyFd: number;
  /** Measured, from 0. */
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
  /** Measured, from 0. */
  readonly epochs: number;
}

/** Neighbours in the hot order. */
export interface NativeHotRun {
  readonly rows: number;
  /** What the policy gave each, mean. */
  readonly hotness: number;
  /** Of the nodes of each eighth of the ids. */
  readonly partRows: readonly number[];
  /** Reads of these by an epoch, each batch for itself. */
  readonly partReads: readonly number[];
}

export interface NativeHotCurve {
  readonly batchesPerEpoch: number;
  readonly runs: readonly NativeHotRun[];
}

/** Whom locality-aware sampling favours, by hop. */
export interface FavourOptions {
  readonly dataset: DatasetLocation;
  readonly topologyFd: number;
  /** Of `cacheRank`. */
  readonly orderPath: string;
  /** Of the first ranks: those that count as held. */
  readonly rows: number;
  /** Of the sampler. */
  readonly hops: number;
  /** Of each hop before the last, at most. */
  readonly hopNodes: number;
  /** Receives a byte a node, bit h that of hop h: .npy, uint32, four nodes a word. */
  readonly favouredPath: string;
}

/** The hottest feature rows, for devices to read in the host's memory. */
export interface HostTierOptions {
  readonly dataset: DatasetLocation;
  /** Of `cacheRank`. */
  readonly orderPath: string;
  /** Of the first ranks. */
  readonly rows: number;
  /** Of `hostTierReserve`. */
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
