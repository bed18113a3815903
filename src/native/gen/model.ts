// Made by "npm run build:contract" from the tables in native/node.

import type { DatasetCounts } from './dataset.ts';
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
  | 'HOGA';

export type Activation = 'RELU' | 'ELU' | 'LEAKY_RELU';

export type Normalization = 'NONE' | 'L2' | 'LAYER';

export type ModelVariant = 'NONE' | 'FUSED' | 'CONCAT' | 'GATED' | 'DAC24';

export interface ScriptSource {
  readonly path: string;
  readonly sha256: string;
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
  readonly inDim: number;
  readonly outDim: number;
  /** Of rows; else 0. */
  readonly numOperators: number;
  /** Of rows; else 0. */
  readonly numHops: number;
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

export interface ModelFunctions {
  /** Not for TORCHSCRIPT: `modelProbe`. */
  modelManifest(model: ModelOptions): ModelManifest;
  evaluationSizes(options: EvaluationSizesOptions): EvaluationSizes;
  /** Sparse memory, or with a folder an unnamed file in it; the caller closes it. */
  evaluationScratch(bytes: number, folder: string): number;
  /** Virtual bytes of the largest possible record. */
  recordSlotBytes(counts: DatasetCounts, sampling: SamplingOptions): number;
}
