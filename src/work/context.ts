import type { DataWitness } from '../prepare/data-witness.ts';
import type { PropagationMaker } from '../prepare/propagation-types.ts';
import type { Topologies } from '../prepare/topologies.ts';
import type { AttemptContext } from '../supervisor/attempt-types.ts';

/** Adds to an attempt's context what is made of datasets for all jobs. */
export interface WorkContext extends AttemptContext {
  readonly topologies: Topologies;
  readonly witness: DataWitness;
  readonly propagations: PropagationMaker;
}
