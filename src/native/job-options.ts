/** What a job's spec says to native code; native/node/job_options.h reads it. */

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

export interface ModelOptions {
  readonly type: 'GRAPHSAGE' | 'GCN' | 'GAT' | 'GATV2' | 'PINSAGE' | 'TORCHSCRIPT';
  readonly layers: number;
  readonly inDim: number;
  readonly hiddenDim: number;
  readonly outDim: number;
  readonly dropout: number;
  readonly inputDropout: number;
  /** 1 without attention. */
  readonly heads: number;
  readonly attentionDropout: number;
  readonly activation: 'RELU' | 'ELU' | 'LEAKY_RELU';
  readonly normalization: 'NONE' | 'L2' | 'LAYER';
  readonly residual: boolean;
  /** Read for TORCHSCRIPT only, which reads nothing else but layers, inDim and outDim. */
  readonly script: { readonly path: string; readonly sha256: string };
}

export interface OptimizerOptions {
  readonly type: 'ADAM' | 'ADAMW' | 'SGD';
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
  readonly firstLayerOnly: boolean;
  /** Read for SGD only. */
  readonly momentum: number;
  /** 0 = none. */
  readonly clipNorm: number;
  readonly schedule: {
    readonly type: 'CONSTANT' | 'STEP' | 'COSINE';
    /** Read for STEP only, as gamma. */
    readonly stepEpochs: number;
    readonly gamma: number;
    readonly warmupEpochs: number;
    readonly stepsPerEpoch: number;
    readonly epochs: number;
  };
}
