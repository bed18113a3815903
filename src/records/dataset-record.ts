import type { DatasetTask } from '../spec/job-spec.ts';
import type { DatasetLinks } from '../spec/rules/rule.ts';
import type { ColumnStatistics } from '../spec/standardize.ts';

/** The nouns of a dataset as the daemon stores and shows them; data only. */

export type { DatasetLinks, DatasetTask };

export type DatasetState = 'IMPORTING' | 'READY' | 'FAILED';

/** What an import reads; docs/datasets.md says of each what it is told by. */
export const importFormats = [
  ...(['NPY', 'NPZ', 'CSV', 'PARQUET', 'OGB', 'GRAPHBOLT', 'EDGE_LIST'] as const),
  ...(['PYG', 'DGL', 'PLANETOID', 'GRAPHSAINT', 'GRAPHSAGE', 'NETWORKX'] as const),
  ...(['BENCHMARK_NPZ', 'OGB_LINKS', 'TYPED_NPY'] as const),
] as const;
export type ImportFormat = (typeof importFormats)[number];

/** Features of a graph whose source has none. */
export const madeFeatures = ['DEGREE', 'IDENTITY'] as const;
export type MadeFeatures = (typeof madeFeatures)[number];

/** A split of labelled nodes by chance; shares of the labelled nodes, the rest is for training. */
export interface RandomSplit {
  readonly validation: number;
  readonly test: number;
  readonly randomSeed: number;
}

/** What a user chooses of an import, whatever its format. */
export interface ImportChoices {
  /** Type of the stored features; null: the source's where it has one, else float32. */
  readonly featureDtype: FeatureDtype | null;
  /** Tables only: an edge stands in the row of its target, not in that of its source, too. */
  readonly directed: boolean;
  /** Arrays whose bytes stay as they are become links to the source's files, and are not copied. */
  readonly link: boolean;
  /** What is learnt of a node; null: what the labels tell (label-arrays.ts). */
  readonly task: DatasetTask | null;
  /** Which of several splits: the column of masks, the name of an OGB folder's; null: the only. */
  readonly split: string | null;
  /** Columns of tables that are not read. */
  readonly ignoredColumns: readonly string[];
  /** Null: what the format does by itself. */
  readonly madeFeatures: MadeFeatures | null;
  /** Null: what the format does by itself. */
  readonly randomSplit: RandomSplit | null;
  /** Each relation of several types is stored in the other direction, too; null: it is. */
  readonly reverse: boolean | null;
}

/** Element types of feature rows on disk, as NumPy names them. */
export const featureDtypes = ['float32', 'float16'] as const;
export type FeatureDtype = (typeof featureDtypes)[number];

/** Bytes of one feature. */
export const featureBytes: Readonly<Record<FeatureDtype, number>> = { float32: 4, float16: 2 };

/**
 * What is learnt of a node: its class; which of several labels it has; or numbers (targets).
 * `num_classes` counts classes, labels or targets.
 */
export const datasetTasks: readonly DatasetTask[] = ['CLASSIFICATION', 'MULTI_LABEL', 'REGRESSION'];

/** `dataset.json` of a dataset folder (docs/formats/dataset.md): what jobs learn from, no more. */
export interface DatasetManifest {
  readonly format: 'gnnd-dataset';
  readonly version: 1;
  readonly num_nodes: number;
  readonly num_edges: number;
  readonly num_features: number;
  readonly feature_dtype: FeatureDtype;
  /** Absent: CLASSIFICATION. */
  readonly task?: DatasetTask;
  readonly num_classes: number;
  readonly split: { readonly train: number; readonly val: number; readonly test: number };
  /** SHA-256 of the raw bytes of every array, by file name. */
  readonly sha256: Readonly<Record<string, string>>;
  readonly class_names?: readonly string[];
  /** Links of its own that jobs may learn; absent: it has none. */
  readonly links?: DatasetLinks;
}

