// Made by "npm run build:contract" from the tables in native/node.

import type { DatasetLocation } from './dataset.ts';
import type { ModelOptions } from './model.ts';

export type PredictedNodes = 'ALL' | 'TRAINING' | 'VAL' | 'TEST' | 'LISTED';

export interface PredictOptions {
  readonly dataset: DatasetLocation;
  readonly model: ModelOptions;
  /** In manifest order, padding included. */
  readonly parameters: Float32Array;
  readonly nodes: PredictedNodes;
  /** Of a propagation's row files, for models over rows: nodes VAL or TEST. */
  readonly rowsFolder: string;
  /** Means over neighbours are weighted by the dataset's edge weights. */
  readonly weightedMeans: boolean;
  readonly threads: number;
  /** For hidden layers' rows; where they are more they lie in a file in `scratchFolder`. */
  readonly memoryBytes: number;
  readonly scratchFolder: string;
  readonly topologyFd: number;
  /** Receives frames (native/train/work/prediction_stream.h). */
  readonly outputFd: number;
}

export interface PredictFunctions {
  /** Logits and classes of nodes with full neighbourhoods. ABORTED when nobody reads them. */
  modelPredict(options: PredictOptions): Promise<void>;
}
