import type { JobSpec } from '../spec/job-spec.ts';

/** What a job's spec says to native code; native/node/job_options.h reads it. */

/** Parts of a job spec that cross the border as they are; native/node/gen reads them. */
type ModelSpec = JobSpec['model'];
type OptimizerSpec = JobSpec['training']['optimizer'];
type LrScheduleSpec = JobSpec['training']['lrSchedule'];

/** options.h; RANDOM_WALK has its number of neighbours as the fanout of each hop. */
export interface SamplingOptions {
  readonly fanouts: readonly number[];
  readonly batchSize: number;
  readonly algorithm: 'KHOP_UNIFORM' | 'KHOP_WEIGHTED' | 'RANDOM_WALK' | 'LABOR' | 'KHOP_PLUGIN';
  readonly replace: boolean;
  readonly expansion: 'ALL' | 'NEW';
  /** Read for RANDOM_WALK only. */
  readonly walk: {
    readonly walks: number;
    readonly length: number;
    readonly restartProb: number;
  };
  /** Batches for which a node keeps its random number; read for LABOR only. */
  readonly laborWindow: number;
  /** Read for KHOP_PLUGIN only. */
  readonly plugin: {
    readonly path: string;
    readonly sha256: string;
    readonly options: string;
    readonly weights: boolean;
  };
  /** Edge weights 1/sqrt((d_u+1)(d_v+1)) and self weights, for GCN. */
  readonly gcnWeights: boolean;
  /** Records have room for hot ranks. */
  readonly hotRanks: boolean;
}

/**
 * The spec's model, beside what the dataset adds. A TORCHSCRIPT reads nothing but layers, inDim,
 * outDim and its script; the script is read for TORCHSCRIPT only.
 */
export interface ModelOptions extends ModelSpec {
  readonly inDim: number;
  readonly outDim: number;
}

export type OptimizerOptions = OptimizerSpec & {
  readonly schedule: LrScheduleSpec & {
    readonly stepsPerEpoch: number;
    /** Of the job. */
    readonly epochs: number;
  };
};
