import type {
  CoreAddon,
  DatasetCounts,
  JobMemory,
  LinkOptions,
  ModelManifest,
  ModelOptions,
  SamplingOptions,
  SegmentSpec,
} from '../native/contract.ts';
import type { InferencePlan, MemoryPart, PinnedPlan, RowPlan } from '../records/memory-plan.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { learnsWalks } from '../spec/learnt.ts';

/** The questions that plans put to a kind of job. `workOf` (src/work) chooses the kind. */

/** A spec in native terms: options of the model and of sampling, and the sizes of both. */
export interface JobLayout {
  readonly model: ModelOptions;
  readonly sampling: SamplingOptions;
  /** The model's tensors; none for a TORCHSCRIPT model that was not probed yet. */
  readonly manifest: ModelManifest;
  /** Items of an epoch: nodes that become seeds, or pairs of nodes. */
  readonly items: number;
  /** Links that the job learns and is judged by; at most, until they were counted. */
  readonly links: LinkCounts;
  /** What evaluations judge. */
  readonly judged: Judged;
  /** Nodes of all types and their hidden rows in exact evaluations; null: there is one type. */
  readonly evaluated: EvaluatedRows | null;
  /** Number of batches of an epoch, M. */
  readonly batchesPerEpoch: number;
  /** Virtual bytes of a slot: the largest record the job can make. */
  readonly slotBytes: number;
  /** Bytes of its parts, as far as they follow from the job's shape. */
  readonly memory: JobMemory;
}

/** What an exact evaluation over several types holds. */
export interface EvaluatedRows {
  readonly nodes: number;
  /** Rows of two levels. */
  readonly scratchBytes: number;
}

/** Pairs of a job's graph; none where its items are nodes. */
export interface LinkCounts {
  readonly train: number;
  readonly val: number;
  readonly test: number;
  /** Pairs that are no links, of the pools of both evaluated sides. */
  readonly valPool: number;
  readonly testPool: number;
  /** Whether the graph has each edge in both directions, so that a pair is two of them. */
  readonly symmetric: boolean;
}

/** What evaluations judge a model by: nodes, or links. */
export interface Judged {
  readonly val: number;
  readonly test: number;
  /** Integers that a chunk counts beside its sums. */
  readonly chunkCounts: number;
  /** Bytes of the scores that are kept to rank them all; 0: they are not ranked. */
  readonly rankedBytes: number;
}

export const nothingJudged: Judged = { val: 0, test: 0, chunkCounts: 0, rankedBytes: 0 };

export type PairOptions = Omit<LinkOptions, 'count' | 'symmetric'>;

/** Those of jobs that learn links. */
export function learntPairs(spec: JobSpec): PairOptions {
  const { exclude, negatives, targets } = spec.links;
  const { method, count, known } = negatives;
  return {
    method,
    negatives: count,
    known,
    exclude,
    given: targets === 'DATASET' || learnsWalks(spec),
  };
}

export const noLinks: LinkCounts = {
  ...{ train: 0, val: 0, test: 0 },
  ...{ valPool: 0, testPool: 0, symmetric: false },
};

/** A job, and the crew for which a segment is made. */
export interface SegmentRequest {
  readonly spec: JobSpec;
  readonly counts: DatasetCounts;
  readonly layout: JobLayout;
  readonly deviceCount: number;
  readonly executorCount: number;
}

/** The parts of a spec that say what a batch takes. */
export type BatchSpec = Pick<
  JobSpec,
  'kind' | 'task' | 'links' | 'model' | 'propagation' | 'training' | 'sampling' | 'inference'
>;

/** The native functions that say how large things are. */
export type SizesAddon = Pick<
  CoreAddon,
  'modelManifest' | 'recordSlotBytes' | 'recordSlotBytesTyped' | 'topologyBytesTyped' | 'jobMemory'
>;

