import type { DataWitness, PropagationMaker, Topologies } from '../prepare/prepare.ts';
import type { AttemptContext } from '../supervisor/supervisor.ts';

/** Adds to an attempt's context what is made of datasets for all jobs. */
export interface WorkContext extends AttemptContext {
  readonly topologies: Topologies;
  readonly witness: DataWitness;
  readonly propagations: PropagationMaker;
}
