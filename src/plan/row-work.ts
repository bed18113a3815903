import type { JobSpec } from '../spec/job-spec.ts';
import { readTokens } from './row-sizes.ts';

/**
 * What a Trainer of a model over rows has in memory while it computes, at most: every tensor of a
 * pass (native/train/layers/row_model.cc) and its gradient, none given back before the end. In
 * place of a trial run, which would take a propagation that is not there yet when a job is created.
 * Shown to bound real runs by test/e2e/row-memory.test.ts.
 */

export interface RowShape {
  readonly numFeatures: number;
  readonly numClasses: number;
  readonly numFloats: number;
  /** Of each kind that is evaluated. */
  readonly val: number;
  readonly test: number;
}

type Spec = Pick<JobSpec, 'model' | 'propagation' | 'training'>;

/** As native/train/input/row_files.h has: rows of a chunk of an evaluation. */
const evaluatedRows = 4096;
/** As native/core/executor has buffers of extraction. */
const extractBuffers = 2;
/** Workspaces grow in whole pages of 2 MiB, by half at a time, and allocators keep some back. */
const growth = 1.5;
const smallParts = 16 * 2 ** 20;

/** Bytes of one Trainer: rows that were read, a batch's or an evaluation's tensors, gradients. */
export function rowWorkBytes(spec: Spec, shape: RowShape): number {
  const { batchSize } = spec.training;
  const evaluated = Math.min(evaluatedRows, Math.max(shape.val, shape.test));
  const read = readTokens(spec) * shape.numFeatures;
  const floats = floatsPerRow(spec, shape);
  const rows = (extractBuffers * batchSize + evaluated) * read;
  // An evaluation has no gradients, and the memory of batches.
  const work = Math.max(batchSize * floats, evaluated * (floats / 2));
  return Math.ceil(4 * (rows + growth * work + 2 * shape.numFloats)) + smallParts;
}

/** Of a batch's tensors and their gradients. */
function floatsPerRow({ model, propagation }: Spec, { numFeatures, numClasses }: RowShape): number {
  const tokens = readTokens({ model, propagation });
  const { layers, hiddenDim: hidden, heads } = model;
  // Side by side, and with dropout a mask and what it leaves.
  const input = tokens * numFeatures * (model.inputDropout > 0 ? 3 : 1);
  const logits = 4 * numClasses;
  // A product, its normalisation, what dropout leaves of it, and the same backward.
  const perceptron = 6 * hidden * (layers - 1);
  const attention = 4 * heads * tokens * tokens;
  switch (model.type) {
    case 'SGC':
      return input + logits;
    case 'SIGN': {
      if (model.variant !== 'CONCAT') return input + perceptron + logits;
      // Columns of each hop apart, their products, and these side by side.
      const projected = 2 * tokens * numFeatures + 12 * hidden * (propagation.hops + 1);
      return input + projected + perceptron + logits;
    }
    default: {
      const width = tokens * hidden;
      if (model.variant === 'DAC24') {
        return input + 30 * width * (layers + 1) + attention * layers + 10 * hidden + logits;
      }
      const perceptrons =
        12 * tokens * Math.max(hidden, model.hopHiddenDim) * (model.hopLayers + 1);
      const read = tokens * numFeatures + 24 * width;
      return input + perceptrons + 36 * width * layers + read + attention * (layers + 1) + logits;
    }
  }
}
