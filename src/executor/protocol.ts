import type {
  DatasetCheck,
  ImportOutcome,
  SourceImport,
  Validation,
} from '../datasets/data-tasks.ts';
import type { PairsFound, PairsOptions } from '../datasets/list-pairs.ts';
import type {
  CacheReport,
  CacheReportOptions,
  DatasetLocation,
  ExecutorOptions,
  FavourOptions,
  HostTierOptions,
  HotCurveOptions,
  LendOptions,
  LoopEnd,
  MeanRowsOptions,
  MessageGraphCounts,
  MessageGraphOptions,
  ModelManifest,
  NativeCode,
  NativeHotCurve,
  PredictOptions,
  ProbeOptions,
  PropagateOptions,
  PropagateReport,
  Ranking,
  RankOptions,
  TopologyOptions,
  TrainerOptions,
} from '../native/contract.ts';
import type { DigestOptions } from './digest-files.ts';
import type { TargetsFound, TargetsOptions } from './list-targets.ts';
import type { Published, PublishOptions } from './publish-predictions.ts';

/**
 * What the daemon and an executor say to each other over their channel: few messages, one start and
 * one end. Everything frequent (progress, counters, commands) is in the job segment.
 */

/** Changes with every change of a message. */
export const protocolVersion = 14;

/** Descriptors an executor inherits; a task has no segment, but may have an output. */
export const segmentFd = 3;
export const outputFd = 3;
export const topologyFd = 4;
export const scratchFd = 5;
export const hostTierFd = 6;

/** Makes what executors share of a dataset. */
export interface LoadOptions {
  readonly location: DatasetLocation;
  /** Make the location's derived features first. */
  readonly standardize: boolean;
  /** By the moments in this file; empty: by their own. */
  readonly momentsPath: string;
  /** A reserved memfd, to be filled; null: none is. */
  readonly topologyFd: number | null;
  readonly topology: TopologyOptions;
}

/** Standardises rows by their own moments, which are written beside the output. */
export interface StandardizeOptions {
  readonly input: string;
  readonly output: string;
}

/** Makes the graph and the links of a job that learns links. */
export interface LinksOptions {
  readonly dataset: DatasetLocation;
  readonly split: MessageGraphOptions;
  /** An empty folder, to be filled. */
  readonly folder: string;
}

/** Work outside a job's crew: one function, one answer. */
export type Task =
  | { readonly role: 'PROBE'; readonly options: ProbeOptions }
  | { readonly role: 'RANK'; readonly options: RankOptions }
  | { readonly role: 'FAVOUR'; readonly options: FavourOptions }
  | { readonly role: 'CACHE_REPORT'; readonly options: CacheReportOptions }
  | { readonly role: 'HOST_TIER'; readonly options: HostTierOptions }
  | { readonly role: 'HOT_CURVE'; readonly options: HotCurveOptions }
  | { readonly role: 'PREDICT'; readonly options: PredictOptions }
  | { readonly role: 'LOAD'; readonly options: LoadOptions }
  | { readonly role: 'AVERAGE'; readonly options: MeanRowsOptions }
  | { readonly role: 'STANDARDIZE'; readonly options: StandardizeOptions }
  | { readonly role: 'SPLIT_LINKS'; readonly options: LinksOptions }
  | { readonly role: 'IMPORT'; readonly options: SourceImport }
  | { readonly role: 'CHECK'; readonly options: DatasetCheck }
  | { readonly role: 'PROPAGATE'; readonly options: PropagateOptions }
  | { readonly role: 'DIGEST'; readonly options: DigestOptions }
  | { readonly role: 'TARGETS'; readonly options: TargetsOptions }
  | { readonly role: 'PAIRS'; readonly options: PairsOptions }
  | { readonly role: 'PUBLISH'; readonly options: PublishOptions };

export type TaskAnswer =
  | { readonly role: 'PROBE'; readonly value: ModelManifest }
  | { readonly role: 'RANK'; readonly value: Ranking }
  | { readonly role: 'CACHE_REPORT'; readonly value: CacheReport }
  | { readonly role: 'HOT_CURVE'; readonly value: NativeHotCurve }
  | { readonly role: 'PREDICT' | 'LOAD' | 'HOST_TIER' | 'FAVOUR' | 'AVERAGE' | 'STANDARDIZE' }
  | { readonly role: 'SPLIT_LINKS'; readonly value: MessageGraphCounts }
  | { readonly role: 'IMPORT'; readonly value: ImportOutcome }
  | { readonly role: 'CHECK'; readonly value: Validation }
  | { readonly role: 'PROPAGATE'; readonly value: PropagateReport }
  | { readonly role: 'DIGEST'; readonly value: readonly string[] }
  | { readonly role: 'TARGETS'; readonly value: TargetsFound }
  | { readonly role: 'PAIRS'; readonly value: PairsFound }
  | { readonly role: 'PUBLISH'; readonly value: Published };

/** Down, once, as the first message. */
export type StartMessage = {
  readonly kind: 'start';
  readonly version: typeof protocolVersion;
  readonly cores: readonly number[];
} & (
  | { readonly role: 'SAMPLER'; readonly options: ExecutorOptions }
  | { readonly role: 'TRAINER' | 'STANDBY'; readonly options: TrainerOptions }
  /** A Trainer that lends batches to a user's process. */
  | { readonly role: 'LENDER'; readonly options: LendOptions }
  | Task
);

/** Up, once, as the last message. */
export type EndMessage =
  | { readonly kind: 'ended'; readonly end: LoopEnd }
  | { readonly kind: 'answered'; readonly answer: TaskAnswer }
  | { readonly kind: 'failed'; readonly code: NativeCode; readonly message: string };

/** Up, now and then, from a task that can tell. */
export interface ProgressMessage {
  readonly kind: 'progress';
  /** 0 to 1. */
  readonly share: number;
  /** What it is doing, for people. */
  readonly message: string;
}

/** Narrows what arrived on the channel; null for anything that is not a ProgressMessage. */
export function progressOf(value: unknown): ProgressMessage | null {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return null;
  return value.kind === 'progress' ? (value as ProgressMessage) : null;
}

/** Narrows what arrived on the channel; null for anything that is not an EndMessage. */
export function endMessageOf(value: unknown): EndMessage | null {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return null;
  const { kind } = value;
  return kind === 'ended' || kind === 'answered' || kind === 'failed'
    ? (value as EndMessage)
    : null;
}

/** Narrows what arrived on the channel; null for anything that is not a StartMessage of ours. */
export function startMessageOf(value: unknown): StartMessage | null {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return null;
  const message = value as StartMessage;
  return message.kind === 'start' && message.version === protocolVersion ? message : null;
}
