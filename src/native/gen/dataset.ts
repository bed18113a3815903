// Made by "npm run build:contract" from the tables in native/node.

export type FeatureDtype = 'float32' | 'float16';

export type DatasetTask = 'CLASSIFICATION' | 'MULTI_LABEL' | 'REGRESSION';

export interface DatasetCounts {
  readonly numNodes: number;
  /** CSC entries. */
  readonly numEdges: number;
  readonly numFeatures: number;
  /** Classes; labels that a node may have; targets that it has. */
  readonly numClasses: number;
  readonly train: number;
  readonly val: number;
  readonly test: number;
  /** Of features.npy; derived features are float32. */
  readonly featureDtype: FeatureDtype;
  readonly task: DatasetTask;
}

/** A type of nodes; counts as those of a graph of one type. */
export interface NodeTypeCounts {
  readonly name: string;
  readonly numNodes: number;
  /** 0: it has none. */
  readonly numFeatures: number;
  readonly featureDtype: FeatureDtype;
  readonly labelled: boolean;
  readonly task: DatasetTask;
  readonly numClasses: number;
  readonly train: number;
  readonly val: number;
  readonly test: number;
}

/** Edges from nodes of one type to nodes of one. */
export interface RelationCounts {
  /** Index of a type. */
  readonly source: number;
  readonly name: string;
  /** Index of a type. */
  readonly destination: number;
  readonly numEdges: number;
}

export interface GraphSchema {
  readonly types: readonly NodeTypeCounts[];
  readonly relations: readonly RelationCounts[];
}

export interface DatasetLocation {
  readonly folder: string;
  readonly counts: DatasetCounts;
  /** Empty: features.npy of the folder. */
  readonly featuresPath: string;
  /** Of a job over several types: those that it takes, its own type first, whose nodes and splits `counts` has. Without types: a graph of one. */
  readonly schema: GraphSchema;
  /** The file of each type's input rows; empty: features.npy of its folder. */
  readonly typeRows: readonly string[];
}

export interface DatasetProblem {
  readonly path: string;
  readonly description: string;
}

export interface DatasetValidation {
  /** The first ones. */
  readonly problems: readonly DatasetProblem[];
  /** All of them. */
  readonly problemCount: number;
}

/** Input rows of a type without features: means over a relation. */
export interface MeanRowsOptions {
  readonly folder: string;
  readonly schema: GraphSchema;
  /** Index in the schema; to the type. */
  readonly relation: number;
  /** Rows of the relation's source type; empty: features.npy of its folder. */
  readonly sourceRows: string;
  /** A path, in an existing folder. */
  readonly output: string;
  readonly threads: number;
}

export type TopologyPlace = 'MEMORY' | 'FILE';

export interface TopologyOptions {
  /** FILE: it stays in the dataset's files. */
  readonly place: TopologyPlace;
  /** To sample by edge weight; in MEMORY only. */
  readonly alias: boolean;
}

export type ElementRule = 'ANY' | 'NODES' | 'FINITE_FLOAT32' | 'FINITE_FLOAT16';

export interface ArrayCopyOptions {
  readonly source: string;
  /** Offset of the first element in the source. */
  readonly sourceAt: number;
  readonly bytes: number;
  /** Open for writing until the last step; -1: nothing is written. */
  readonly targetFd: number;
  readonly targetAt: number;
  readonly rule: ElementRule;
  /** For the rule NODES. */
  readonly numNodes: number;
}

export interface ArrayCopied {
  /** Digest of the elements. */
  readonly sha256: string;
  /** Every element meets the rule. */
  readonly clean: boolean;
}

/** Walks whose nodes are pairs to learn. */
export interface PositiveWalks {
  /** 0: links are learnt. */
  readonly perNode: number;
  /** Steps. */
  readonly length: number;
  /** Steps between the nodes of a pair, at most. */
  readonly window: number;
  /** Of the walks alone. */
  readonly randomSeed: bigint;
}

export interface MessageGraphOptions {
  /** Share of links for validation. */
  readonly validation: number;
  /** Share of links for the test. */
  readonly test: number;
  /** Of the split alone. */
  readonly randomSeed: bigint;
  /** Validation links stay in the graph. */
  readonly keepVal: boolean;
  /** The dataset has lists of its own: nothing is split, and every edge stays. */
  readonly given: boolean;
  /** In place of training links. */
  readonly walks: PositiveWalks;
}

/** A graph that lacks some links, and the lists of all links. */
export interface MessageGraphCounts {
  /** That are left. */
  readonly numEdges: number;
  /** Every edge has its reverse, and both are one link. */
  readonly symmetric: boolean;
  /** Links. */
  readonly train: number;
  /** Links. */
  readonly val: number;
  /** Links. */
  readonly test: number;
  /** Pairs that are none, of given lists. */
  readonly valPool: number;
  /** Likewise. */
  readonly testPool: number;
  /** Of given lists: validation and test links that are edges. */
  readonly overlap: number;
}

/** A copy under way; closed when nothing refers to it. */
export type ArrayCopyHandle = { readonly arrayCopy: unique symbol };

export interface DatasetFunctions {
  /** `checked` names files whose elements were checked as they were copied. */
  datasetValidate(folder: string, counts: DatasetCounts, checked: readonly string[]): Promise<DatasetValidation>;
  /** The same of several types; files are named from the dataset's folder on. */
  datasetValidateTyped(folder: string, schema: GraphSchema, checked: readonly string[]): Promise<DatasetValidation>;
  arrayCopyOpen(options: ArrayCopyOptions): ArrayCopyHandle;
  /** The next so many; false once all is done. */
  arrayCopyStep(copy: ArrayCopyHandle, bytes: number): Promise<boolean>;
  /** After the last step, once. */
  arrayCopyFinish(copy: ArrayCopyHandle): ArrayCopied;
  /** Number of the nodes that no element named (rule NODES). */
  arrayCopyUnnamed(copy: ArrayCopyHandle, nodes: readonly number[]): number;
  datasetStandardize(inputPath: string, outputPath: string, momentsPath: string): Promise<void>;
  /** Writes float32 rows of the relation's destinations, for child processes. */
  datasetAverage(options: MeanRowsOptions): Promise<void>;
  /** An empty memfd, the caller's to close. */
  topologyReserve(): number;
  /** Seals it for all Samplers of the host. */
  topologyFill(fd: number, location: DatasetLocation, options: TopologyOptions): Promise<void>;
  /** Writes to an empty folder; reads the graph, so it is for child processes. */
  messageGraphMake(location: DatasetLocation, options: MessageGraphOptions, folder: string): Promise<MessageGraphCounts>;
}
