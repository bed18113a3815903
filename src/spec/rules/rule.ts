import type { DatasetTask, JobSpecInput, MatrixLibrary, SpecDraft } from '../job-spec.ts';
import type { SpecChecker } from '../spec-checker.ts';

/** What a file is loaded as: a sampler is a shared object, a model a TorchScript module. */
export type PluginKind = 'SAMPLER' | 'MODEL';

/** Looks at a path: the file's digest, or why a job may not have it. */
export type PluginLookup = (
  path: string,
  kind: PluginKind,
) => { readonly sha256: string } | { readonly problem: string };

/** What the host and the dataset add to a spec. */
export interface ResolveContext {
  /** All devices of the host, for example `cpu:0`. */
  readonly deviceNames: readonly string[];
  /** How many cores each of them has. */
  readonly deviceCores: readonly number[];
  /** Equal of devices that make the same bits; unset of those that do so within their kind. */
  readonly deviceBits?: ReadonlyMap<string, string>;
  /** The fastest that this host has. */
  readonly matrixLibrary: MatrixLibrary;
  /** Nodes of the dataset; null when the dataset is not known. */
  readonly numNodes: number | null;
  /** Training nodes, likewise. */
  readonly trainNodes: number | null;
  /** Validation nodes, likewise. */
  readonly valNodes: number | null;
  /** Whether the dataset has edge weights; null when the dataset is not known. */
  readonly hasEdgeWeights: boolean | null;
  /**
   * What training.row_chunk had best be where rows are read, of a spec without violations. Unset
   * where that is not known: 1.
   */
  readonly bestRowChunk?: (spec: SpecDraft) => number;
  /** What is learnt of its nodes: so many classes, labels or numbers. Unset: not known. */
  readonly targets?: {
    readonly task: DatasetTask;
    readonly count: number;
  };
  /** Looks at files that the spec wants loaded. */
  readonly pluginFile: PluginLookup;
}

/** What a rule across fields may look at. */
export interface RuleFacts {
  readonly check: SpecChecker;
  /** As the user sent it: what is unset there has been filled in in the draft, where it can be. */
  readonly given: JobSpecInput;
  readonly context: ResolveContext;
}

/** Checks fields against each other, and fills in defaults that follow from others. */
export type Rule = (spec: SpecDraft, facts: RuleFacts) => void;
