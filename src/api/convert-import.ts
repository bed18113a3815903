import { isAbsolute } from 'node:path';
import type { ImportRequest } from '../datasets/datasets.ts';
import type { RandomSplit } from '../records/dataset-record.ts';
import {
  datasetTaskFromProto,
  featureDtypeFromProto,
  importFormatFromProto,
  madeFeaturesFromProto,
} from './convert-dataset.ts';
import type { ImportDatasetRequest } from './gen/gnnd/v1/dataset_service_pb.ts';
import { idViolation, invalidRequest } from './requests.ts';

/** An import as a client asks for it. */

const sourceLengthMax = 4096;
/** Most characters of a split's name. */
const splitLengthMax = 255;
const ignoredColumnsMax = 4096;

/** The request, when nothing is wrong with it; else throws all that is. */
export function importFromProto(request: ImportDatasetRequest): Omit<ImportRequest, 'requestId'> {
  const { datasetId, source, split, ignoredColumns, directed, link, validateOnly } = request;
  const idProblem = idViolation('dataset_id', datasetId);
  const violations = idProblem === null ? [] : [idProblem];
  const refuse = (path: string, found: unknown, expected: string) => {
    const shown = typeof found === 'string' ? JSON.stringify(found.slice(0, 80)) : String(found);
    violations.push({ path, description: `${shown}: ${expected}` });
  };
  if (source.length > sourceLengthMax || source.includes('\0') || !isAbsolute(source)) {
    refuse('source', source, "expected an absolute path on the daemon's host");
  }
  const format = importFormatFromProto(request.format);
  const featureDtype = featureDtypeFromProto(request.featureDtype);
  const task = datasetTaskFromProto(request.task);
  const madeFeatures = madeFeaturesFromProto(request.madeFeatures);
  if (format === undefined) refuse('format', request.format, 'unknown format');
  if (featureDtype === undefined) {
    refuse('feature_dtype', request.featureDtype, 'unknown type of features');
  }
  if (task === undefined) refuse('task', request.task, 'unknown task');
  if (madeFeatures === undefined) {
    refuse('made_features', request.madeFeatures, 'unknown features');
  }
  if (split.length > splitLengthMax || /[\0/]/.test(split)) {
    refuse('split', split, 'expected a column or a name');
  }
  if (ignoredColumns.length > ignoredColumnsMax) {
    refuse('ignored_columns', `${ignoredColumns.length} columns`, `at most ${ignoredColumnsMax}`);
  }
  const randomSplit = splitFromProto(request.randomSplit);
  if (randomSplit !== null) {
    const { validation, test } = randomSplit;
    const isShare = (share: number) => share >= 0 && share < 1;
    for (const [name, share] of Object.entries({ validation, test })) {
      if (!isShare(share)) refuse(`random_split.${name}`, share, 'expected a share [0, 1)');
    }
    if (isShare(validation) && isShare(test) && validation + test >= 1) {
      refuse('random_split', validation + test, 'both shares together leave nothing to train on');
    }
  }
  const unknown = [format, featureDtype, task, madeFeatures].includes(undefined);
  if (unknown || violations.length > 0) throw invalidRequest(violations);
  return {
    ...{ id: datasetId, source, format: format ?? null, validateOnly, directed, link },
    ...{ featureDtype: featureDtype ?? null, task: task ?? null, ignoredColumns, randomSplit },
    ...{ madeFeatures: madeFeatures ?? null, split: split === '' ? null : split },
    reverse: request.reverse ?? null,
  };
}

function splitFromProto(split: ImportDatasetRequest['randomSplit']): RandomSplit | null {
  if (split === undefined) return null;
  const { validation, test, randomSeed } = split;
  return { validation, test, randomSeed };
}
