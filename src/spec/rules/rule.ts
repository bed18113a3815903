import type { SchemaNames } from '../job-relations.ts';
import type { DatasetTask, JobSpecInput, MatrixLibrary, SpecDraft } from '../job-spec.ts';
import type { SpecChecker } from '../spec-checker.ts';
import type { ColumnStatistics } from '../standardize.ts';

/** Links of a dataset's own, negatives of each, and those of them that are edges of its graph. */
export interface DatasetLinks {
  readonly train: number;
  readonly val: number;
  readonly test: number;
  readonly negatives: { readonly val: number; readonly test: number };
  /** Pairs that are no links, one pool for all; absent: there are none. */
  readonly pool?: { readonly val: number; readonly test: number };
  readonly in_graph: { readonly val: number; readonly test: number };
  /** Whether those of training have weights; absent: they have none. */
  readonly weighted?: true;
  /** What is known of each: so many classes, labels or numbers; absent: that it is a link. */
  readonly labels?: { readonly task: DatasetTask; readonly count: number };
}

/** Kinds of files to load: a sampler is a shared object, a model a TorchScript module. */
export type PluginKind = 'SAMPLER' | 'MODEL';

/** Looks at a path: the file's digest, or why a job may not have it. */
export type PluginLookup = (
  path: string,
  kind: PluginKind,
) => { readonly sha256: string } | { readonly problem: string };

/** Facts of the host and the dataset that a spec is resolved with. */
export interface ResolveContext {
  /** All devices of the host, for example `cpu:0`. */
  readonly deviceNames: readonly string[];
  /** How many cores each of them has. */
  readonly deviceCores: readonly number[];
  /** Equal for devices that make the same bits; unset for those that do so within their kind. */
  readonly deviceBits?: ReadonlyMap<string, string>;
  /** Whether its cores have instructions for products of bfloat16; unset: they have not. */
  readonly hasBfloat16?: boolean;
  /** The fastest library that this host has. */
  readonly matrixLibrary: MatrixLibrary;
  /** Its types and relations; null where it has one of each, unset where that is not known. */
  readonly schema?: SchemaNames | null;
  /** Nodes of the dataset, of several types those of the target; null when it is not known. */
  readonly numNodes: number | null;
  /** Edges, likewise, as a graph stores them: an undirected one twice. */
  readonly numEdges: number | null;
  /** Whether its source says that they are; unset where that is not known. */
  readonly isUndirected?: boolean;
  /** Links of its own; null where it has none, unset where that is not known. */
  readonly links?: DatasetLinks | null;
  /** Training nodes, likewise. */
  readonly trainNodes: number | null;
  /** Validation nodes, likewise. */
  readonly valNodes: number | null;
  /** What the import counted of the columns of features; unset when that is not known. */
  readonly columns?: ColumnStatistics | null;
  /** Whether the dataset has edge weights; null when the dataset is not known. */
  readonly hasEdgeWeights: boolean | null;
  /**
   * What training.row_chunk had best be where rows are read, of a spec without violations. Unset
   * where that is not known: 1.
   */
  readonly bestRowChunk?: (spec: SpecDraft) => number;
  /** What is learnt of the dataset's nodes: so many classes, labels or numbers. Unset: unknown. */
  readonly targets?: {
    readonly task: DatasetTask;
    readonly count: number;
  };
  /** Looks at files that the spec wants loaded. */
  readonly pluginFile: PluginLookup;
}

/** Facts that a rule across fields may look at. */
export interface RuleFacts {
  readonly check: SpecChecker;
  /** The spec as the user sent it; the draft has defaults for unset fields, where it can. */
  readonly given: JobSpecInput;
  readonly context: ResolveContext;
}

/** Checks fields against each other, and fills in defaults that follow from others. */
export type Rule = (spec: SpecDraft, facts: RuleFacts) => void;