/** A type of nodes of a graph that has several. */
export interface NodeType {
  readonly name: string;
  readonly num_nodes: number;
  /** Absent: it has none. */
  readonly features?: { readonly columns: number; readonly dtype: FeatureDtype };
  /** Absent: it has none, and so no splits. */
  readonly labels?: {
    readonly task: DatasetTask;
    readonly num_classes: number;
    readonly split: { readonly train: number; readonly val: number; readonly test: number };
    readonly class_names?: readonly string[];
  };
}

/** Edges from the nodes of one type to those of one, which learn along them. */
export interface Relation {
  readonly source: string;
  readonly name: string;
  readonly destination: string;
  readonly num_edges: number;
  /** Folder name of the relation whose edges it has in the other direction; absent: none. */
  readonly reverse_of?: string;
  /** Links of its own that jobs may learn; absent: it has none. */
  readonly links?: DatasetLinks;
}

/** Types and relations, each by name. */
export interface GraphSchema {
  readonly types: readonly NodeType[];
  readonly relations: readonly Relation[];
}

/** `dataset.json` of a dataset that has several types; `sha256` by paths below its folder. */
export interface TypedManifest extends GraphSchema {
  readonly format: 'gnnd-dataset';
  readonly version: 2;
  readonly sha256: Readonly<Record<string, string>>;
}

/** `import.json` of such a dataset: what that of one type has, as far as it is of the whole. */
export interface TypedStory extends Pick<ImportStory, 'name' | 'source' | 'notices'> {
  /** By type, of those that have features. */
  readonly columns: Readonly<Record<string, ColumnStatistics>>;
  /** By type, where the source says them. */
  readonly feature_names: Readonly<Record<string, readonly string[]>>;
}

/** `import.json` beside it: how it came here and what is in it, which its digest does not cover. */
export interface ImportStory {
  readonly name: string;
  /** Where it came from, for people. */
  readonly source: string;
  /** Said of the source: each edge is there in both directions. */
  readonly undirected: boolean;
  /** What the columns of features are called, one each; absent where the source does not say. */
  readonly feature_names?: readonly string[];
  /** What the columns of the features look like. */
  readonly columns: ColumnStatistics;
  /** What a user should know of the import, a sentence each. */
  readonly notices: readonly string[];
}

/** Features, and classes, labels or targets, that a model takes (native: manifest.cc). */
export const modelColumnsMax = 2 ** 18;

/** A dataset's row, as stored. Counts are 0 until READY. */
export interface DatasetRecord {
  readonly id: string;
  readonly state: DatasetState;
  /** Why, when FAILED; the notices of its import, a line each, when READY. */
  readonly message: string;
  /** SHA-256 of dataset.json. */
  readonly digest: string;
  readonly path: string;
  readonly numNodes: number;
  readonly numEdges: number;
  readonly numFeatures: number;
  readonly featureDtype: FeatureDtype;
  readonly task: DatasetTask;
  readonly numClasses: number;
  readonly numTrain: number;
  readonly numVal: number;
  readonly numTest: number;
  readonly bytes: number;
  readonly createAtMs: number;
  /**
   * Null: one type and one relation. Else counts of nodes, edges and splits are those of all
   * together, and those of features and classes are 0.
   */
  readonly schema: GraphSchema | null;
}

/** One thing wrong with a file, a line of it or a field. */
export interface Problem {
  readonly path: string;
  readonly description: string;
}

/** A long work that a call started. */
export interface OperationRecord {
  readonly id: string;
  readonly kind: 'ImportDataset' | 'ValidateDataset' | 'PropagateDataset';
  /** Dataset id. */
  readonly target: string;
  readonly done: boolean;
  /** 0 to 1. */
  readonly progress: number;
  readonly message: string;
  readonly createAtMs: number;
  readonly endAtMs: number | null;
  readonly error: OperationFailure | null;
  /** What the operation makes beside its target, e.g. propagations/{id}; empty: nothing. */
  readonly resource: string;
  /** Findings of a finished ValidateDataset; else null. */
  readonly validation: {
    readonly problems: readonly Problem[];
    readonly problemCount: number;
  } | null;
}

export interface OperationFailure {
  readonly reason: string;
  readonly message: string;
  readonly problems: readonly Problem[];
}
