import type { DatasetManifest, DatasetRecord, TypedManifest } from '../records/dataset-record.ts';
import type { DatasetWritten } from './dataset-writer.ts';
import { totalsOf } from './typed-schema.ts';

/** What a dataset's record has of its files. */

/** Before it is READY. */
export const noCounts = {
  digest: '',
  numNodes: 0,
  numEdges: 0,
  numFeatures: 0,
  featureDtype: 'float32',
  task: 'CLASSIFICATION',
  numClasses: 0,
  numTrain: 0,
  numVal: 0,
  numTest: 0,
  bytes: 0,
  schema: null,
} as const satisfies Partial<DatasetRecord>;

/** The change of a record whose dataset is there. */
export function readyChange({ manifest, notices, digest, bytes }: DatasetWritten) {
  const ready = { state: 'READY' as const, message: notices.join('\n'), digest, bytes };
  return { ...ready, ...(manifest.version === 1 ? plainCounts(manifest) : typedCounts(manifest)) };
}

function plainCounts(manifest: DatasetManifest) {
  return {
    numNodes: manifest.num_nodes,
    numEdges: manifest.num_edges,
    numFeatures: manifest.num_features,
    featureDtype: manifest.feature_dtype,
    task: manifest.task ?? 'CLASSIFICATION',
    numClasses: manifest.num_classes,
    numTrain: manifest.split.train,
    numVal: manifest.split.val,
    numTest: manifest.split.test,
    schema: null,
  };
}

function typedCounts({ types, relations }: TypedManifest) {
  const schema = { types, relations };
  const none = { numFeatures: 0, featureDtype: 'float32', numClasses: 0 } as const;
  return { ...none, task: 'CLASSIFICATION' as const, ...totalsOf(schema), schema };
}
