import { create } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import {
  type DatasetRecord,
  type DatasetTask,
  datasetTasks,
  type FeatureDtype,
  featureDtypes,
  type ImportFormat,
  importFormats,
  type MadeFeatures,
  madeFeatures,
  type NodeType,
  type OperationRecord,
  type Problem,
  type Relation,
} from '../records/dataset-record.ts';
import type { PropagationRecord } from '../records/propagation-record.ts';
import { int64, optionalTimestamp, timestamp } from './convert.ts';
import { propagationToProto } from './convert-propagation.ts';
import * as pb from './gen/gnnd/v1/dataset_service_pb.ts';
import {
  type Operation,
  OperationSchema,
  DatasetTask as TaskMessage,
} from './gen/gnnd/v1/types_pb.ts';
import { codeOfReason } from './grpc-status.ts';

/** Datasets and operations as messages. */

export function datasetToProto(dataset: DatasetRecord): pb.Dataset {
  return create(pb.DatasetSchema, {
    name: `datasets/${dataset.id}`,
    state: pb.DatasetState[dataset.state],
    message: dataset.message,
    digest: dataset.digest,
    numNodes: int64(dataset.numNodes),
    numEdges: int64(dataset.numEdges),
    numFeatures: dataset.numFeatures,
    numClasses: dataset.numClasses,
    numTrain: int64(dataset.numTrain),
    numVal: int64(dataset.numVal),
    numTest: int64(dataset.numTest),
    bytes: int64(dataset.bytes),
    path: dataset.path,
    createTime: timestamp(dataset.createAtMs),
    featureDtype: featureDtypeToProto[dataset.featureDtype],
    task: TaskMessage[dataset.task],
    nodeTypes: dataset.schema?.types.map(nodeTypeInit) ?? [],
    relations: dataset.schema?.relations.map(relationInit) ?? [],
  });
}

function nodeTypeInit({ name, num_nodes, features, labels }: NodeType) {
  const split = labels?.split ?? { train: 0, val: 0, test: 0 };
  return {
    ...{ name, numNodes: int64(num_nodes), numFeatures: features?.columns ?? 0 },
    ...(features === undefined ? {} : { featureDtype: featureDtypeToProto[features.dtype] }),
    ...(labels === undefined ? {} : { task: TaskMessage[labels.task] }),
    numClasses: labels?.num_classes ?? 0,
    ...{ numTrain: int64(split.train), numVal: int64(split.val), numTest: int64(split.test) },
  };
}

function relationInit({ source, name, destination, num_edges, reverse_of, links }: Relation) {
  return {
    ...{ source, name, destination, numEdges: int64(num_edges), reverseOf: reverse_of ?? '' },
    numTrainLinks: int64(links?.train ?? 0),
    numValLinks: int64(links?.val ?? 0),
    numTestLinks: int64(links?.test ?? 0),
  };
}

/**
 * `dataset` is what a finished import made; null for every other operation, also for an import that
 * only checked its source: that is answered with what the check found.
 */
export function operationToProto(
  operation: OperationRecord,
  dataset: DatasetRecord | null,
  propagation: PropagationRecord | null = null,
): Operation {
  return create(OperationSchema, {
    name: `operations/${operation.id}`,
    kind: operation.kind,
    target: `datasets/${operation.target}`,
    done: operation.done,
    progress: operation.progress,
    message: operation.message,
    createTime: timestamp(operation.createAtMs),
    endTime: optionalTimestamp(operation.endAtMs),
    result: resultOf(operation, dataset, propagation),
  });
}

function resultOf(
  operation: OperationRecord,
  dataset: DatasetRecord | null,
  propagation: PropagationRecord | null,
): Operation['result'] {
  if (!operation.done) return { case: undefined };
  const { error } = operation;
  if (error !== null) {
    const { reason, message } = error;
    const problems = error.problems.map(problemInit);
    const value = { code: codeOfReason(reason), reason, message, problems };
    return create(OperationSchema, { result: { case: 'error', value } }).result;
  }
  if (dataset !== null) {
    return { case: 'response', value: anyPack(pb.DatasetSchema, datasetToProto(dataset)) };
  }
  if (operation.kind === 'PropagateDataset') {
    const made =
      propagation === null ? create(pb.PropagationSchema) : propagationToProto(propagation);
    return { case: 'response', value: anyPack(pb.PropagationSchema, made) };
  }
  const problems = operation.validation?.problems ?? [];
  const validation = create(pb.DatasetValidationSchema, {
    valid: problems.length === 0,
    problems: problems.map(problemInit),
    problemCount: int64(operation.validation?.problemCount ?? 0),
  });
  return { case: 'response', value: anyPack(pb.DatasetValidationSchema, validation) };
}

function problemInit(problem: Problem): { path: string; description: string } {
  return { path: problem.path, description: problem.description };
}

/** Null when the source is to tell; undefined for a number that is no format of this version. */
export function importFormatFromProto(value: pb.ImportFormat): ImportFormat | null | undefined {
  if (value === pb.ImportFormat.UNSPECIFIED) return null;
  return importFormats.find((format) => pb.ImportFormat[format] === value);
}

/** Null when the format decides; undefined for a number that is none of this version. */
export function madeFeaturesFromProto(value: pb.MadeFeatures): MadeFeatures | null | undefined {
  if (value === pb.MadeFeatures.UNSPECIFIED) return null;
  return madeFeatures.find((made) => pb.MadeFeatures[made] === value);
}

/** Null when the labels are to tell; undefined for a number that is no task of this version. */
export function datasetTaskFromProto(value: TaskMessage): DatasetTask | null | undefined {
  if (value === TaskMessage.UNSPECIFIED) return null;
  return datasetTasks.find((task) => TaskMessage[task] === value);
}

const featureDtypeToProto: Readonly<Record<FeatureDtype, pb.FeatureDtype>> = {
  float32: pb.FeatureDtype.FLOAT32,
  float16: pb.FeatureDtype.FLOAT16,
};

/** Null when the source is to tell; undefined for a number that is no type of this version. */
export function featureDtypeFromProto(value: pb.FeatureDtype): FeatureDtype | null | undefined {
  if (value === pb.FeatureDtype.UNSPECIFIED) return null;
  return featureDtypes.find((dtype) => featureDtypeToProto[dtype] === value);
}
