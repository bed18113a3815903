// Made by "npm run build:contract" from the tables in native/node.

import type { DatasetCounts, GraphSchema } from './dataset.ts';
import type { SamplingOptions } from './sampler.ts';

export type ModelType =
  | 'GRAPHSAGE'
  | 'GCN'
  | 'GAT'
  | 'GATV2'
  | 'PINSAGE'
  | 'TORCHSCRIPT'
  | 'SGC'
  | 'SIGN'
  | 'HOGA'
  | 'GIN'
  | 'TRANSFORMER'
  | 'RSAGE'
  | 'RGCN'
  | 'HGT';

export type Activation = 'RELU' | 'ELU' | 'LEAKY_RELU';

export type Normalization = 'NONE' | 'L2' | 'LAYER';

export type ModelVariant = 'NONE' | 'FUSED' | 'CONCAT' | 'GATED' | 'DAC24';

export type Precision = 'AUTO' | 'FLOAT32' | 'BFLOAT16' | 'TF32';

export type LinkHead = 'DOT' | 'COSINE' | 'DISTMULT' | 'BILINEAR' | 'MLP';

export interface ScriptSource {
  readonly path: string;
  readonly sha256: string;
}

export interface ModelNodeType {
  readonly name: string;
  /** Columns of its input rows. */
  readonly inDim: number;
}

export interface ModelRelation {
  /** Index of a type. */
  readonly source: number;
  readonly name: string;
  /** Index of a type. */
  readonly destination: number;
}

/** Type 0 is that of the nodes whose rows the model gives. */
export interface ModelGraph {
  readonly types: readonly ModelNodeType[];
  readonly relations: readonly ModelRelation[];
}

export interface ModelOptions {
  readonly type: ModelType;
  readonly layers: number;
  readonly hiddenDim: number;
  readonly dropout: number;
  readonly inputDropout: number;
  readonly heads: number;
  readonly activation: Activation;
  readonly normalization: Normalization;
  readonly residual: boolean;
  readonly attentionDropout: number;
  readonly script: ScriptSource;
  readonly variant: ModelVariant;
  readonly hopLayers: number;
  readonly hopHiddenDim: number;
  readonly bases: number;
  readonly inDim: number;
  readonly outDim: number;
  /** Over pairs of rows; null: nodes are learnt. */
  readonly head: LinkHead | null;
  /** Of each pair. */
  readonly headOutputs: number;
  /** Of rows; else 0. */
  readonly numOperators: number;
  /** Of rows; else 0. */
  readonly numHops: number;
  /** Of models over relations. */
  readonly graph: ModelGraph;
}

export interface ParameterTensor {
  readonly name: string;
  /** As PyTorch has it. */
  readonly shape: readonly number[];
  /** In floats. */
  readonly offset: number;
}

export interface ModelManifest {
  readonly tensors: readonly ParameterTensor[];
  /** Of a TORCHSCRIPT: columns that each layer gives. */
  readonly widths: readonly number[];
  /** Length of the parameter vector, padding included. */
  readonly numFloats: number;
}

export interface EvaluationSizesOptions {
  readonly counts: DatasetCounts;
  readonly model: ModelOptions;
  /** On samples, not exact. */
  readonly sampled: boolean;
  /** With a phase that ranks nodes. */
  readonly ranked: boolean;
  /** An inference, which may have more pairs than nodes. */
  readonly asked: boolean;
  /** Of the model's manifest. */
  readonly widths: readonly number[];
}

export interface EvaluationSizes {
  /** At most, of one evaluation. */
  readonly chunks: number;
  /** Of hidden rows and what is made of them, if all are touched. */
  readonly scratchBytes: number;
  /** More for the scratch, to keep sums of features from one evaluation to the next. */
  readonly keptBytes: number;
  /** Private to each Trainer, beside what batches take. */
  readonly workBytes: number;
}

export interface JobMemoryOptions {
  readonly counts: DatasetCounts;
  readonly model: ModelOptions;
  readonly precision: Precision;
  readonly batchSize: number;
  readonly parameterFloats: number;
  /** The largest record; 0 where batches have none. */
  readonly slotBytes: number;
  /** A value of a propagation's rows, as they are stored. */
  readonly rowValueBytes: number;
  /** Neighbours are drawn by edge weight. */
  readonly alias: boolean;
}

export interface JobMemory {
  /** The graph, where it is held in memory. */
  readonly topologyBytes: number;
  /** What a Sampler takes of a device that has memory of its own. */
  readonly samplerDeviceBytes: number;
  /** A hidden row as history keeps it. */
  readonly historyRowBytes: number;
  /** What is on its way to a device in an exact evaluation, and its numbering. */
  readonly evaluationPartBytes: number;
  /** What a Trainer of a model over rows computes with, in the host's memory. */
  readonly rowWorkBytes: number;
  /** The same in a device's memory, beside rows that lie there. */
  readonly rowDeviceBytes: number;
  /** Batches of rows that are read ahead from disk. */
  readonly rowStagedBytes: number;
  /** The inputs of a chunk of an evaluation of rows. */
  readonly rowChunkBytes: number;
}

export interface ModelFunctions {
  /** Not for TORCHSCRIPT: `modelProbe`. */
  modelManifest(model: ModelOptions): ModelManifest;
  evaluationSizes(options: EvaluationSizesOptions): EvaluationSizes;
  /** Most that the parts of a job take, by its shape alone. */
  jobMemory(options: JobMemoryOptions): JobMemory;
  topologyBytes(counts: DatasetCounts, alias: boolean): number;
  /** Of all relations. */
  topologyBytesTyped(schema: GraphSchema): number;
  /** Sparse memory, or with a folder an unnamed file in it; the caller closes it. */
  evaluationScratch(bytes: number, folder: string): number;
  /** Virtual bytes of the largest possible record. */
  recordSlotBytes(counts: DatasetCounts, sampling: SamplingOptions): number;
  /** The same of several types; seeds are nodes of the first. */
  recordSlotBytesTyped(schema: GraphSchema, sampling: SamplingOptions): number;
}
