import { GnndError } from '../../../src/base/errors.ts';
import type { DatasetsOptions } from '../../../src/datasets/datasets.ts';
import type { DatasetRecord, OperationRecord } from '../../../src/records/dataset-record.ts';
import type { RequestKey } from '../../../src/store/store.ts';

/** The part of the store that datasets need, in memory; survives a "daemon" of a test. */
export class MemoryStore {
  readonly datasets = new Map<string, DatasetRecord>();
  readonly operations = new Map<string, OperationRecord>();
  readonly requests = new Map<string, { key: RequestKey; resource: string }>();

  /** Operations that have not ended. */
  readonly jobs: { readonly id: string; readonly dataset: string }[] = [];

  readonly face: DatasetsOptions['store'] = {
    atomically: (work) => work(),
    replayOf: ({ method, requestId, sha256 }) => {
      const found = this.requests.get(`${method} ${requestId}`);
      if (found === undefined) return null;
      if (found.key.sha256 !== sha256) throw new GnndError('REQUEST_ID_REUSED', requestId);
      return { sha256: found.key.sha256, resource: found.resource, revision: 0, atMs: 0 };
    },
    insertDataset: (dataset) => {
      if (this.datasets.has(dataset.id)) throw new GnndError('DATASET_EXISTS', dataset.id);
      return this.#put({ ...dataset, createAtMs: 0 });
    },
    updateDataset: (id, change) => {
      const dataset = this.datasets.get(id);
      if (dataset === undefined) throw new GnndError('DATASET_NOT_FOUND', id);
      return this.#put({ ...dataset, ...change });
    },
    getDataset: (id) => this.datasets.get(id) ?? null,
    listDatasets: ({ limit, afterId }) =>
      [...this.datasets.values()]
        .filter(({ id }) => afterId === null || id > afterId)
        .sort((a, b) => (a.id < b.id ? -1 : 1))
        .slice(0, limit),
    jobsUsing: (id) => this.jobs.filter((job) => job.dataset === id).map((job) => job.id),
    deleteDataset: (id, key) => {
      this.datasets.delete(id);
      const resource = `datasets/${id}`;
      if (key !== undefined) this.requests.set(`${key.method} ${key.requestId}`, { key, resource });
    },
    countDatasets: () => ({ byState: { IMPORTING: 0, READY: 0, FAILED: 0 }, bytes: 0 }),
    insertOperation: (operation, key) => {
      const resource = `operations/${operation.id}`;
      if (key !== undefined) this.requests.set(`${key.method} ${key.requestId}`, { key, resource });
      return this.#set({
        ...{
          resource: '',
          ...operation,
          done: false,
          progress: 0,
          message: '',
          createAtMs: 0,
          endAtMs: null,
        },
        ...{ error: null, validation: null },
      });
    },
    updateOperation: (id, { end, ...change }) => {
      const operation = this.operations.get(id);
      if (operation === undefined) throw new GnndError('OPERATION_NOT_FOUND', id);
      if (operation.done) throw new GnndError('INTERNAL', `${id} has ended`);
      const ended = end === undefined ? {} : { done: true, endAtMs: 0, ...end };
      return this.#set({ ...operation, ...change, ...ended });
    },
    getOperation: (id) => this.operations.get(id) ?? null,
    unfinishedOperations: () => [...this.operations.values()].filter(({ done }) => !done),
  };

  #put(dataset: DatasetRecord): DatasetRecord {
    this.datasets.set(dataset.id, dataset);
    return dataset;
  }

  #set(operation: OperationRecord): OperationRecord {
    this.operations.set(operation.id, operation);
    return operation;
  }
}
