import type { DatasetCounts } from '../native/contract.ts';
import type { DatasetRecord } from '../records/dataset-record.ts';

/** What native code needs to know of a stored dataset. */
export function countsOf(dataset: DatasetRecord): DatasetCounts {
  return {
    numNodes: dataset.numNodes,
    numEdges: dataset.numEdges,
    numFeatures: dataset.numFeatures,
    numClasses: dataset.numClasses,
    train: dataset.numTrain,
    val: dataset.numVal,
    test: dataset.numTest,
    featureDtype: dataset.featureDtype,
  };
}
