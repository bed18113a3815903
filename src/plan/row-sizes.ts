import type { DatasetCounts } from '../native/contract.ts';
import type { JobSpec } from '../spec/job-spec.ts';

/** Sizes of propagated rows (docs/formats/propagation.md), before there are files. */

const valueBytes = { FLOAT32: 4, FLOAT16: 2, BFLOAT16: 2 } as const;

/** Rows that a propagation has of each node: hop 0, and every hop of every operator. */
export function storedTokens({ operators, hops }: JobSpec['propagation']): number {
  return 1 + operators.length * hops;
}

/** Of these, rows that the model reads: SGC the last hop alone. */
export function readTokens({ model, propagation }: Pick<JobSpec, 'model' | 'propagation'>): number {
  return model.type === 'SGC' ? 1 : storedTokens(propagation);
}

/** Bytes of one row as it is stored. */
export function tokenBytes({ rowDtype }: JobSpec['propagation'], numFeatures: number): number {
  return numFeatures * valueBytes[rowDtype];
}

/** Rows of a chunk of an evaluation, as native/train/input/row_files.h has them. */
const evaluatedRows = 4096;

/**
 * Bytes that a Trainer takes of its device at most, beside rows that it holds there: parameters and
 * gradient, batches, and what forward keeps for backward. Reckoned generously, by the widths that
 * row_model.cc goes through.
 */
export function deviceWorkBytes(
  { model, propagation, training }: Pick<JobSpec, 'model' | 'propagation' | 'training'>,
  { numFeatures, numClasses, val, test }: DatasetCounts,
): number {
  const tokens = readTokens({ model, propagation });
  const inputs = tokens * numFeatures;
  const isSgc = model.type === 'SGC';
  const hidden = isSgc ? 0 : model.hiddenDim;
  const layers = isSgc ? 0 : model.layers + 2;
  const parameters = inputs * Math.max(hidden, numClasses) + 6 * layers * hidden ** 2;
  const keptOfRow = 6 * inputs + 24 * layers * hidden * (model.type === 'HOGA' ? tokens : 1);
  const rows = Math.max(training.batchSize, Math.min(evaluatedRows, Math.max(val, test)));
  return 4 * (2 * parameters + rows * (keptOfRow + 4 * numClasses));
}
