import { create } from '@bufbuild/protobuf';
import type { CacheReports } from '../artifacts/cache-reports.ts';
import type { PlacementSimulations } from '../artifacts/placement-simulations.ts';
import type { PropagationRequests } from '../artifacts/propagation-requests.ts';
import { GnndError } from '../base/errors.ts';
import type { Datasets } from '../datasets/datasets.ts';
import type { DatasetRecord, OperationRecord } from '../records/dataset-record.ts';
import type { PropagationRecord } from '../records/propagation-record.ts';
import { int64 } from './convert.ts';
import { cacheReportToProto, cacheRequestFromProto } from './convert-cache-report.ts';
import { datasetToProto, operationToProto } from './convert-dataset.ts';
import { importFromProto } from './convert-import.ts';
import { placementsToProto, simulationFromProto } from './convert-placement.ts';
import { propagationFromProto, propagationToProto } from './convert-propagation.ts';
import {
  type DatasetService,
  DeleteDatasetResponseSchema,
  DeletePropagationResponseSchema,
  ListDatasetsResponseSchema,
  ListPropagationsResponseSchema,
  PropagateDatasetRequestSchema,
} from './gen/gnnd/v1/dataset_service_pb.ts';
import type { Operation } from './gen/gnnd/v1/types_pb.ts';
import type { PageTokens } from './pages.ts';
import { idOfName, notNegative, pageSizeOf, requestIdOf } from './requests.ts';
import type { Handlers, MethodsOf } from './rpc.ts';

export interface DatasetDeps {
  readonly datasets: Datasets;
  readonly cacheReports: CacheReports;
  readonly placements: PlacementSimulations;
  readonly propagations: PropagationRequests;
  readonly pages: PageTokens;
  /** Throws while the daemon takes no changes. */
  readonly admit: () => void;
}

const waitDefaultMs = 10_000;
const waitMaxMs = 60_000;

export function datasetHandlers(deps: DatasetDeps): Handlers<MethodsOf<typeof DatasetService>> {
  const { datasets } = deps;
  const answer = async (operation: OperationRecord): Promise<Operation> =>
    operationToProto(
      operation,
      importedBy(datasets, operation),
      await propagatedBy(deps.propagations, operation),
    );
  return {
    async importDataset(request) {
      deps.admit();
      const requestId = requestIdOf(request.requestId);
      return await answer(await datasets.import({ ...importFromProto(request), requestId }));
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
    async validateDataset(request) {
      deps.admit();
      return await answer(datasets.validate(idOfName('datasets', request.name)));
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
    async simulatePlacement(request, call) {
      deps.admit();
      const asked = simulationFromProto(request);
      return placementsToProto(await deps.placements.simulate(asked, call.signal));
    },
    async propagateDataset(request) {
      deps.admit();
      return await answer(deps.propagations.start(propagationFromProto(request)));
    },
    planPropagation({ request }) {
      const asked = request ?? create(PropagateDatasetRequestSchema);
      return propagationToProto(deps.propagations.plan(propagationFromProto(asked)));
    },
    async listPropagations(request) {
      const dataset = request.dataset === '' ? '' : idOfName('datasets', request.dataset);
      const found = await deps.propagations.list(dataset);
      return create(ListPropagationsResponseSchema, {
        propagations: found.map(propagationToProto),
      });
    },
    async deletePropagation(request) {
      deps.admit();
      const id = idOfName('propagations', request.name);
      const bytes = await deps.propagations.delete(id);
      // Throws that there is none.
      if (bytes === null && !request.allowMissing) await deps.propagations.get(id);
      return create(DeletePropagationResponseSchema, { bytes: int64(bytes ?? 0) });
    },
    getOperation: (request) => answer(datasets.operation(idOfName('operations', request.name))),
    async waitOperation(request, call) {
      const id = idOfName('operations', request.name);
      const askedMs = Number(request.timeoutMs);
      notNegative('timeout_ms', askedMs);
      const timeoutMs = askedMs === 0 ? waitDefaultMs : Math.min(askedMs, waitMaxMs);
      return await answer(await datasets.waitOperation(id, timeoutMs, call.signal));
    },
    async cancelOperation(request) {
      return await answer(await datasets.cancel(idOfName('operations', request.name)));
    },
  };
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

/** What a finished propagation made; null for all else, also when it was deleted since. */
async function propagatedBy(
  propagations: PropagationRequests,
  { kind, done, error, resource }: OperationRecord,
): Promise<PropagationRecord | null> {
  if (kind !== 'PropagateDataset' || !done || error !== null) return null;
  const all = await propagations.list('');
  return all.find(({ id }) => `propagations/${id}` === resource) ?? null;
}
