import { isAbsolute } from 'node:path';
import { create } from '@bufbuild/protobuf';
import type { CacheReports } from '../artifacts/cache-reports.ts';
import { GnndError } from '../base/errors.ts';
import type { Datasets, ImportRequest } from '../datasets/datasets.ts';
import type { DatasetRecord, OperationRecord } from '../records/dataset-record.ts';
import { int64 } from './convert.ts';
import { cacheReportToProto, cacheRequestFromProto } from './convert-cache-report.ts';
import {
  datasetToProto,
  featureDtypeFromProto,
  importFormatFromProto,
  operationToProto,
} from './convert-dataset.ts';
import {
  type DatasetService,
  DeleteDatasetResponseSchema,
  type ImportDatasetRequest,
  ListDatasetsResponseSchema,
} from './gen/gnnd/v1/dataset_service_pb.ts';
import type { Operation } from './gen/gnnd/v1/types_pb.ts';
import type { PageTokens } from './pages.ts';
import {
  idOfName,
  idViolation,
  invalidRequest,
  notNegative,
  pageSizeOf,
  requestIdOf,
} from './requests.ts';
import type { Handlers, MethodsOf } from './rpc.ts';

export interface DatasetDeps {
  readonly datasets: Datasets;
  readonly cacheReports: CacheReports;
  readonly pages: PageTokens;
  /** Throws while the daemon takes no changes. */
  readonly admit: () => void;
}

const waitDefaultMs = 10_000;
const waitMaxMs = 60_000;
const sourceLengthMax = 4096;

export function datasetHandlers(deps: DatasetDeps): Handlers<MethodsOf<typeof DatasetService>> {
  const { datasets } = deps;
  const answer = (operation: OperationRecord): Operation =>
    operationToProto(operation, importedBy(datasets, operation));
  return {
    async importDataset(request) {
      deps.admit();
      const requestId = requestIdOf(request.requestId);
      const { datasetId, source, directed, link, validateOnly } = request;
      const checked = checkImport(request);
      const asked = { id: datasetId, source, directed, link, validateOnly, requestId };
      return answer(await datasets.import({ ...asked, ...checked }));
    },
    getDataset: (request) => datasetToProto(datasets.get(idOfName('datasets', request.name))),
    listDatasets(request) {
      const limit = pageSizeOf(request.pageSize);
      const afterId = deps.pages.open<string>('datasets', request.pageToken);
      const page = datasets.list({ limit, afterId });
      return create(ListDatasetsResponseSchema, {
        datasets: page.datasets.map(datasetToProto),
        nextPageToken: page.nextId === null ? '' : deps.pages.issue('datasets', page.nextId),
      });
    },
    validateDataset(request) {
      deps.admit();
      return answer(datasets.validate(idOfName('datasets', request.name)));
    },
    deleteDataset(request) {
      deps.admit();
      const bytes = datasets.delete({
        id: idOfName('datasets', request.name),
        allowMissing: request.allowMissing,
        requestId: requestIdOf(request.requestId),
      });
      return create(DeleteDatasetResponseSchema, { bytes: int64(bytes) });
    },
    async reportCache(request, call) {
      deps.admit();
      const asked = cacheRequestFromProto(request);
      return cacheReportToProto(await deps.cacheReports.report(asked, call.signal));
    },
    getOperation: (request) => answer(datasets.operation(idOfName('operations', request.name))),
    async waitOperation(request, call) {
      const id = idOfName('operations', request.name);
      const askedMs = Number(request.timeoutMs);
      notNegative('timeout_ms', askedMs);
      const timeoutMs = askedMs === 0 ? waitDefaultMs : Math.min(askedMs, waitMaxMs);
      return answer(await datasets.waitOperation(id, timeoutMs, call.signal));
    },
    async cancelOperation(request) {
      return answer(await datasets.cancel(idOfName('operations', request.name)));
    },
  };
}

/** Its options, when nothing is wrong with the request; else throws all that is. */
function checkImport(
  request: ImportDatasetRequest,
): Pick<ImportRequest, 'format' | 'featureDtype'> {
  const format = importFormatFromProto(request.format);
  const featureDtype = featureDtypeFromProto(request.featureDtype);
  const { source } = request;
  const idProblem = idViolation('dataset_id', request.datasetId);
  const violations = idProblem === null ? [] : [idProblem];
  if (source.length > sourceLengthMax || source.includes('\0') || !isAbsolute(source)) {
    const shown = JSON.stringify(source.slice(0, 80));
    violations.push({
      path: 'source',
      description: `${shown}: expected an absolute path on the daemon's host`,
    });
  }
  if (format === undefined) {
    violations.push({ path: 'format', description: `${request.format}: unknown format` });
  }
  if (featureDtype === undefined) {
    const description = `${request.featureDtype}: unknown type of features`;
    violations.push({ path: 'feature_dtype', description });
  }
  if (format === undefined || featureDtype === undefined || violations.length > 0) {
    throw invalidRequest(violations);
  }
  return { format, featureDtype };
}

/** What a finished import made; null for all else, also when only the source was checked. */
function importedBy(datasets: Datasets, operation: OperationRecord): DatasetRecord | null {
  const { kind, done, error, validation, target } = operation;
  if (kind !== 'ImportDataset' || !done || error !== null || validation !== null) return null;
  try {
    return datasets.get(target);
  } catch (cause) {
    if (cause instanceof GnndError && cause.reason === 'DATASET_NOT_FOUND') return null;
    throw cause;
  }
}