/** Sizes that follow from what a batch is: blocks of one or several types, or propagated rows. */
export interface Batches {
  /** Dimensions of the model's input, and what it is. */
  input(spec: BatchSpec, counts: DatasetCounts): ModelInputs;
  /** Fanouts of each relation; none where all have the usual ones. */
  relationFanouts(spec: JobSpec): SamplingOptions['relationFanouts'];
  /** Virtual bytes of a slot: the largest record the job can make. */
  slotBytes(native: SizesAddon, counts: DatasetCounts, sampling: SamplingOptions): number;
  /** Bytes of the parts of a job. */
  memory(native: SizesAddon, job: MemoryJob, sizes: PartSizes): JobMemory;
  evaluated(spec: JobSpec): EvaluatedRows | null;
  /** Slots of the job's queue. `recordBytes` is what a trial saw a record take; 0 = unknown. */
  queueSlots(
    native: Pick<CoreAddon, 'segmentDefaultSlots'>,
    request: QueueRequest,
    recordBytes: number,
  ): number;
  /** Whether batches wait for Samplers, and how much of a slot is registered with devices. */
  segment(
    request: SegmentRequest,
    numSlots: number,
    recordBytes: number,
  ): Pick<SegmentSpec, 'bornReady' | 'registeredBytes'>;
  /** Bytes of the topology; 0 where none is mapped. */
  topologyBytes(layout: JobLayout): number;
  /** Bytes of the features that batches gather; 0 where they read rows from mapped files. */
  featuresBytes(spec: JobSpec, counts: DatasetCounts): number;
  /** Most bytes of features that one batch reads. */
  batchBytes(spec: JobSpec, layout: JobLayout, counts: DatasetCounts): BatchBytes;
  /** Memory of one Trainer that predicts `nodes` nodes. */
  predictionBytes(spec: JobSpec, layout: JobLayout, facts: MemoryFacts, nodes: number): number;
  /** Size of a propagation of all nodes; 0 where none is read. */
  propagationBytes(spec: JobSpec, counts: DatasetCounts): number;
}

export type ModelInputs = Pick<ModelOptions, 'inDim' | 'numOperators' | 'numHops' | 'graph'>;

export interface BatchBytes {
  /** As they lie in their file. */
  readonly stored: number;
  /** As they are computed with. */
  readonly extracted: number;
}

export interface MemoryJob {
  readonly spec: BatchSpec;
  readonly counts: DatasetCounts;
  readonly model: ModelOptions;
}

export interface PartSizes {
  readonly parameterFloats: number;
  readonly slotBytes: number;
}

export type QueueRequest = Omit<SegmentRequest, 'executorCount'>;

/** What jobs of one kind do not have in common with others, as far as plans go. */
export interface PlanKind {
  readonly batches: Batches;
  /** Number of outputs of the model. */
  outDim(spec: BatchSpec, counts: DatasetCounts): number;
  /** How many items an epoch has. */
  items(spec: JobSpec, counts: DatasetCounts, links: LinkCounts): number;
  /** Links that the job has at most, before they were counted. */
  links(spec: JobSpec, counts: DatasetCounts): LinkCounts;
  /** How batches of links come about. */
  pairs(spec: JobSpec): PairOptions;
  judged(spec: JobSpec, counts: DatasetCounts, links: LinkCounts): Judged;
  /** How many processes of each role there are at most; standby Trainers are Trainers. */
  crew(spec: JobSpec): Crew;
  ownMemory(spec: JobSpec, layout: JobLayout, facts: MemoryFacts): OwnMemory;
  /** Feature rows in host memory that devices read, beside `otherBytes` of the job. */
  pinned(spec: JobSpec, layout: JobLayout, facts: MemoryFacts, otherBytes: number): PinnedPlan;
}

export interface Crew {
  readonly samplers: number;
  readonly trainers: number;
}

/** Memory that jobs of other kinds do not take. */
export interface OwnMemory {
  readonly parts: readonly MemoryPart[];
  readonly rows: RowPlan | null;
  readonly inference: InferencePlan | null;
}

export interface MemoryFacts {
  readonly native: SizesAddon &
    Pick<CoreAddon, 'segmentDefaultSlots' | 'evaluationSizes' | 'hostTierRows'>;
  readonly counts: DatasetCounts;
  readonly hostBytes: number;
  /** Memory of the job's smallest device with memory of its own; 0: no device has any. */
  readonly deviceBytes: number;
}
