import type { JobSpec } from '../spec/job-spec.ts';

/** Sizes of propagated rows (docs/formats/propagation.md), before there are files. */

/** Bytes of a value, as it is stored. */
export const rowValueBytes = { FLOAT32: 4, FLOAT16: 2, BFLOAT16: 2 } as const;

/** Rows that a propagation has of each node: hop 0, and every hop of every operator. */
export function storedTokens({ operators, hops }: JobSpec['propagation']): number {
  return 1 + operators.length * hops;
}

/** Number of those rows that the model reads: SGC reads the last hop alone. */
export function readTokens({ model, propagation }: Pick<JobSpec, 'model' | 'propagation'>): number {
  return model.type === 'SGC' ? 1 : storedTokens(propagation);
}

/** Bytes of one row as it is stored. */
export function tokenBytes({ rowDtype }: JobSpec['propagation'], numFeatures: number): number {
  return numFeatures * rowValueBytes[rowDtype];
}
